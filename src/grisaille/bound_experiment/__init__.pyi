"""The names that `grisaille.bound_experiment` exports."""

from grisaille.bound_experiment.bound_experiment import BoundExperiment as BoundExperiment
from grisaille.bound_experiment.estimated_quantities import EstimatedQuantities as EstimatedQuantities
from grisaille.bound_experiment.experiment_point import ExperimentPoint as ExperimentPoint
