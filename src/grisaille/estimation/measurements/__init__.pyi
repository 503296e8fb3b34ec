"""The names that `grisaille.estimation.measurements` exports."""

from grisaille.estimation.measurements.quantile_residuals import scores_along as scores_along
