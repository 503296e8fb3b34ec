"""Grids of switching formulas: gaps that are rounding do not ask for finer ones."""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.experiment import grid_with_turning_points, rounding_of


def test_rounding_is_bounded() -> None:
    t = ca.SX.sym("t")
    cancelled = ((t + 1e6) ** 2 - 1e12) - t * (t + 2e6)
    at = np.linspace(0.0, 1.0, 1001)
    value, bound = (
        np.array(ca.Function("f", [t], [f])(at[None, :]).full()).ravel() for f in (cancelled, rounding_of(cancelled, t))
    )
    assert 0 < np.abs(value).max() <= bound.min() < 1e3 * np.abs(value).max()


def test_a_gap_of_rounding_needs_no_finer_grid() -> None:
    t = ca.SX.sym("t")
    a = 2 + ca.sin(t)
    x = (a + 1) / 2
    for _ in range(6):
        x = (x + a / x) / 2
    grid = np.linspace(0.0, 1.0, 1001)
    assert grid_with_turning_points(ca.fabs(x * x - a) > 1e-12, t, grid).size == grid.size


def test_a_short_change_is_still_found() -> None:
    t = ca.SX.sym("t")
    grid = np.linspace(0.0, 1.0, 101)
    added = np.setdiff1d(grid_with_turning_points(ca.fabs(t - 0.505) < 1e-7, t, grid), grid)
    assert np.abs(added - 0.505).min() < 1e-7
