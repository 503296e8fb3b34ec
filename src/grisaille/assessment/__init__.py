"""A ``Fit`` in, verdicts out: is it good, and how far can it be trusted?

Receives fits; holds profiles and surfaces of the criterion, residual tests, comparison of fits, and the sensitivity of
outputs before any fit. Hands on objects with tables; pictures of them are drawn in ``reporting``.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
