"""Models and data in, innovations out: likelihoods with exact derivatives, filtered and smoothed states.

Receives the reduced system with its disturbances and one experiment; hands on innovations, the log-likelihood with its
gradient, and states with covariances. Filters carry the redundant coordinates of the reduced system, with covariances
that are singular across the constraints.
"""

from grisaille.filtering.filter import Filter, FilterPoint, FilterStates, StartMoments
from grisaille.filtering.filter_methods import FilterMethod
from grisaille.filtering.kalman import Likelihood
from grisaille.filtering.model_functions import ModelFunctions

__all__ = ["Filter", "FilterMethod", "FilterPoint", "FilterStates", "Likelihood", "ModelFunctions", "StartMoments"]
