"""The names that `grisaille.estimators.simulated_pem` exports."""

from grisaille.estimators.simulated_pem.checkpoint import Checkpoint as Checkpoint
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion as MeanCriterion
from grisaille.estimators.simulated_pem.reestimates import (
    constant_part as constant_part,
    projection_form as projection_form,
    quadratic_zeros as quadratic_zeros,
)
from grisaille.estimators.simulated_pem.restarts import space_filling_points as space_filling_points
