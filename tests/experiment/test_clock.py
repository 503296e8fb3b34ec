"""Dates as numbers of a unit, with and without time zones."""

from __future__ import annotations

import datetime as dt
import io

import numpy as np
import pandas as pd
import pytest

from grisaille.errors import DataError
from grisaille.experiment import Experiment


@pytest.mark.parametrize(("unit", "last"), [("s", 86400.0), ("min", 1440.0), ("h", 24.0), ("d", 1.0)])
def test_units(unit, last):
    data = Experiment(pd.date_range("2024-01-01", periods=2), {}, {"y": [1, 2]}, unit=unit)
    assert data.output_times.tolist() == [0.0, last] and data.clock.unit == unit


@pytest.mark.parametrize(
    "time",
    [
        ["2024-01-01T00:00:00.250", "2024-01-01 00:00:01"],
        [dt.datetime(2024, 1, 1, 0, 0, 0, 250_000), dt.datetime(2024, 1, 1, 0, 0, 1)],
        np.array(["2024-01-01T00:00:00.250", "2024-01-01T00:00:01"], dtype="datetime64[ms]"),
        pd.Series(pd.to_datetime(["2024-01-01T00:00:00.250", "2024-01-01T00:00:01.000"])),
    ],
)
def test_kinds_of_dates(time):
    assert Experiment(time, {}, {"y": [1, 2]}).output_times.tolist() == [0.0, 0.75]


def test_durations_are_numbers():
    data = Experiment(pd.to_timedelta([0, 90], unit="s"), {}, {"y": [1, 2]}, unit="min")
    assert data.output_times.tolist() == [0.0, 1.5] and data.clock.origin is None


def test_the_clock_change_is_no_jump():
    local = "t,y\n2024-03-31 01:30,1\n2024-03-31 03:30,2\n"
    data = Experiment.from_csv(io.StringIO(local), "t", [], ["y"], unit="h", zone="Europe/Berlin")
    assert data.output_times.tolist() == [0.0, 1.0]
    offsets = "t,y\n2024-10-27T02:30+02:00,1\n2024-10-27T02:30+01:00,2\n"
    assert Experiment.from_csv(io.StringIO(offsets), "t", [], ["y"], unit="h").output_times.tolist() == [0.0, 1.0]


def test_an_hour_that_happens_twice_is_told_apart_by_order():
    hours = "t,y\n2024-10-27 01:00,1\n2024-10-27 02:00,1\n2024-10-27 02:00,1\n2024-10-27 03:00,1\n"
    data = Experiment.from_csv(io.StringIO(hours), "t", [], ["y"], unit="h", zone="Europe/Berlin")
    assert data.output_times.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_zones_are_compared_in_utc():
    y = pd.Series([1.0, 2.0], pd.to_datetime(["2024-06-01 12:00", "2024-06-01 13:00"]).tz_localize("Europe/Berlin"))
    z = pd.Series([1.0], pd.to_datetime(["2024-06-01 10:30"]).tz_localize("UTC"))
    assert Experiment(outputs={"y": y, "z": z}, unit="min").outputs["z"].times.tolist() == [30.0]


def test_start_and_cut_may_be_dates():
    days = pd.date_range("2024-01-01", periods=4)
    data = Experiment(days, {}, {"y": [1, 2, 3, 4]}, t0="2023-12-31", unit="d")
    assert data.t0 == -1.0
    train, test = data.split(time=pd.Timestamp("2024-01-03"))
    assert (len(train.output_times), len(test.output_times)) == (2, 2)
    assert test.clock == data.clock
    assert "from 2024-01-01 00:00 to 2024-01-04 00:00 (from 0 to 3 d)" in str(data.summary())


def test_numbers_may_be_in_any_unit():
    assert "from 1900 to 1920 years" in repr(Experiment([1900, 1920], {}, {"hare": [30, 40]}, unit="years"))


def test_summer_time_that_ends_is_not_to_be_sorted():
    local = pd.date_range("2023-10-29", periods=15, freq="30min", tz="Europe/Berlin").tz_localize(None)
    with pytest.raises(DataError, match=r"end of summer time .so it was in Europe/Berlin.*neither sort nor drop"):
        Experiment(local, {}, {"y": np.arange(15.0)})
    with pytest.raises(DataError, match="Sort the rows by time"):
        Experiment(pd.to_datetime(["2024-01-01 12:00", "2024-01-01 08:00"]), {}, {"y": [1.0, 2.0]})


def test_an_instant_without_a_zone_is_in_that_of_the_data():
    hours = pd.date_range("2023-06-01", periods=25, freq="h", tz="Europe/Berlin")
    data = Experiment(hours, {}, {"y": np.arange(25.0)}, unit="h")
    assert data.split(time="2023-06-01 12:00")[1].output_times[0] == 12.0
    assert data.split(time="2023-06-01 12:00+00:00")[1].output_times[0] == 14.0
    with pytest.raises(DataError, match="given with a time zone, but other times of this experiment have none"):
        Experiment(hours.tz_localize(None), {}, {"y": np.arange(25.0)}).split(time=pd.Timestamp("2023-06-01T12Z"))


@pytest.mark.parametrize("step", ["2h", "120 min", pd.Timedelta("2h"), np.timedelta64(2, "h"), 2.0])
def test_durations_in_words(step):
    hours = pd.date_range("2023-06-01", periods=25, freq="h")
    data = Experiment(hours, {}, {"y": np.arange(25.0)}, unit="h")
    assert data.resample(step, outputs="nearest").output_times.tolist() == list(np.arange(0.0, 25.0, 2.0))
    with pytest.raises(DataError, match="step is 'often'; give a number, or a duration such as '15min'"):
        data.resample("often")
