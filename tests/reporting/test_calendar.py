"""What clocks showed: changes of the clock within a record, to the second."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille.reporting import calendar_of


def record(stamps: pd.DatetimeIndex, unit: str = "h") -> gr.Experiment:
    return gr.Experiment(stamps, {}, {"y": np.arange(len(stamps), dtype=float)}, unit=unit)


@pytest.mark.parametrize(
    ("begin", "zone", "instant", "ahead"),
    [
        ("2024-03-28", "Europe/Berlin", "2024-03-31T01:00Z", (1, 2)),
        ("2024-10-25", "Europe/Berlin", "2024-10-27T01:00Z", (2, 1)),
        ("2024-11-01", "America/New_York", "2024-11-03T06:00Z", (-4, -5)),
        ("2024-04-05", "Australia/Lord_Howe", "2024-04-06T15:00Z", (11, 10.5)),
    ],
)
def test_the_change_of_the_clock(begin: str, zone: str, instant: str, ahead: tuple[float, float]) -> None:
    calendar = calendar_of(record(pd.date_range(begin, periods=100, freq="h", tz=zone)))
    assert calendar is not None and calendar.unit == 3_600_000
    assert calendar.zero == 1e3 * pd.Timestamp(begin, tz=zone).timestamp()
    (never, before, _), (at, after, _) = calendar.shifts
    assert never is None and at == 1e3 * pd.Timestamp(instant).timestamp()
    assert (before, after) == tuple(3.6e6 * a for a in ahead)


def test_a_year_has_two_changes() -> None:
    calendar = calendar_of(record(pd.date_range("2024-01-01", periods=366, freq="D", tz="Europe/Berlin"), "d"))
    assert calendar is not None and [name for *_, name in calendar.shifts] == ["CET", "CEST", "CET"]


def test_dates_without_a_zone_are_as_they_stand() -> None:
    calendar = calendar_of(record(pd.date_range("2024-03-31", periods=5, freq="h"), "min"))
    assert calendar is not None and calendar.shifts == ((None, 0.0, ""),)
    assert pd.Timestamp(calendar.zero, unit="ms") == pd.Timestamp("2024-03-31") and calendar.unit == 60_000


def test_numbers_have_none() -> None:
    assert calendar_of(gr.Experiment(np.arange(4.0), {}, {"y": np.arange(4.0)})) is None
    assert calendar_of(gr.Experiment(None, {"u": np.arange(4.0)}, {"y": np.arange(4.0)})) is None
