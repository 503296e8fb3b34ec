"""Many realizations of a disturbed model: their grids, paths, steps and statistics."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
