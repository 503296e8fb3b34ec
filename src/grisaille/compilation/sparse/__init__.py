"""Sparse matrices of a model: patterns, orders of elimination, and their declarations in C."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
