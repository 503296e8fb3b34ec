"""Measurements by any law: what outputs with ``distribution=`` add to a log-likelihood, and its derivatives.

Receives predictions of experiments and the laws that outputs declare; hands on problems whose objective is −log L, with
exact gradients and the expected information. Normal noise alone is least squares (``estimation.problem``).
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
