"""Pictures of trajectories: one panel per variable, labelled with units."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from grisaille.errors import DataError
from grisaille.reporting import trajectories

RESULT = xr.Dataset(
    {
        "x": ("time", np.arange(4.0), {"units": "m"}),
        "v": ("time", np.ones(4)),
        "d(x)": (("time", "parameter"), np.zeros((4, 2))),
    },
    {"time": np.arange(4.0), "parameter": ["a", "b"]},
    {"model": "Fall"},
)


def test_one_panel_per_variable_with_its_unit() -> None:
    figure = trajectories(RESULT)
    assert [axes.get_ylabel() for axes in figure.axes] == ["x [m]", "v"]
    assert np.array_equal(figure.axes[0].lines[0].get_ydata(), np.arange(4.0))


def test_sensitivities_are_lines_with_a_legend() -> None:
    axes = trajectories(RESULT, ["d(x)"]).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]


def test_unknown_variable_is_refused() -> None:
    with pytest.raises(DataError, match="no variable 'y'"):
        trajectories(RESULT, ["y"])
