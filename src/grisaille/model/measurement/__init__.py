"""How outputs say that measurements scatter: laws around predictions, and noise that outputs share."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
