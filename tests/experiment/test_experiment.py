"""Experiments made from arrays: what they hold, what estimators read from them, equality, pickling."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille.experiment import Experiment, SampledSignal

T = np.linspace(0.0, 2.0, 5)


def rich():
    return Experiment(
        T,
        {"u": T**2, "g": 9.81, "v": ([0.0, 1.0], [3.0, 4.0])},
        {"y": [1.0, np.nan, 3.0, 4.0, 5.0], "z": ([0.25, 1.75], [7.0, 8.0])},
        name="A",
        hold={"u": "foh"},
        constants={"T": 300},
        start={"x": 0.1, "v": None, "w": gr.Normal(1.0, 0.2)},
        t0=-0.0,
        weights={"y": [1.0, 2.0, 3.0, 4.0, 5.0], "z": 0.5},
        skip=1,
        unit="h",
        units={"u": "N"},
    )


def test_signals_are_pairs_or_numbers():
    data = rich()
    assert isinstance(data.inputs["u"], SampledSignal) and data.inputs["g"] == 9.81
    np.testing.assert_array_equal(data.inputs["v"].times, [0.0, 1.0])
    assert dict(data.hold) == {"u": "foh", "g": "zoh", "v": "zoh"}
    assert data.constants["T"] == 300.0 and data.start["v"] is None and data.start["w"] == gr.Normal(1.0, 0.2)
    assert (data.t0, data.skip, data.clock.unit, data.is_static) == (0.0, 1, "h", False)


def test_measurements_leave_out_gaps_and_skipped_samples():
    times, values, weights = rich().measurements("y")
    np.testing.assert_array_equal(times, [1.0, 1.5, 2.0])
    np.testing.assert_array_equal(values, [3.0, 4.0, 5.0])
    np.testing.assert_array_equal(weights, [3.0, 4.0, 5.0])
    z = rich().measurements("z")
    assert (z.times.tolist(), z.values.tolist(), z.weights.tolist()) == ([1.75], [8.0], [0.5])


def test_times_of_outputs_are_united():
    data = rich()
    np.testing.assert_array_equal(data.output_times, [0.0, 0.25, 0.5, 1.0, 1.5, 1.75, 2.0])
    np.testing.assert_array_equal(data.time, data.output_times)
    early = data.replace(t0=-1.0, inputs={"u": 1.0}, hold="zoh", units={})
    np.testing.assert_array_equal(early.grid(), [-1.0, *data.output_times])


def test_start_holds_at_the_first_row_even_when_nothing_is_measured_there():
    assert Experiment(T, {}, {"y": [np.nan, 1, 2, 3, 4]}).t0 == 0.0
    assert Experiment(outputs={"y": ([3.0, 4.0], [1.0, 2.0]), "z": ([2.0], [1.0])}).t0 == 2.0
    assert Experiment(T, {"u": T}, {"y": ([1.0], [2.0])}).t0 == 0.0


def test_simulate_reads_the_inputs_as_meant():
    class Sum(gr.Model):
        """Shows its inputs."""

        x = gr.Variable(start=0.0)
        a, b, c = gr.Input(), gr.Input(), gr.Input()
        equations = [gr.der(x) == a + b + c]

    t = np.linspace(0.0, 4.0, 9)
    data = Experiment(
        t,
        {"a": (t[::2], np.arange(5.0)), "b": (t[::4], [0.0, 2.0, 1.0]), "c": 3.0},
        {"y": t},
        hold={"a": "zoh", "b": "foh"},
    )
    inputs, hold = data.input_signals(["a", "b", "c"])
    run = gr.simulate(Sum(), data.grid(), inputs=inputs, hold=hold)
    frame = data.to_frame()
    for name in "abc":
        np.testing.assert_allclose(run[name], frame[name], atol=1e-12)
    assert frame["a"][0.5] == 0.0 and frame["a"][1.0] == 1.0 and frame["b"][1.0] == 1.0


def test_input_signals_can_be_chosen():
    assert rich().input_signals(["g", "absent"]) == ({"g": 9.81}, {"g": "zoh"})
    assert set(rich().input_signals()[0]) == {"u", "g", "v"}


def test_series_bring_their_times_unless_they_only_number_rows():
    frame = pd.DataFrame({"t": T, "u": T, "y": T})
    plain = Experiment(frame["t"], {"u": frame["u"]}, {"y": frame["y"]})
    assert plain == Experiment(T, {"u": T}, {"y": T})
    some = frame[::2]
    assert Experiment(some["t"], {"u": some["u"]}, {"y": some["y"]}) == Experiment(T[::2], {"u": T[::2]}, {"y": T[::2]})
    own = Experiment(T, {}, {"y": pd.Series([1.0, 2.0], index=[0.5, 1.5])})
    np.testing.assert_array_equal(own.outputs["y"].times, [0.5, 1.5])


def test_labelled_arrays_of_a_simulation_are_signals():
    import xarray as xr

    y = xr.DataArray(T**2, {"time": T}, dims="time")
    assert Experiment(outputs={"y": y}) == Experiment(y["time"], {}, {"y": y}) == Experiment(T, {}, {"y": T**2})


@pytest.mark.parametrize(
    "values", [[1, None, 3, 4, 5], np.ma.masked_invalid([1, np.nan, 3, 4, 5]), pd.array([1, None, 3, 4, 5], "Int64")]
)
def test_missing_values_have_many_faces(values):
    assert Experiment(T, {}, {"y": values}) == Experiment(T, {}, {"y": [1, np.nan, 3, 4, 5]})


def test_rows_without_time_are_independent():
    data = Experiment(inputs={"x": [3.0, 1.0, 1.0], "g": 2.0}, outputs={"y": [1.0, np.nan, 2.0]}, skip=1)
    assert data.is_static and data.t0 is None and data.time is None
    np.testing.assert_array_equal(data.grid(), [0.0, 1.0, 2.0])
    assert data.measurements("y").times.tolist() == [2.0]
    assert data.replace(name="B").is_static and data.replace(skip=0) != data


def test_an_input_without_end_may_hold_but_a_record_may_not_stop():
    Experiment(T, {"u": ([0.0, 0.1], [0.0, 1.0])}, {"y": T})
    Experiment(T, {"u": (T[:4], T[:4])}, {"y": T})  # one interval beyond
    with pytest.raises(gr.DataError, match="outside the span"):
        Experiment(T, {"u": (T / 4, T)}, {"y": T})


def test_content_decides_equality():
    a, b = rich(), rich()
    assert a == b and hash(a) == hash(b) and len(a.fingerprint) == 64
    swapped = a.replace(inputs=dict(reversed(a.inputs.items())))
    assert swapped == a
    for change in (
        {"name": "B"},
        {"skip": 0},
        {"hold": "zoh"},
        {"constants": {"T": 301}},
        {"start": {"x": 0.2}},
        {"weights": None},
        {"t0": -1.0, "inputs": {"u": 1.0}, "hold": "zoh"},
        {"outputs": {"y": T, "z": [1.0, 2.0]}},
    ):
        assert a.replace(**change) != a


def test_pickled_copies_are_equal_and_stay_protected():
    again = pickle.loads(pickle.dumps(rich()))
    assert again == rich() and copy.deepcopy(again) is again
    for array in (*again.outputs["y"], again.weights["y"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


def test_later_changes_of_the_users_arrays_do_not_reach_inside():
    t, y = T.copy(), T.copy()
    data = Experiment(t, {}, {"y": y})
    y[0] = t[0] = -99.0
    assert data == Experiment(T, {}, {"y": T})


def test_representation_is_one_line():
    assert repr(rich()) == "<Experiment 'A': outputs y, z; inputs u, g, v; 7 times from 0 to 2 h>"
    assert repr(Experiment(outputs={"y": T})) == "<Experiment: outputs y; 5 independent rows>"


def test_replacing_outputs_by_fewer_keeps_the_weights_of_those():
    t = np.arange(5.0)
    data = gr.Experiment(t, outputs={"a": t, "b": 2 * t}, weights={"b": 3.0})
    assert data.replace(outputs={"b": t}).weights == {"b": 3.0}
    assert data.replace(outputs={"a": t}).weights == {"a": 1.0}
