"""Pictures show what is there: points for outputs, held or joined lines for inputs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from grisaille.experiment import Experiment

T = np.arange(5.0)
DATA = Experiment(
    T,
    {"u": T, "f": T, "s": T**2, "g": 9.81},
    {"y": [1.0, np.nan, 2.0, 3.0, 4.0]},
    name="A",
    hold={"f": "foh", "s": "spline"},
    skip=2,
    units={"y": "m"},
)


def test_one_panel_per_signal():
    figure = DATA.plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["y [m]", "u", "f", "s", "g"]
    assert figure.axes[-1].get_xlabel() == "time [s]" and figure.get_suptitle() == "A"


def test_lines_follow_the_hold():
    _, held, joined, spline, number = (axes.lines for axes in DATA.plot().axes)
    assert held[0].get_drawstyle() == "steps-post" and joined[0].get_drawstyle() == "default"
    t, s = spline[0].get_data()
    np.testing.assert_allclose(s, t**2, atol=1e-12)
    assert list(number[0].get_ydata()) == [9.81, 9.81]


def test_skipped_samples_are_hollow():
    kept, skipped = DATA.plot("y").axes[0].lines
    assert len(kept.get_xdata()) == 3 and len(skipped.get_xdata()) == 2 and skipped.get_fillstyle() == "none"


@pytest.mark.parametrize("time", [None, pd.date_range("2024-01-01", periods=5, tz="UTC")])
def test_rows_and_dates_can_be_saved(time, tmp_path):
    figure = Experiment(time, {"u": T}, {"y": T}).plot()
    assert figure.axes[-1].get_xlabel() == ("row" if time is None else "time, UTC")
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000
