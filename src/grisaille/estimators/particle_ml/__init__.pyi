"""The names that `grisaille.estimators.particle_ml` exports."""

from grisaille.estimators.particle_ml.particle_problem import RepeatedLikelihood as RepeatedLikelihood
from grisaille.estimators.particle_ml.response_surface import (
    coefficient_count as coefficient_count,
    design_points as design_points,
    fit_surface as fit_surface,
)
