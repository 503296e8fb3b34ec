"""Linear descriptor systems under noise: modes, index, and which variables have finite variance."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
