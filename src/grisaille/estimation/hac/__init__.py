"""Standard errors under residuals that are correlated: what correlation they have, and what it does to estimates."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
