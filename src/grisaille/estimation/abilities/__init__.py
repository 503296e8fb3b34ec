"""What estimators may have beside an estimate: a contract for each ability, and the sentence where one is missing."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
