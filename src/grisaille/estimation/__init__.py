"""Model, data and a method in, a ``Fit`` out.

Receives a model, experiments and an estimator; poses the problem (unknowns with bounds, scales and priors, residuals
with exact derivatives), minimises it, and hands on estimates with their uncertainty.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
