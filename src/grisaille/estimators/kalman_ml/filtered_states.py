"""States as a Kalman filter and its smoother estimate them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.abilities.states import States
from grisaille.estimation.predictions.band_kinds import Bands
from grisaille.estimation.problem import EstimationProblem

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.abilities.states import Wanted
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.filtered_predictions import CaseOf
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
    from grisaille.estimators.particle_ml.particle_ml import ParticleML
    from grisaille.experiment.experiment import Experiment


@dataclass(frozen=True)
class FilteredStates(States):
    """Filtered and smoothed states, with bands for given parameters or with the uncertainty of the estimates."""

    method: KalmanML | ParticleML
    case_of: CaseOf
    """How the method makes the term of an experiment."""

    def of(
        self, fit: Fitted, experiment: Experiment | str | None, names: Wanted, level: float, bands: Bands | None = None
    ) -> xr.Dataset:
        from grisaille.estimation.predictions.filtered_predictions import filtered_states

        return filtered_states(fit, experiment, names, level, self.case_of, bands)

    def at(self, problem: EstimationProblem, theta: np.ndarray) -> dict[str, xr.Dataset]:
        from grisaille.estimation.predictions.filtered_predictions import states_of_case

        return {c.name: states_of_case(c, theta) for c in problem.discretised_problem.cases}
