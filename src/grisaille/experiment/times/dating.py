"""Dates beside times: trajectories and tables of an experiment that was read with dates say them too.

Times stay numbers in the unit of the experiment, so that one can calculate with them; dates stand beside them, in the
zone of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from grisaille.experiment.experiment_content import ExperimentContent
from grisaille.experiment.times.clock import Clock

if TYPE_CHECKING:
    import xarray as xr

DATE = "date"


def clock_of(record: ExperimentContent) -> Clock | None:
    """Return the clock of an experiment; None for static experiments, whose rows are numbered."""
    return None if record.is_static else record.clock


def with_dates(dataset: xr.Dataset, record: ExperimentContent) -> xr.Dataset:
    """Return the same with the clock as attributes of time, and a coordinate ``date`` over time where there are dates.

    Dates of a time zone are ``Timestamp`` objects: arrays of NumPy know no zones, and an hour in UTC that looks like
    one on the wall is worse than an array that is slower.
    """
    clock = clock_of(record)
    if clock is None:
        return dataset
    # "unit", not "units": xarray would decode numbers with units of time into durations
    times = dataset["time"].assign_attrs({"unit": clock.unit, **_origin(clock)})
    dates = clock.dates(times.to_numpy())
    found = dataset.assign_coords(time=times)
    return found if dates is None else found.assign_coords({DATE: ("time", np.asarray(dates))})


def _origin(clock: Clock) -> dict[str, str]:
    if clock.origin is None:
        return {}
    return {"origin": clock.origin.isoformat(), **({"zone": clock.zone} if clock.zone else {})}


def clock_in(dataset: xr.Dataset | xr.DataArray) -> Clock:
    """Return the clock that the times of a trajectory follow, as ``with_dates`` wrote it down."""
    told = dataset["time"].attrs
    origin = pd.Timestamp(told["origin"]) if "origin" in told else None
    if origin is not None and "zone" in told:
        origin = origin.tz_convert(told["zone"])
    return Clock(str(told.get("unit", "")), origin)


def date_column(parts: Sequence[tuple[ExperimentContent, np.ndarray]]) -> pd.DatetimeIndex:
    """Return the dates of one table of several experiments, or None where none of them has dates.

    All in the zone of the first that has one; rows of experiments without dates have none.
    """
    found = [None if clock is None else clock.dates(t) for clock, t in ((clock_of(r), t) for r, t in parts)]
    known = [d for d in found if d is not None]
    if not known:
        return None
    aware = [d for d in known if d.tz is not None]
    if aware and len(aware) == len(known):
        found = [None if d is None else d.tz_convert(aware[0].tz) for d in found]
    like = known[0].dtype
    columns = [
        pd.Series(pd.NaT, index=range(len(t)), dtype=like) if d is None else pd.Series(d)
        for d, (_, t) in zip(found, parts, strict=True)
    ]
    return pd.concat(columns, ignore_index=True)
