"""Which data a prediction uses: samples, durations, missing rows."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from grisaille.errors import EstimationError
from grisaille.estimation.predictions import last_used
from grisaille.experiment.times import Clock

EVEN = 0.5 * np.arange(8)
HOURS = Clock("h")


def test_samples_and_none():
    assert last_used(3, EVEN, HOURS).tolist() == [-1, -1, -1, 0, 1, 2, 3, 4]
    assert last_used(np.inf, EVEN, HOURS).tolist() == [-1] * 8


@pytest.mark.parametrize("horizon", ["90min", "1.5h", timedelta(hours=1.5), pd.Timedelta("1h30min")])
def test_a_duration_is_as_many_samples_on_an_even_grid(horizon):
    assert last_used(horizon, EVEN, HOURS).tolist() == last_used(3, EVEN, HOURS).tolist()


@pytest.mark.parametrize("length", ["45min", "1h", "3h", "1 day"])
def test_missing_rows_do_not_shift_it(length):
    times = np.concatenate([EVEN, 9.0 + EVEN, [20.0, 20.1, 20.7]])
    found, d = last_used(length, times, HOURS), pd.Timedelta(length) / pd.Timedelta("1h")
    for j, origin in enumerate(found):
        before = [i for i in range(j) if times[i] <= times[j] - d + 1e-9]
        assert origin == (before[-1] if before else -1)


def test_shorter_than_a_step_is_the_sample_before():
    assert last_used("1min", EVEN, HOURS).tolist() == last_used(1, EVEN, HOURS).tolist()


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True, "soon", "0h", "-2h", None, np.nan])
def test_what_is_no_horizon_is_refused(horizon):
    with pytest.raises(EstimationError, match="horizon is "):
        last_used(horizon, EVEN, HOURS)


def test_a_duration_needs_a_known_unit():
    with pytest.raises(EstimationError, match="unit of time is 'cycles'"):
        last_used("1h", EVEN, Clock("cycles"))
