"""The names that `grisaille.model.measurement` exports."""

from grisaille.model.measurement.noise_covariances import (
    correlations_of as correlations_of,
    covariance_formulas as covariance_formulas,
    is_correlation as is_correlation,
)
