"""Trajectories of the states of a fit, from which another search may begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    pass

Course = tuple[np.ndarray, dict[str, np.ndarray]]
"""Times, and the values of each state there."""


def state_courses(fit: Any, experiments: Sequence[Any]) -> dict[str, Course]:
    """Return smoothed states of the experiments of the fit, by the experiment's name."""
    if fit.method.states is None:
        return {}
    seen = {e.name: e for e in fit.experiments}
    found = {}
    for name in (e.name for e in experiments if e.name in seen):
        states = fit.method.states.of(fit, seen[name], None, 0.95).isel(given=-1).sel(statistic="mean")
        found[name] = (states["time"].values, {str(k): np.asarray(v) for k, v in states.data_vars.items()})
    return found
