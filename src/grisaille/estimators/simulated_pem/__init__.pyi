"""The names that `grisaille.estimators.simulated_pem` exports."""

from grisaille.estimators.simulated_pem.checkpoint import Checkpoint as Checkpoint
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion as MeanCriterion
