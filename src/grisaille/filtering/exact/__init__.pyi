"""The names that `grisaille.filtering.exact` exports."""

from grisaille.filtering.exact.transition import (
    noise_covariance as noise_covariance,
    polynomial_nodes as polynomial_nodes,
    state_transition as state_transition,
)
