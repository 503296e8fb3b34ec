"""White noise in the reduced system: where it may stand, its stochastic differential equation, coordinates for it."""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
