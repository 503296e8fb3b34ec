"""Batches on graphics processors: the same headers and generated code, compiled when they are first run there."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
