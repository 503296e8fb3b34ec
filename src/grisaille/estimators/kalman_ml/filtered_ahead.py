"""Predictions of a Kalman filter, and how it continues with a record that follows another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.estimated_quantities import UNKNOWN_KINDS
from grisaille.estimation.abilities.ahead import Ahead
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import own_theta_and_steps
from grisaille.estimation.predictions.band_kinds import Bands
from grisaille.estimation.predictions.horizons import Horizon
from grisaille.filtering.initial_moments import CarriedStart

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.filtered_predictions import CaseOf
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML
    from grisaille.estimators.particle_ml.particle_ml import ParticleML
    from grisaille.experiment.experiment import Experiment


@dataclass(frozen=True)
class FilteredAhead(Ahead):
    """Predictions by the filter of samples that it has not used yet."""

    method: KalmanML | ParticleML
    case_of: CaseOf
    """How the method makes the term of an experiment."""

    def predict(self, fit: Fitted, experiment: Any, horizon: Horizon) -> xr.Dataset:
        from grisaille.estimation.predictions.filtered_predictions import predictions

        return predictions(fit, experiment, horizon, self.case_of)

    def predict_with_bands(
        self, fit: Fitted, experiment: Experiment, horizon: Horizon | None, bands: Bands
    ) -> xr.Dataset:
        from grisaille.estimation.predictions.filtered_predictions import predictor
        from grisaille.estimation.predictions.whole_bands import ahead_with_bands

        ahead = np.inf if horizon is None else horizon
        if bands == "noise":
            return self.predict(fit, experiment, ahead)
        predicted = predictor(fit, experiment, ahead, self.case_of)
        return ahead_with_bands(fit, experiment, ahead, predicted)

    def filtered_means(self, fit: Fitted, experiment: Experiment, names: Sequence[str]) -> Mapping[str, xr.DataArray]:
        from grisaille.estimation.predictions.filtered_predictions import states_of_case

        found = states_of_case(self._case(fit, experiment), fit.estimate.theta, list(names))
        return {n: found[n].sel(given="filtered", statistic="mean") for n in names}

    def continuing(self, fit: Fitted, experiment: Experiment) -> KalmanML | ParticleML:
        """Begin with mean and covariance of all states at the last instant of an experiment."""
        case = self._case(fit, experiment)
        found = case.runner.states(*own_theta_and_steps(case, fit.estimate.theta))
        known = CarriedStart.of(found.x_filt[-1], found.P_filt[-1], found.open_filtered[-1])
        return replace(self.method, initial_covariance=known)

    def _case(self, fit: Fitted, experiment: Experiment) -> ExperimentTerm:
        return self.case_of(fit.initial_model, experiment, fit.estimate.unknowns, UNKNOWN_KINDS)
