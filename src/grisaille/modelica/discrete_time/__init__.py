"""What changes at events only: discrete variables and their formulas, delays of them, clocks."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
