"""Kalman filters in C: what is generated for one model, and how it is called."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
