"""Log-densities: what likelihood methods make of a model, its data and unknowns, as a function of these with parts.

    value(θ) → DensityValue(log_density, gradient, information, residuals, parts)

``Likelihood`` and ``Criterion`` are what estimators declare (``Estimator.density``): the first makes a ``LogDensity``
of a problem, the second is minimised but is no likelihood, and is refused where a density is needed.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
