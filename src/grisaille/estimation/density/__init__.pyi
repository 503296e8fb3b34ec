"""The names that `grisaille.estimation.density` exports."""

from grisaille.estimation.density.criterion_kinds import (
    Likelihood as Likelihood,
    criterion_around as criterion_around,
    log_density_of as log_density_of,
)
from grisaille.estimation.density.log_density import LogDensity as LogDensity
from grisaille.estimation.density.own import OwnLikelihood as OwnLikelihood
from grisaille.estimation.density.profile_criterion import ProfileCriterion as ProfileCriterion
from grisaille.estimation.density.transforms import Transform as Transform, Transforms as Transforms
