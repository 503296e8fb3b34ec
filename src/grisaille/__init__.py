"""Grey-box modelling with differential-algebraic equations.

The public names stand in ``__init__.pyi``; each is imported, with what it needs, when it is first used.
"""

from grisaille.exports import export_lazily as _export_lazily

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = _export_lazily(__name__, __file__)
