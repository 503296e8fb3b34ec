"""One experiment at given unknowns: what every estimator simulates, filters or collocates.

Receives a model, an experiment and what moves in it; hands on a ``BoundExperiment``, whose ``at(θ)`` is a
``ExperimentPoint``: parameters,
levels, signals and a consistent start, with exact derivatives. Nothing that depends on the model and the record alone
is computed again at another θ, and what is refused for reasons of the model and its data is refused here, once.
"""

from grisaille.bound_experiment.bound_experiment import BoundExperiment
from grisaille.bound_experiment.estimated_quantities import EstimatedQuantities
from grisaille.bound_experiment.experiment_point import ExperimentPoint

__all__ = ["BoundExperiment", "EstimatedQuantities", "ExperimentPoint"]
