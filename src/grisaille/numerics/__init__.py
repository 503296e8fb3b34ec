"""Small dense linear algebra that rooms share: quadratic models between bounds, inverses with flat directions."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
