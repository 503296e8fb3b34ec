"""What inputs are where nothing was recorded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import DataError, Experiment, der

T = np.concatenate([np.arange(0.0, 10.0), np.arange(40.0, 50.0)])
"""Nothing from 9 to 40."""
U = np.where(T < 40, 2.0, 5.0)


def given(fill: object = None, u: np.ndarray = U, **options: object) -> Experiment:
    return Experiment(T, {"u": u}, {"y": T}, fill=fill, **options)


def course(experiment: Experiment) -> tuple[list[float], list[float]]:
    """Times and values of u between 8 and 41."""
    times, values = experiment.inputs["u"]
    inside = (times >= 9) & (times <= 40)
    return times[inside].tolist(), values[inside].tolist()


@pytest.mark.parametrize("hold", ["zoh", "foh"])
def test_a_number_is_believed_from_the_next_usual_sample_on(hold: str) -> None:
    assert course(given(0.0, hold=hold)) == (list(np.arange(9.0, 41.0)), [2.0, *[0.0] * 30, 5.0])


def test_interpolation_goes_straight_to_the_next_sample() -> None:
    times, values = course(given("interpolate"))
    assert times == list(np.arange(9.0, 41.0))
    np.testing.assert_allclose(values, 2.0 + 3.0 * (np.array(times) - 9) / 31, rtol=1e-14)


def test_holding_is_what_happens_anyway() -> None:
    assert course(given()) == ([9.0, 40.0], [2.0, 5.0])
    assert course(given("hold")) == (list(np.arange(9.0, 41.0)), [*[2.0] * 31, 5.0])


def test_cells() -> None:
    u = U.copy()
    u[[3, 4, 12]] = np.nan
    times, values = given("hold", u).inputs["u"]
    assert values[[3, 4, np.searchsorted(times, 42.0)]].tolist() == [2.0, 2.0, 5.0]
    assert given(7.0, u).inputs["u"].values[[3, 4]].tolist() == [7.0, 7.0]
    v = np.where(np.isnan(u), np.nan, T)
    np.testing.assert_allclose(given("interpolate", v).inputs["u"].values[:6], T[:6])


def test_by_input_and_from_files(tmp_path) -> None:
    frame = pd.DataFrame({"u": U, "v": U, "y": T}, index=pd.to_datetime("2024-01-01") + pd.to_timedelta(T, "h"))
    read = Experiment.from_frame(frame, inputs=["u", "v"], outputs=["y"], unit="h", fill={"v": 1.0})
    assert len(read.inputs["u"].times) == 20 and read.inputs["v"].values[10] == 1.0 and read.inputs["v"].times[10] == 10
    frame.to_csv(tmp_path / "a.csv", index_label="t")
    again = Experiment.from_csv(tmp_path / "a.csv", "t", ["u", "v"], ["y"], unit="h", fill={"v": 1.0})
    assert again.replace(name=None) == read


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        ("linear", "fill is 'linear'; give 'hold', 'interpolate' or a number"),
        ({"w": 1.0}, "fill= names 'w', which is not among inputs="),
        ({"u": [1.0]}, r"fill for input 'u' is \[1.0\]; give a number"),
        (np.nan, "fill is nan; give a finite number"),
    ],
)
def test_mistakes(fill: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        given(fill)


def test_nothing_to_go_by() -> None:
    u = U.copy()
    u[0] = np.nan
    with pytest.raises(DataError, match="Input 'u' is missing in row 0, where fill='hold' has no sample"):
        given("hold", u)
    u = U.copy()
    u[-1] = np.nan
    assert given("hold", u).inputs["u"].values[-1] == 5.0
    with pytest.raises(DataError, match="Input 'u' is missing in row 19, where fill='interpolate'"):
        given("interpolate", u)
    with pytest.raises(DataError, match="rows of a static experiment are independent"):
        Experiment(inputs={"u": U}, outputs={"y": T}, fill=1.0)


def test_a_heater_that_stays_on_is_said() -> None:
    words = "Input u is not recorded from t = 9 to t = 40, and stays at 2 there"
    assert any(note.startswith(words) for note in given().summary().notes)
    assert not any("not recorded" in note for note in given("hold").summary().notes)
    events = Experiment(T, {"u": ([0.0, 3.0, 4.0, 35.0], [0.0, 1.0, 0.0, 1.0])}, {"y": T})
    assert not any("not recorded" in note for note in events.summary().notes), "switched when something happened"


def test_a_record_that_ends_before_the_gap_says_nothing_of_it() -> None:
    before, after = given().split(time=30.0, restart=True)
    assert not any("not recorded" in note for e in (before, after) for note in e.summary().notes)


def test_a_fit_says_it_too() -> None:
    class Room(gr.Model):
        u, k, x = gr.Input(), gr.Parameter(0.1, bounds=(0.01, 1.0)), gr.Variable(start=0.0)
        y = gr.Output(x, noise=0.1)
        equations = [der(x) == k * (u - x)]

    fit = gr.fit(Room(), given(), ["k"], gr.OutputError())
    assert any("Input u is not recorded from t = 9 to t = 40" in note for note in fit.notes)
