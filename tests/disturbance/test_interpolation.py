"""Lines and splines through grid values."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.disturbance import interpolate, piece_coefficients
from grisaille.errors import DataError

TIMES = np.array([0.0, 0.3, 1.0, 1.1, 2.0, 2.5])
INSTANTS = np.linspace(0, 2.5, 101)


def test_lines_reproduce_lines() -> None:
    values = np.stack([2 * TIMES - 1, -TIMES], axis=-1)
    exact = np.stack([2 * INSTANTS - 1, -INSTANTS], axis=-1)
    assert np.allclose(interpolate(TIMES, values, INSTANTS, "linear"), exact, atol=1e-15)


def test_splines_reproduce_cubics() -> None:
    values = np.stack([TIMES**3 - TIMES, 0 * TIMES + 2], axis=-1)
    exact = np.stack([INSTANTS**3 - INSTANTS, 0 * INSTANTS + 2], axis=-1)
    assert np.allclose(interpolate(TIMES, values, INSTANTS, "spline"), exact, atol=1e-13)


@pytest.mark.parametrize("kind", ["linear", "spline"])
def test_grid_values_are_met_for_every_realization(kind: str) -> None:
    values = np.random.default_rng(1).normal(size=(4, TIMES.size, 2))
    assert np.allclose(interpolate(TIMES, values, TIMES, kind), values, atol=1e-14)  # type: ignore[arg-type]
    one_by_one = [interpolate(TIMES, v, INSTANTS, kind) for v in values]  # type: ignore[arg-type]
    assert np.allclose(interpolate(TIMES, values, INSTANTS, kind), one_by_one, atol=1e-14)  # type: ignore[arg-type]


def test_pieces_are_laid_out_as_signals() -> None:
    values = np.random.default_rng(1).normal(size=(4, TIMES.size, 2))
    assert piece_coefficients(TIMES, values, "linear").shape == (4, 5, 2, 2)
    pieces = piece_coefficients(TIMES, values, "spline")
    assert pieces.shape == (4, 5, 2, 4)
    assert np.allclose(pieces[..., 0], values[:, :-1])


def test_splines_have_continuous_curvature() -> None:
    pieces = piece_coefficients(TIMES, np.random.default_rng(1).normal(size=(TIMES.size, 1)), "spline")[:, 0]
    h = np.diff(TIMES)[:-1]
    curvature_at_ends = 2 * pieces[:-1, 2] + 6 * pieces[:-1, 3] * h
    assert np.allclose(curvature_at_ends, 2 * pieces[1:, 2], atol=1e-11)


def test_refusals() -> None:
    values = np.zeros((TIMES.size, 1))
    with pytest.raises(DataError, match=r"the grid spans 0 … 2\.5"):
        interpolate(TIMES, values, [3.0], "linear")
    with pytest.raises(DataError, match='"linear", "spline" or "exact"'):
        interpolate(TIMES, values, [1.0], "cubic")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="two increasing times"):
        piece_coefficients([0.0], np.zeros((1, 1)), "linear")
    with pytest.raises(DataError, match=r"shape \(5, 1\)"):
        piece_coefficients(TIMES, np.zeros((5, 1)), "linear")
