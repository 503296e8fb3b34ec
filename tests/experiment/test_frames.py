"""Frames to experiments and back."""

from __future__ import annotations

import numpy as np
import pandas as pd

from grisaille.experiment import Experiment

FRAME = pd.DataFrame({"t": [0.0, 1.0, 2.0], "u": [1, 2, 3], "y": [1.0, np.nan, 3.0]})
EXPECTED = Experiment([0, 1, 2], {"u": [1, 2, 3]}, {"y": [1, np.nan, 3]})


def test_time_is_a_column_or_the_index():
    assert Experiment.from_frame(FRAME, "t", ["u"], ["y"]) == EXPECTED
    indexed = FRAME.set_index("t")
    assert Experiment.from_frame(indexed, inputs=["u"], outputs=["y"]) == EXPECTED
    assert Experiment.from_frame(indexed, "t", ["u"], ["y"]) == EXPECTED
    assert Experiment.from_frame(indexed.rename_axis(None), inputs=["u"], outputs=["y"]) == EXPECTED


def test_rows_are_independent_when_the_index_only_numbers_them():
    static = Experiment.from_frame(FRAME[FRAME["u"] != 2], inputs=["u"], outputs=["y"])
    assert static.is_static and static == Experiment(inputs={"u": [1, 3]}, outputs={"y": [1, 3]})


def test_dates_in_the_index():
    dated = FRAME.set_index(pd.date_range("2024-03-01 06:00", periods=3, freq="30min"))
    data = Experiment.from_frame(dated, inputs=["u"], outputs=["y"], unit="h")
    assert data.output_times.tolist() == [0.0, 0.5, 1.0] and str(data.clock.origin) == "2024-03-01 06:00:00"


def test_runs_by_number():
    runs = Experiment.from_frame(
        FRAME.assign(run=[1.0, 1.0, 2.0], T=[5, 5, 6]), "t", [], ["y"], by="run", constants=["T"]
    )
    assert [run.name for run in runs] == ["1", "2"] and runs[1].constants["T"] == 6.0 and runs[1].t0 == 2.0


def test_booleans_and_integers_are_numbers():
    data = Experiment.from_frame(FRAME.assign(u=[True, False, True]), "t", ["u"], ["y"])
    assert data.inputs["u"].values.tolist() == [1.0, 0.0, 1.0]


def test_frames_hold_inputs_at_every_time():
    data = Experiment([0, 1, 2], {"u": ([-1, 0.5, 9], [1, 2, 3])}, {"y": [1, 2, 3], "z": ([1.5], [7.0])})
    frame = data.to_frame()
    assert frame.index.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0] and frame.index.name == "time"
    assert frame["u"].tolist() == [1, 2, 2, 2, 2]
    assert frame["z"].tolist()[3] == 7.0 and frame["z"].count() == 1 and frame["y"].count() == 3


def test_a_frame_gives_the_experiment_back():
    again = Experiment.from_frame(EXPECTED.to_frame(), inputs=["u"], outputs=["y"])
    assert again == EXPECTED
    static = Experiment(inputs={"u": [1, 3]}, outputs={"y": [1, 3]})
    assert Experiment.from_frame(static.to_frame(), inputs=["u"], outputs=["y"]) == static
