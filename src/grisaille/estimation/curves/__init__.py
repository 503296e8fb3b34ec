"""Vectors and tables of unknowns: options by their names, their values, and priors of their curvature."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
