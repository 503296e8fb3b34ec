"""Train and test: samples, starts and inputs on both sides of the cut."""

from __future__ import annotations

import numpy as np

from grisaille.experiment import Experiment

T = np.arange(10.0)
DATA = Experiment(
    T,
    {"u": T, "g": 2.0, "s": T**2},
    {"y": T + 1, "z": (T[1::2] - 0.5, [1, 2, 3, 4, 5])},
    name="A",
    hold={"u": "foh", "s": "spline"},
    start={"x": 1.0},
    weights={"y": T + 1},
    skip=2,
)


def test_samples_are_dealt_out_once():
    train, test = DATA.split(0.6)
    for name in DATA.outputs:
        joined = np.concatenate([train.outputs[name].values, test.outputs[name].values])
        np.testing.assert_array_equal(joined, DATA.outputs[name].values)
    np.testing.assert_array_equal(np.concatenate([train.weights["y"], test.weights["y"]]), T + 1)
    assert (train.name, test.name) == ("A (train)", "A (test)")
    assert (train.skip, test.skip) == (2, 0)


def test_the_test_part_runs_through_from_the_known_start():
    train, test = DATA.split(time=5.0)
    assert test.t0 == train.t0 == 0.0 and test.start == train.start == {"x": 1.0}
    assert test.outputs["y"].times[0] == 5.0 and test.grid()[0] == 0.0
    np.testing.assert_array_equal(test.inputs["u"].times, T)


def test_the_test_part_may_begin_at_the_cut():
    _, unknown = DATA.split(time=4.7, restart=True)
    assert unknown.t0 == 5.0 and unknown.start == {"x": None, "*": None}
    _, given = DATA.split(time=4.7, restart={"x": 3.0})
    assert given.start == {"x": 3.0}


def test_inputs_are_cut_where_nothing_is_lost():
    train, test = DATA.split(time=4.7, restart=True)
    np.testing.assert_array_equal(train.inputs["u"].times, T[:6])
    np.testing.assert_array_equal(test.inputs["u"].times, T[5:])
    np.testing.assert_array_equal(test.inputs["s"].times, T)  # a spline depends on all of its samples
    whole = DATA.to_frame()
    for part in (train, test):
        mine = part.to_frame()
        rows = mine.index.intersection(whole.index)
        np.testing.assert_allclose(mine.loc[rows, ["u", "g", "s"]], whole.loc[rows, ["u", "g", "s"]])


def test_an_output_measured_in_one_part_only_is_in_that_part():
    data = Experiment(T, {}, {"y": T, "late": np.where(T < 6, np.nan, T)})
    train, test = data.split(0.5)
    assert set(train.outputs) == {"y"} and set(test.outputs) == {"y", "late"}


def test_rows_can_be_dealt_out_at_random():
    data = Experiment(inputs={"x": T, "g": 1.0}, outputs={"y": T}, weights={"y": T + 1})
    first, rest = data.split(0.3)
    assert first.outputs["y"].values.tolist() == [0, 1, 2] and rest.is_static
    a, b = data.split(0.3, seed=1)
    assert a == data.split(0.3, seed=1)[0] != first
    assert sorted([*a.outputs["y"].values, *b.outputs["y"].values]) == T.tolist()
    np.testing.assert_array_equal(b.weights["y"], b.inputs["x"].values + 1)
