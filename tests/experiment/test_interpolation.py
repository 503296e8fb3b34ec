"""Known signals become piecewise polynomials that say the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grisaille.errors import DataError
from grisaille.experiment import make_table
from grisaille.structure import Signal

TIMES = np.linspace(0.0, 10.0, 101)
U = [Signal("u", 0, "input")]


def table(value, hold=None, signals=U):
    return make_table(signals, {"u": value}, hold, TIMES, {"u": None})


def test_number_is_constant_everywhere() -> None:
    assert table(3.0).at(7.123)[0] == 3.0


def test_samples_are_held_by_default() -> None:
    held = table(np.arange(101.0))
    assert held.at(0.05)[0] == 0.0 and held.at(0.1)[0] == 1.0
    assert held.kink.sum() == 100, "every change of value is a kink"


def test_equal_neighbours_are_no_kink() -> None:
    assert table(np.ones(101)).kink.sum() == 0


def test_lines_between_samples() -> None:
    joined = table(TIMES**2, "foh")
    assert joined.at(0.25)[0] == pytest.approx(0.065, abs=1e-14)


def test_spline_is_smooth_and_exact_for_cubics() -> None:
    spline = table(TIMES**3, "spline")
    assert spline.kink.sum() == 0
    assert spline.at(3.3333)[0] == pytest.approx(3.3333**3, rel=1e-12)


def test_own_times_and_series() -> None:
    pair = table(([0.0, 5.0, 20.0], [1.0, 2.0, 3.0]))
    series = table(pd.Series([1.0, 2.0, 3.0], index=[0.0, 5.0, 20.0]))
    for t in (0.0, 4.99, 5.0, 9.9):
        assert pair.at(t)[0] == series.at(t)[0] == (1.0 if t < 5 else 2.0)


def test_function_of_time_and_its_derivative() -> None:
    smooth = table(lambda t: np.sin(3 * t), signals=[Signal("u", 0, "input"), Signal("u", 1, "input")])
    at = np.random.default_rng(1).uniform(0, 10, 200)
    values = np.array([smooth.at(t) for t in at])
    assert np.abs(values[:, 0] - np.sin(3 * at)).max() < 1e-10
    assert np.abs(values[:, 1] - 3 * np.cos(3 * at)).max() < 1e-7


def test_jump_of_a_function_is_found() -> None:
    step = table(lambda t: 1.0 if t >= np.pi else 0.0)
    kinks = step.breaks[step.kink > 0]
    assert kinks.size and np.abs(kinks - np.pi).min() < 1e-9


def test_signals_with_different_breaks_share_a_table() -> None:
    both = make_table(
        [Signal("a", 0, "input"), Signal("b", 0, "input")],
        {"a": ([0.0, 3.3, 12.0], [1.0, 5.0, 5.0]), "b": np.sin(TIMES)},
        {"b": "foh"},
        TIMES,
        {"a": None, "b": None},
    )
    assert both.at(3.35)[0] == 5.0
    assert both.at(3.35)[1] == pytest.approx(0.5 * (np.sin(3.3) + np.sin(3.4)), abs=1e-14)


@pytest.mark.parametrize(
    ("value", "hold", "words"),
    [
        (np.ones(7), None, "7 values for 101 times"),
        (np.r_[np.ones(100), np.nan], None, "value nan in row 100"),
        (([0.0, 2.0, 1.0], [1.0, 1.0, 1.0]), None, "do not increase at row 2"),
        (([0.0, 2.0], [1.0, 1.0]), "foh", "known from 0 to 2, but the simulation needs 0 to 10"),
        (([1.0, 20.0], [1.0, 1.0]), None, "known from 1"),
        ("fast", None, "give a number, samples"),
        (float("inf"), None, "give a finite number"),
        (None, None, "has no values"),
        (np.ones(101), "linear", "one of 'zoh', 'foh', 'spline'"),
        (["a", "b"], None, "not a number"),
    ],
)
def test_bad_signals_are_refused_by_name(value, hold, words) -> None:
    with pytest.raises(DataError, match=words) as caught:
        table(value, hold)
    assert "'u'" in str(caught.value)


def test_unknown_input_gets_the_nearest_name() -> None:
    with pytest.raises(DataError, match="Nearest: force"):
        make_table([Signal("force", 0, "input")], {"forces": 1.0}, None, TIMES, {"force": None})


@pytest.mark.parametrize(("hold", "order"), [("zoh", 1), ("foh", 2)])
def test_impulses_are_refused(hold: str, order: int) -> None:
    signals = [Signal("u", k, "input") for k in range(order + 1)]
    with pytest.raises(DataError, match="differentiates the input 'u'") as caught:
        table(np.sin(TIMES), hold, signals)
    assert "spline" in str(caught.value)
