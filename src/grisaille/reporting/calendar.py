"""Dates of a page's charts: which instant a time is, and what clocks of its zone showed then.

The page itself knows no time zones (browsers differ in those they know): the changes of the clock within a record come
with its charts, found by bisection to the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from grisaille.experiment.experiment import Experiment
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.experiment.times.dating import clock_of

MAX_DAYS = 40_000
"""Days over which changes are looked for."""


@dataclass(frozen=True)
class Calendar:
    """t is the instant ``zero + unit · t``, in milliseconds since 1970 in UTC."""

    zero: float
    unit: float
    shifts: tuple[tuple[float | None, float, str], ...]
    """(from which instant, milliseconds ahead of UTC, how the zone is then called); the first holds from ever."""

    def encoded(self) -> dict[str, Any]:
        """Return the calendar as the script of the page takes it."""
        return {"zero": self.zero, "unit": self.unit, "shifts": [list(shift) for shift in self.shifts]}


def calendar_of(experiment: Experiment) -> Calendar | None:
    """Return the calendar of an experiment; None where it has no dates."""
    clock = clock_of(experiment)
    if clock is None or clock.origin is None:
        return None
    unit = 1e3 * clock.seconds
    if clock.origin.tz is None:
        return Calendar(_milliseconds(clock.origin.tz_localize("UTC")), unit, ((None, 0.0, ""),))
    begin, end = (clock.stamp(t) + pd.Timedelta(days=d) for t, d in zip(_extent(experiment), (-1, 1), strict=True))
    return Calendar(_milliseconds(clock.origin), unit, _shifts(begin, end))


def _milliseconds(stamp: pd.Timestamp) -> float:
    return float(stamp.timestamp() * 1e3)


def _extent(experiment: Experiment) -> tuple[float, float]:
    signals = [s for s in (*experiment.outputs.values(), *experiment.inputs.values()) if isinstance(s, SampledSignal)]
    times = np.concatenate([s.times[[0, -1]] for s in signals])
    return float(times.min()), float(times.max())


def _shifts(begin: pd.Timestamp, end: pd.Timestamp) -> tuple[tuple[float | None, float, str], ...]:
    days = pd.date_range(begin, periods=min(int((end - begin) / pd.Timedelta(days=1)) + 2, MAX_DAYS), freq="24h")
    found: list[tuple[float | None, float, str]] = [(None, *_ahead(days[0]))]
    for before, after in pairwise(days):
        if before.utcoffset() != after.utcoffset():
            found.append((_milliseconds(_change(before, after)), *_ahead(after)))
    return tuple(found)


def _ahead(stamp: pd.Timestamp) -> tuple[float, str]:
    return 1e3 * stamp.utcoffset().total_seconds(), str(stamp.tzname())


def _change(before: pd.Timestamp, after: pd.Timestamp) -> pd.Timestamp:
    """Return the first second at which the clock has changed."""
    second = pd.Timedelta(seconds=1)
    while after - before > second:
        middle = before + ((after - before) / 2).floor("s")
        before, after = (middle, after) if middle.utcoffset() == before.utcoffset() else (before, middle)
    return after
