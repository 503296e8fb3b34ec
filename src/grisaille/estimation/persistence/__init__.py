"""Fits in files and through pickle: their content as numbers and text, and fits made of that again."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
