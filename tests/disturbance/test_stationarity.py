"""Stationary covariances: closed forms, formulas, refusals."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from grisaille.disturbance import balancing_units, cross_covariance_symbolic, stationary_covariance
from grisaille.errors import ModelError


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e6])
def test_first_order(rate: float) -> None:
    assert stationary_covariance([[-rate]], [[1.0]])[0, 0] == pytest.approx(1 / (2 * rate), rel=1e-14)


@pytest.mark.parametrize("omega", [1e-3, 4.0, 1e5])
@pytest.mark.parametrize("zeta", [1e-4, 0.1, 5.0])
def test_resonance(omega: float, zeta: float) -> None:
    P = stationary_covariance([[0, 1], [-(omega**2), -2 * zeta * omega]], np.diag([0.0, 1.0]))
    assert P[0, 0] == pytest.approx(1 / (4 * zeta * omega**3), rel=1e-11)
    assert P[1, 1] == pytest.approx(1 / (4 * zeta * omega), rel=1e-11)
    assert abs(P[0, 1]) < 1e-11 * np.sqrt(P[0, 0] * P[1, 1])


@pytest.mark.parametrize("omega", [1e-3, 4.0, 1e4])
def test_formula_and_its_derivative(omega: float) -> None:
    """In units balanced at another frequency, as when parameters move."""
    p, zeta = ca.SX.sym("p", 2), 0.1
    A = ca.vertcat(ca.horzcat(0, 1), ca.horzcat(-(p[0] ** 2), -2 * p[0] * p[1]))
    units = balancing_units([[0, 1], [-((2 * omega) ** 2), -2 * zeta * omega]])
    P = cross_covariance_symbolic(A, A, ca.diag(ca.SX([0, 1])), units, units)
    evaluate = ca.Function("P", [p], [P, ca.jacobian(P[0, 0], p)])
    value, slope = (v.full() for v in evaluate([omega, zeta]))
    exact = np.array([1 / (4 * zeta * omega**3), 1 / (4 * zeta * omega)])
    assert np.allclose(value / np.sqrt(np.outer(exact, exact)), np.eye(2), atol=1e-13)
    assert np.allclose(slope, [[-3 * exact[0] / omega, -exact[0] / zeta]], rtol=1e-11, atol=0)


def test_cross_covariance_of_two_filters() -> None:
    """E x₁x₂ = ρ/(a + b) for dx₁ = −a x₁ dt + dv₁, dx₂ = −b x₂ dt + dv₂, E dv₁dv₂ = ρ dt."""
    P = cross_covariance_symbolic(ca.SX(-2.0), ca.SX(-3.0), ca.SX(0.5), [1.0], [8.0])
    assert float(ca.evalf(P)) == pytest.approx(0.5 / 5)


@pytest.mark.parametrize(("A", "pole"), [([[0.0]], "0"), ([[0.1]], "0.1"), ([[0, 1], [-16.0, 0.0]], "4j")])
def test_processes_without_one_are_refused(A: list[list[float]], pole: str) -> None:
    with pytest.raises(ModelError, match=rf'disturbance w has no stationary distribution.*{pole}.*start="zero"'):
        stationary_covariance(A, np.eye(len(A)), "disturbance w")
