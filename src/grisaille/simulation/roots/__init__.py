"""Roots of implicit equations where no steps are taken: Newton's method, and what follows a root where it fails."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
