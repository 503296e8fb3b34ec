"""What ``fit.predict(horizon=, bands=)`` is asked for, by what the method can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.predictions.band_kinds import Bands
from grisaille.estimation.predictions.horizons import Horizon

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.starts.record_starts import ContinuedRecord


def predict_ahead_or_bands(
    fit: Fitted, on: ContinuedRecord, horizon: Horizon | None, bands: Bands | None
) -> xr.Dataset | None:
    """Return predictions ahead, or with bands; None where a simulation is all that is asked for."""
    from grisaille.estimation.predictions.whole_bands import simulated_with_bands

    ahead, experiment = on.method.ahead, on.experiment
    if ahead is not None and horizon is not None and bands is None:
        return ahead.predict(fit, experiment, horizon)
    if ahead is not None:
        return ahead.predict_with_bands(fit, experiment, horizon, bands or "all")
    refuse_horizon(on.method, horizon)
    return None if bands is None else simulated_with_bands(fit, experiment, bands)


def refuse_horizon(method: Estimator, horizon: Horizon | None) -> None:
    """Refuse predictions from a part of the data by a method whose trajectories follow all of them."""
    is_simulation = horizon is None or (isinstance(horizon, float) and np.isposinf(horizon))
    follows_data = method.states is not None and method.states.follow_data
    if not is_simulation and follows_data and method.ahead is None:
        raise missing_ability_error(method, "ahead")
