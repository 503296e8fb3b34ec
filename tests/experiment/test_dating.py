"""Dates beside times: of one clock, over the change to summer time, in tables of several experiments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.dates import num2date

from grisaille.drawing import abscissae, label_time, panels
from grisaille.errors import DataError
from grisaille.experiment import Experiment
from grisaille.experiment.times import Clock, clock_in, date_column, with_dates

NIGHT = pd.date_range("2024-03-30 23:00", periods=6, freq="h", tz="Europe/Berlin")
"""The clock is put forward at two."""


def experiment(stamps, unit="h", **options):
    return Experiment(stamps, {}, {"y": np.arange(len(stamps), dtype=float)}, unit=unit, **options)


def trajectory(record):
    return with_dates(xr.Dataset({"y": ("time", record.time)}, {"time": record.time}), record)


@pytest.mark.parametrize("unit", ["s", "min", "h", "d"])
def test_a_clock_gives_its_dates_back(unit):
    assert experiment(NIGHT, unit).clock.dates(experiment(NIGHT, unit).time).equals(NIGHT.as_unit("us"))


@pytest.mark.parametrize("hours", [NIGHT, pd.date_range("2024-10-26 23:00", periods=6, freq="h", tz="Europe/Berlin")])
def test_dates_of_trajectories_are_told_in_their_zone(hours):
    found = trajectory(experiment(hours))
    assert list(found["date"].values) == list(hours)
    assert found.to_dataframe()["date"].dt.tz.key == "Europe/Berlin"
    assert clock_in(found).dates(found["time"]).equals(hours.as_unit("us"))
    assert clock_in(found.isel(time=slice(2, 4))).stamp(2.0) == hours[2]


def test_dates_without_a_zone_are_dates_of_numpy():
    plain = NIGHT.tz_localize(None)
    found = trajectory(experiment(plain))
    assert found["date"].dtype.kind == "M" and (found["date"].values == plain.to_numpy()).all()
    assert clock_in(found).label == "time"


def test_times_without_dates_have_none():
    found = trajectory(experiment(np.arange(4.0)))
    assert "date" not in found.coords and clock_in(found) == Clock("h") and clock_in(found).label == "time [h]"


def test_a_column_for_several_experiments():
    berlin, utc, numbers = experiment(NIGHT), experiment(NIGHT.tz_convert("UTC")), experiment(np.arange(2.0))
    column = date_column([(numbers, numbers.time), (berlin, berlin.time), (utc, utc.time)])
    assert column.dt.tz.key == "Europe/Berlin" and column[:2].isna().all()
    assert list(column[2:8]) == list(NIGHT) == list(column[8:])
    assert date_column([(numbers, numbers.time)]) is None


def test_axes_are_linear_in_true_time_and_labelled_on_the_wall():
    record = experiment(NIGHT)
    figure, ((axes,),) = panels(None, 1, size=(6, 3))
    axes.plot(abscissae(record.clock, record.time), record.time)
    label_time(axes, record.clock)
    figure.draw_without_rendering()
    drawn = axes.lines[0].get_xdata()
    assert (np.diff(drawn) == np.timedelta64(1, "h")).all()
    assert axes.get_xlabel() == "time, Europe/Berlin"
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    shown = {f"{num2date(t, tz=NIGHT.tz):%H:%M}": text.get_text() for t, text in ticks}
    assert "03:00" in shown.values() and "02:00" not in shown.values(), shown
    assert all(text in (hour, "Mar-31", "31") for hour, text in shown.items())


@pytest.mark.parametrize(
    ("value", "hours"),
    [("2 days", 48.0), ("90min", 1.5), (pd.Timedelta(hours=3), 3.0), (7.5, 7.5), ("2024-03-31", 1.0)],
)
def test_an_instant_may_be_a_duration(value, hours):
    assert experiment(NIGHT).clock.instant(value, "time of the cut") == hours


def test_a_cut_after_a_while():
    first, rest = experiment(NIGHT).split(time="3h")
    assert first.time.tolist() == [0.0, 1.0, 2.0] and rest.time.tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(DataError, match="leaves one part empty"):
        experiment(NIGHT).split(time="2 days")


def test_skipping_for_a_while():
    assert experiment(NIGHT, skip="2h").skip == 2 and experiment(NIGHT, skip=pd.Timedelta("90min")).skip == 2
    assert experiment(np.arange(6.0), skip="1h").skip == 1
    early = experiment(NIGHT, t0="2024-03-30 22:00", skip="2h")
    assert early.skip == 1, "from the beginning, not from the first row"
    with pytest.raises(DataError, match=r"skip = 6 leaves nothing of output 'y'"):
        experiment(NIGHT, skip="1 day")
    half = (pd.date_range(NIGHT[0], periods=12, freq="30min"), np.arange(12.0))
    with pytest.raises(DataError, match="leave out 2 samples of 'y' and 4 of 'z'"):
        Experiment(NIGHT, {}, {"y": np.arange(6.0), "z": half}, unit="h", skip="2h")


@pytest.mark.parametrize("given", ["2 days", "2024-03-31", pd.Timedelta("2h"), pd.Timestamp("2024-03-31")])
def test_a_time_is_no_fraction(given):
    with pytest.raises(DataError, match=r"is no fraction; for the time of the cut write split\(time="):
        experiment(NIGHT).split(given)
