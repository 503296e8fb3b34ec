"""The steps of a nonlinear filter between samples: chosen once along a record, then fixed."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
