"""Factors of covariances, also of singular ones."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from grisaille.disturbance import factorize, factorize_symbolic, nonzero_pivots
from grisaille.errors import DataError


def test_definite_covariance_has_the_cholesky_factor() -> None:
    X = np.random.default_rng(1).normal(size=(5, 5))
    assert np.allclose(factorize(X @ X.T), np.linalg.cholesky(X @ X.T), rtol=1e-12)


def test_stack_is_factorized_one_by_one() -> None:
    X = np.random.default_rng(1).normal(size=(7, 3, 3))
    Q = X @ np.swapaxes(X, -1, -2)
    assert np.allclose(factorize(Q), np.linalg.cholesky(Q), rtol=1e-12)


def test_units_only_scale_the_factor() -> None:
    X = np.random.default_rng(1).normal(size=(3, 2))
    D = np.diag([1e-12, 1.0, 1e9])
    assert np.allclose(factorize(D @ X @ X.T @ D), D @ factorize(X @ X.T), rtol=1e-7)


@pytest.mark.parametrize("zero", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_zero_rows_stay_zero(zero: list[int]) -> None:
    X = np.random.default_rng(1).normal(size=(3, 3))
    X[zero] = 0
    L = factorize(X @ X.T)
    assert np.allclose(L @ L.T, X @ X.T, atol=1e-14) and not L[zero].any()
    assert nonzero_pivots(L) == tuple(i not in zero for i in range(3))


def test_rank_one() -> None:
    b = np.array([1.0, -2.0, 0.5])
    L = factorize(np.outer(b, b))
    assert np.allclose(L @ L.T, np.outer(b, b), atol=1e-15)
    assert nonzero_pivots(L) == (True, False, False)


@pytest.mark.parametrize("Q", [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0], [0, 1.0]], [[np.nan]]])
def test_indefinite_ones_are_refused(Q: list[list[float]]) -> None:
    with pytest.raises(DataError, match="not positive semidefinite"):
        factorize(Q)


def test_formulas_agree_with_numbers() -> None:
    """Q = X(p) X(p)ᵀ with a zero row and a dependent one, at parameter values other than those of the pivots."""
    p = ca.SX.sym("p")
    X = ca.vertcat(ca.horzcat(p, 0), ca.horzcat(0, 0), ca.horzcat(1, p**2), ca.horzcat(2 * p, 0))

    def covariance(value: float) -> np.ndarray:
        x = np.array([[value, 0], [0, 0], [1, value**2], [2 * value, 0]])
        return x @ x.T

    L = factorize_symbolic(X @ X.T, nonzero_pivots(factorize(covariance(1.0))))
    evaluate = ca.Function("L", [p], [L, ca.jacobian(L, p)])
    for value in (0.3, 1.0, 2.0):
        numbers, slope = (np.array(v) for v in evaluate(value))
        assert np.allclose(numbers, factorize(covariance(value)), atol=1e-14)
        step = 1e-5
        difference = (factorize(covariance(value + step)) - factorize(covariance(value - step))) / (2 * step)
        assert np.allclose(slope.reshape(4, 4, order="F"), difference, atol=1e-8)
