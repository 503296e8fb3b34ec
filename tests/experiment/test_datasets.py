"""Datasets keep everything, in memory and in a file; variables of other datasets can be named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import grisaille as gr
from grisaille.experiment import Experiment

T = np.arange(6.0)
WHOLE = {
    "many rates": Experiment(
        T, {"legs[0].u": (T[::5], [1, 2]), "g": 9.81}, {"y": np.where(T == 2, np.nan, T), "z": (T[::2], [1, 2, 3])},
        name="A", hold={"legs[0].u": "foh"}, constants={"k": 2}, t0=0,
        start={"x": 1, "v": None, "w": gr.Normal(1, 2), "q": gr.LogNormal(1, 2), "p": gr.Uniform(0, 1)},
        weights={"y": T + 1, "z": 2.0}, skip=1, unit="min", units={"y": "m"},
    ),
    "dates": Experiment(pd.date_range("2024-01-01", periods=6), {}, {"y": T}, unit="d", t0="2023-12-31"),
    "zone": Experiment(pd.date_range("2024-03-30", periods=6, tz="Europe/Berlin"), {}, {"y": T}, unit="h"),
    "rows": Experiment(inputs={"x": T, "g": 2}, outputs={"y": T}, weights={"y": T + 1}),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_a_dataset_gives_the_experiment_back(case):
    assert Experiment.from_dataset(WHOLE[case].to_dataset()) == WHOLE[case]


@pytest.mark.parametrize("case", WHOLE)
def test_a_file_gives_the_experiment_back(case, tmp_path):
    WHOLE[case].to_dataset().to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as opened:
        again = Experiment.from_dataset(opened.load())
    assert again == WHOLE[case]


def test_signals_with_the_same_times_share_a_dimension():
    dataset = WHOLE["many rates"].to_dataset()
    assert dataset["y"].dims == ("time",) and dataset["z"].dims == ("time(z)",)
    assert dataset["weight(y)"].dims == ("time",) and dataset["y"].attrs == {"role": "output", "units": "m"}


def test_arguments_can_be_changed_on_the_way():
    again = Experiment.from_dataset(WHOLE["rows"].to_dataset(), name="again")
    assert again == WHOLE["rows"].replace(name="again")


def test_variables_of_a_simulation():
    class Decay(gr.Model):
        """A decay."""

        x = gr.Variable(start=1.0, unit="mol")
        u = gr.Input(default=0.5)
        y = gr.Output(2 * x, unit="mol")
        equations = [gr.der(x) == u - x]

    run = gr.simulate(Decay(), T)
    data = Experiment.from_dataset(run, ["u"], {"y": "x"}, start={"x": 1.0})
    np.testing.assert_array_equal(data.outputs["y"].values, run["x"].values)
    assert data.units["y"] == "mol" and data.start["x"] == 1.0
    data.check(Decay())
