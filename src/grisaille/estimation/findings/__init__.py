"""What an estimate holds beside numbers that every method finds: a frozen object for each kind of finding."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
