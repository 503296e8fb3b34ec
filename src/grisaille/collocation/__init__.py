"""Collocation: from the reduced system and data to a sparse least-squares problem over trajectories and parameters.

Receives a stochastic model and one record per experiment; hands on trajectories as splines (or as values at collocation
points, for differential-algebraic models), the criterion with exact derivatives, and its factorised curvature.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
