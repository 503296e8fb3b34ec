"""A quadratic form between bounds, in any units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from grisaille.numerics import OWN_UNITS, HessianQuadratic, bounded_step, is_definite


@pytest.mark.parametrize("seed", range(40))
def test_a_step_between_bounds_goes_down_and_is_the_least_where_no_bound_holds(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8))
    J, r = random.normal(size=(n + 2, n)) * 10.0 ** random.uniform(-9, 9, n), random.normal(size=n + 2)
    size = 1 / np.sqrt((J**2).sum(axis=0))
    lower, upper = -random.exponential(size=n) * size, random.exponential(size=n) * size
    lower[random.random(n) < 0.3], upper[random.random(n) < 0.3] = -np.inf, np.inf
    fixed = random.random(n) < 0.1
    lower[fixed], upper[fixed] = 0.0, 0.0
    model = HessianQuadratic(J.T @ r, J.T @ J, OWN_UNITS)
    found = bounded_step(model, lower, upper, 0.0)
    assert np.all((found >= lower) & (found <= upper))
    assert not found.any() or model.slope @ found + 0.5 * model.bend(found) < 0
    inside = (found > lower) & (found < upper)
    np.testing.assert_allclose(((model.hessian @ found + model.slope) * size)[inside], 0.0, atol=1e-7)
    whole = bounded_step(model, np.full(n, -np.inf), np.full(n, np.inf), 0.0)
    np.testing.assert_allclose(whole / size, lsq_linear(J * size, -r).x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_whether_a_matrix_is_definite_does_not_depend_on_units(scale: float) -> None:
    H = np.array([[2.0, 1.0], [1.0, 1.0]])
    units = np.array([1.0, scale])
    assert is_definite(H * np.outer(units, units))
    assert not is_definite((H - 1.1 * np.eye(2)) * np.outer(units, units))
    assert not is_definite(np.diag([1.0, 0.0])) and not is_definite(np.array([[np.nan]]))


@pytest.mark.parametrize("S", [[[-1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]])
def test_matrices_that_are_not_positive_definite_are_seen_without_a_warning(S: list[list[float]]) -> None:
    assert not is_definite(np.array(S))


def test_units_do_not_matter_to_a_step() -> None:
    S, units = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([1e-150, 1e140])
    model = HessianQuadratic(np.array([-1.0, 2.0]) * units, S * np.outer(units, units), OWN_UNITS)
    found = bounded_step(model, np.full(2, -np.inf), np.full(2, np.inf), 0.0)
    np.testing.assert_allclose(found * units, np.linalg.solve(S, [1.0, -2.0]), rtol=1e-12)
