"""The names that `grisaille.bound_experiment` exports."""

from grisaille.bound_experiment.bound_experiment import BoundExperiment as BoundExperiment
from grisaille.bound_experiment.discretisation import Discretisation as Discretisation
from grisaille.bound_experiment.estimated_quantities import EstimatedQuantities as EstimatedQuantities
from grisaille.bound_experiment.experiment_point import ExperimentPoint as ExperimentPoint
from grisaille.bound_experiment.explicit_start import start_is_explicit as start_is_explicit
from grisaille.bound_experiment.shared_refusals import refuse_infinite_variance as refuse_infinite_variance
from grisaille.bound_experiment.unknown import Unknown as Unknown
