"""The names that `grisaille.estimators.output_error` exports."""

from grisaille.estimators.output_error.robust_losses import LOSSES as LOSSES, robust_level as robust_level
from grisaille.estimators.output_error.variable_projection import linear_unknowns as linear_unknowns
