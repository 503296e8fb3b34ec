"""Consistent starts: what must hold, what is wished for, and how the start moves with parameters."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
