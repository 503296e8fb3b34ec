"""Models and data in, innovations out: likelihoods with exact derivatives, filtered and smoothed states.

Receives the reduced system with its disturbances and one experiment; hands on innovations, the log-likelihood with its
gradient, and states with covariances. Filters carry the redundant coordinates of the reduced system, with covariances
that are singular across the constraints.
"""

from grisaille.exports import export_lazily

__getattr__, __dir__, __all__ = export_lazily(__name__, __file__)
