"""The table and the remarks, and the picture."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.experiment import Experiment

T = np.arange(0.0, 10.0, 0.1)
DATA = Experiment(
    T,
    {"u": np.ones(100), "v": ([0.0, 1.0], [0.0, 1.0]), "s": np.sin(T), "g": 9.81},
    {"y": np.where((T > 3) & (T < 5), np.nan, T), "z": (T[::7], T[::7])},
    name="A",
    hold={"s": "spline"},
    skip=3,
    units={"y": "m"},
    constants={"k": 2},
    start={"x": 1, "v": None},
    weights={"z": 3},
)


def test_the_table_counts():
    table = DATA.summary().table
    assert table.loc["y", "samples"] == "100" and table.loc["y", "measured"] == "81" and table.loc["y", "gaps"] == "1"
    assert table.loc["z", "interval"] == "0.7" and table.loc["u", "role"] == "input, zoh"
    assert table.loc["y", "maximum"] == pytest.approx(9.9) and table.loc["y", "unit"] == "m"
    assert list(table.index) == ["y", "z", "u", "v", "s", "g"]


@pytest.mark.parametrize(
    "words",
    [
        "Experiment 'A': 100 times from 0 to 9.9 s",
        "Input u is constant (1)",
        "Input v is held from its last sample, t = 1, to the end",
        "Output y has a gap from t = 3 to t = 5",
        "first 3 samples of each output are skipped",
        "Constants: k = 2.",
        "Start: x = 1, v unknown.",
        "Weights: z × 3.",
    ],
)
def test_remarks(words):
    assert words in str(DATA.summary())


def test_an_input_that_varies_is_not_remarked_on():
    assert "Input s" not in str(DATA.summary())
    assert not Experiment(T, {"u": T}, {"y": T}).summary().notes


def test_rows_have_no_spans():
    summary = Experiment(inputs={"x": T}, outputs={"y": T}).summary()
    assert "100 independent rows" in repr(summary) and "interval" not in summary.table
    assert summary.table.loc["x", "role"] == "input"
    assert "<table" in summary._repr_html_()


def test_uneven_intervals_are_shown_as_a_range():
    assert Experiment([0, 1, 3], {}, {"y": [1, 2, 3]}).summary().table.loc["y", "interval"] == "1 … 2"


def test_an_encoder_is_recognised():
    steps = Experiment(T, {}, {"y": np.round(np.sin(T) * 50) / 50 + 7, "z": np.sin(T), "k": np.full(100, 3.0)})
    text = str(steps.summary())
    assert "Output y is recorded in steps of 0.02" not in text, "as many values as samples"
    coarse = Experiment(T, {}, {"y": np.round(np.sin(T) * 5) / 5 + 7})
    assert (
        "Output y is recorded in steps of 0.2 (11 different values in 100 samples): that is noise of at least 0.058"
        in str(coarse.summary())
    )
    assert "Output k is constant (3)" in text and "Output z" not in text
