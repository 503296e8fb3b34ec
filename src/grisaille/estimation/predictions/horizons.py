"""How far ahead is predicted: over samples, over a duration, or from the start alone.

Of sample j the data up to sample o_j are used, −1 for none of them:

    k samples:   o_j = j − k
    a duration:  o_j is the last sample with t ≤ t_j − d, at most j − 1: rows may be missing, or not equally spaced
    ∞:           o_j = −1
"""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from grisaille.errors import DataError, EstimationError
from grisaille.experiment.times.clock import Clock, is_length

Horizon = float | str | timedelta | np.timedelta64
SAME_INSTANT = 1e-9
"""Of a duration: instants that differ by less are the same."""


def check_horizon(horizon: object, clock: Clock | None) -> None:
    """Refuse what is no horizon; ``clock`` is None where rows are numbered."""
    last_used(horizon, np.zeros(0), clock)


def last_used(horizon: object, times: np.ndarray, clock: Clock | None) -> np.ndarray:
    """Return o_j for every one of the times."""
    rows = np.arange(len(times))
    if isinstance(horizon, float) and np.isposinf(horizon):
        return np.full(len(times), -1)
    if isinstance(horizon, int | np.integer) and not isinstance(horizon, bool) and horizon >= 1:
        return np.maximum(rows - min(int(horizon), len(times) + 1), -1)
    if clock is not None and is_length(horizon):
        length = _duration(horizon, clock)
        return np.minimum(np.searchsorted(times, times - (1 - SAME_INSTANT) * length, side="right"), rows) - 1
    raise EstimationError(
        f"horizon is {horizon!r}; give a whole number of samples from 1, a duration such as '1 day', or np.inf to "
        f"simulate."
    )


def _duration(horizon: object, clock: Clock) -> float:
    try:
        length = clock.duration(horizon, "horizon")
    except DataError as error:
        raise EstimationError(str(error)) from None
    if not length > 0:
        raise EstimationError(f"horizon is {horizon!r}; a prediction looks ahead by more than nothing.")
    return length


def horizon_text(horizon: object) -> str:
    """Return how far ahead predictions are, in words: ``"1 day"``, ``"3 samples"``, ``"from the start alone"``."""
    if isinstance(horizon, float) and np.isposinf(horizon):
        return "from the start alone"
    if isinstance(horizon, int | np.integer):
        return f"{horizon} sample{'' if horizon == 1 else 's'} ahead"
    return f"{horizon} ahead"
