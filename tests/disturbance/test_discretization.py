"""Exact discretisation: closed forms from tiny to stiff steps, singular A, derivatives, grids."""

from __future__ import annotations

from math import factorial

import casadi as ca
import numpy as np
import pytest

from grisaille.disturbance import (
    discretize,
    discretize_symbolic,
    distinct_steps,
    doublings,
    factorize,
    frozen_doublings,
)
from grisaille.errors import DataError

SIZES = [1e-9, 1e-3, 0.3, 1.0, 30.0, 50.0, 1e3, 1e4]


def resonance(omega: float, zeta: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0, 1], [-(omega**2), -2 * zeta * omega]]), np.diag([0.0, 1.0])


def by_eigenvalues(A: np.ndarray, W: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """∫ e^{As} W e^{Aᵀs} ds in eigenvectors: entries times (e^{(λ_i + λ_j*)h} − 1)/(λ_i + λ_j*)."""
    poles, V = np.linalg.eig(A)
    inverse = np.linalg.inv(V)
    sums = poles[:, None] + poles[None, :].conj()
    Q = V @ (inverse @ W @ inverse.conj().T * np.expm1(sums * h) / sums) @ V.conj().T
    return (V @ np.diag(np.exp(poles * h)) @ inverse).real, Q.real


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rate", [1.0, 300.0])
def test_first_order_is_exact(size: float, rate: float) -> None:
    h = size / rate
    F, Q = discretize([[-rate]], [[rate**2]], h)
    assert abs(F[0, 0] - np.exp(-size)) < 2e-15
    assert Q[0, 0] == pytest.approx(-np.expm1(-2 * size) * rate / 2, rel=1e-14)


@pytest.mark.parametrize("size", SIZES[2:])
@pytest.mark.parametrize("omega", [1e-2, 4.0, 1e4])
def test_resonance_is_exact(size: float, omega: float) -> None:
    A, W = resonance(omega, 0.1)
    F, Q = discretize(A, W, size / omega)
    F_exact, Q_exact = by_eigenvalues(A, W, size / omega)
    units = np.array([1 / omega, 1.0])
    assert np.max(np.abs(F - F_exact) / units[:, None] * units) < 1e-13
    assert np.max(np.abs(Q - Q_exact) / np.sqrt(np.outer(np.diag(Q_exact), np.diag(Q_exact)))) < 1e-13


def test_slow_beside_fast_modes_lose_nothing() -> None:
    """x₁' = −a x₁ + v, x₂' = −b x₂ + x₁, a = 10⁴ b: the fast mode sets the scaling, the slow one keeps its digits."""
    a, b, h = 1e4, 1.0, 1.0
    F, Q = discretize([[-a, 0], [1, -b]], np.diag([1.0, 0.0]), h)
    Q22 = (
        np.expm1(-2 * b * h) / (-2 * b) - 2 * np.expm1(-(a + b) * h) / -(a + b) + np.expm1(-2 * a * h) / (-2 * a)
    ) / (a - b) ** 2
    assert F[1, 1] == pytest.approx(np.exp(-b * h), rel=1e-14)
    assert F[1, 0] == pytest.approx((np.exp(-b * h) - np.exp(-a * h)) / (a - b), rel=1e-14)
    assert Q[1, 1] == pytest.approx(Q22, rel=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8])
@pytest.mark.parametrize("h", [1e-3, 1.0, 1e3])
def test_chains_of_integrators_keep_relative_accuracy(n: int, h: float) -> None:
    """State i is the (n − i)-fold integral of white noise: Q_ij = h^{a+b+1}/(a! b! (a+b+1))."""
    A, W = np.diag(np.ones(n - 1), 1), np.zeros((n, n))
    W[-1, -1] = 1.0
    F, Q = discretize(A, W, h)
    k = n - 1 - np.arange(n)
    exact = [[h ** float(a + b + 1) / (factorial(a) * factorial(b) * (a + b + 1)) for b in k] for a in k]
    assert np.allclose(Q, exact, rtol=1e-13, atol=0)
    exact_F = [[h ** float(j - i) / factorial(j - i) if j >= i else 0 for j in range(n)] for i in range(n)]
    assert np.allclose(F, exact_F, rtol=1e-13, atol=0)


def test_factor_of_a_nearly_singular_covariance() -> None:
    """Eight integrators: the scaled covariance has condition 1e10, its factor still reproduces it."""
    A, W = np.diag(np.ones(7), 1), np.diag([0.0] * 7 + [1.0])
    Q = discretize(A, W, 0.01)[1]
    L = factorize(Q)
    assert np.all(np.diag(L) > 0)
    assert np.allclose(L @ L.T, Q, rtol=1e-13, atol=0)


def test_two_steps_are_one() -> None:
    A, W = np.array([[-1.0, 2.0, 0], [-2.0, -0.1, 1.0], [0, 0, 0]]), np.diag([0.0, 1.0, 0.5])
    (F1, Q1), (F2, Q2), (F, Q) = (discretize(A, W, h) for h in (0.3, 1.1, 1.4))
    assert np.allclose(F2 @ F1, F, rtol=1e-14, atol=1e-15)
    assert np.allclose(Q2 + F2 @ Q1 @ F2.T, Q, rtol=1e-13)


def test_many_steps_at_once() -> None:
    A, W = resonance(4.0, 0.1)
    steps = np.array([0.0, 1e-6, 0.01, 3.0])
    F, Q = discretize(A, W, steps)
    for i, h in enumerate(steps):
        one = discretize(A, W, h)
        assert np.allclose(F[i], one[0], rtol=1e-13, atol=1e-15)
        assert np.allclose(Q[i], one[1], rtol=1e-13, atol=1e-20)
    assert np.array_equal(F[0], np.eye(2)) and not Q[0].any()


def test_formulas_agree_with_numbers_and_closed_derivatives() -> None:
    b = ca.SX.sym("b")
    h = 0.7
    F, Q = discretize_symbolic(-b, b**2, h, frozen_doublings([[-2.0]], h))
    derivatives = ca.Function("d", [b], [F, Q, ca.jacobian(F, b), ca.jacobian(Q, b)])
    for rate in (0.1, 2.0, 7.9):
        values = [float(v) for v in derivatives(rate)]
        e = np.exp(-2 * rate * h)
        assert values[0] == pytest.approx(np.exp(-rate * h), rel=1e-13)
        assert values[1] == pytest.approx(rate * (1 - e) / 2, rel=1e-13)
        assert values[2] == pytest.approx(-h * np.exp(-rate * h), rel=1e-12)
        assert values[3] == pytest.approx((1 - e) / 2 + rate * h * e, rel=1e-12)


def test_derivatives_of_a_resonance() -> None:
    """Against Richardson-extrapolated central differences of the numbers."""
    p = ca.SX.sym("p", 2)
    A = ca.vertcat(ca.horzcat(0, 1), ca.horzcat(-(p[0] ** 2), -2 * p[0] * p[1]))
    F, Q = discretize_symbolic(A, ca.diag(ca.SX([0, 1])), 0.3, frozen_doublings(resonance(4.0, 0.1)[0], 0.3))
    exact = np.array(ca.Function("J", [p], [ca.jacobian(ca.vertcat(ca.vec(F), ca.vec(Q)), p)])([4.0, 0.1]))

    def values(omega: float, zeta: float) -> np.ndarray:
        return np.concatenate([m.ravel("F") for m in discretize(*resonance(omega, zeta), 0.3)])

    for column, direction in enumerate(np.eye(2)):
        central = [
            (values(*(np.array([4.0, 0.1]) + d * direction)) - values(*(np.array([4.0, 0.1]) - d * direction)))
            / (2 * d)
            for d in (2e-3, 1e-3)
        ]
        assert np.allclose(exact[:, column], (4 * central[1] - central[0]) / 3, rtol=1e-9, atol=1e-10)


def test_frozen_doublings_leave_room() -> None:
    A = resonance(4.0, 0.1)[0]
    assert frozen_doublings(A, 1.0) >= doublings(resonance(16.0, 0.1)[0], 1.0)


def test_rounded_steps_are_one_step() -> None:
    steps, which = distinct_steps(np.arange(10001) * 0.01 + 100)
    assert steps.size == 1 and not which.any()


def test_distinct_steps_in_order_of_appearance() -> None:
    steps, which = distinct_steps([0.0, 0.5, 0.6, 0.7, 1.2, 3.0])
    assert np.allclose(steps, [0.5, 0.1, 1.8])
    assert which.tolist() == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("times", [[0.0, 0.0], [1.0, 0.5], [0.0, np.nan], [0.0, np.inf]])
def test_other_grids_are_refused(times: list[float]) -> None:
    with pytest.raises(DataError, match="increasing times"):
        distinct_steps(times)


def test_steps_backwards_are_refused() -> None:
    with pytest.raises(DataError, match="steps from zero up"):
        discretize([[-1.0]], [[1.0]], -0.1)


def test_filters_that_are_not_finite_are_refused() -> None:
    with pytest.raises(DataError, match="not finite at these parameter values"):
        discretize([[np.nan]], [[1.0]], 0.1)
