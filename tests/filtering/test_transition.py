"""Exact transitions against matrix exponentials and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from grisaille.disturbance import constant_dual
from grisaille.filtering.exact import noise_covariance, polynomial_nodes, state_transition, transition

A = np.array([[-0.3, 1.0, 0.0], [0.2, -2.0, 0.4], [0.0, 0.0, 0.0]])
"""Singular: an integrator feeds the second state."""
W = np.diag([0.0, 0.5, 0.2])


def integral(function):
    """Over [0, 1], by Gauss–Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    return sum(w / 2 * function((1 + x) / 2) for x, w in zip(nodes, weights, strict=True))


@pytest.mark.parametrize("h", [0.01, 0.7, 12.0])
def test_state_transition(h):
    F, Psi = state_transition(constant_dual(A, 0), h, 2)
    assert np.allclose(F[0], expm(A * h), rtol=1e-13, atol=1e-14)
    for j in range(3):
        exact = integral(lambda s, j=j: expm(A * h * (1 - s)) * s**j) * h
        assert np.allclose(Psi[j, 0], exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("h", [0.01, 0.7, 12.0])
def test_noise_that_varies_inside_the_step(h):
    parts = np.stack([W, 0.3 * W, 0.1 * np.ones((3, 3))])
    Q = noise_covariance(constant_dual(A, 0), h, constant_dual(parts, 0))[0]

    def integrand(s):
        E = expm(A * h * (1 - s))
        return E @ (parts[0] + parts[1] * s + parts[2] * s**2) @ E.T

    assert np.allclose(Q, integral(integrand) * h, rtol=1e-11, atol=1e-13)


def test_derivatives_are_those_of_the_numbers():
    random = np.random.default_rng(1)
    dA, dW = random.normal(size=(2, 3, 3))
    dW = dW + dW.T

    def at(eps):
        return state_transition(constant_dual(A + eps * dA, 0), 1.3, 1), noise_covariance(
            constant_dual(A + eps * dA, 0), 1.3, constant_dual((W + eps * dW)[None], 0)
        )

    F, Psi = state_transition(np.stack([A, dA]), 1.3, 1)
    Q = noise_covariance(np.stack([A, dA]), 1.3, np.stack([W, dW])[None])
    h = 1e-5
    (up, up_Q), (down, down_Q) = at(h), at(-h)
    assert np.allclose(F[1], (up[0][0] - down[0][0]) / (2 * h), rtol=1e-8, atol=1e-8)
    assert np.allclose(Psi[:, 1], (up[1][:, 0] - down[1][:, 0]) / (2 * h), rtol=1e-8, atol=1e-8)
    assert np.allclose(Q[1], (up_Q[0] - down_Q[0]) / (2 * h), rtol=1e-8, atol=1e-8)


def test_stiff_transitions_do_not_overflow():
    stiff = np.array([[-1e4, 1.0], [0.0, -1e-3]])
    F, _ = state_transition(constant_dual(stiff, 0), 10.0, 1)
    Q = noise_covariance(constant_dual(stiff, 0), 10.0, constant_dual(np.eye(2)[None], 0))[0]
    assert np.allclose(F[0], expm(stiff * 10.0), rtol=1e-10, atol=1e-14)
    assert Q[0, 0] == pytest.approx(0.5e-4 + 1e-8 * Q[1, 1], rel=1e-4)
    assert Q[1, 1] == pytest.approx((1 - np.exp(-0.02)) / 2e-3, rel=1e-12)


def test_polynomials_through_nodes():
    for degree in (0, 1, 2, 6):
        s, fit = polynomial_nodes(degree)
        truth = np.arange(1.0, degree + 2)
        assert np.allclose(fit @ np.polyval(truth[::-1], s), truth, rtol=1e-9)


def test_many_intervals_are_what_each_is():
    random = np.random.default_rng(6)
    A, W = random.normal(size=(3, 2, 2)), random.normal(size=(2, 3, 2, 2))
    W = W + np.swapaxes(W, -1, -2)
    h = np.array([1e-6, 0.01, 0.3, 0.31, 2.0, 9.0])
    together = transition.many(A, h, 1, W)
    for k, step in enumerate(h):
        for found, alone in zip(together, transition.both(A, float(step), 1, W), strict=True):
            np.testing.assert_array_equal(found[k], alone)


@pytest.mark.parametrize(("n", "up", "down"), [(120, 1.1, 0.7), (101, 40.0, 0.0), (80, 3.0, -3.0)])
def test_long_chains_do_not_overflow(n, up, down):
    """A pipe, pure advection, and a chain of oscillators, over intervals of many time constants."""
    A = np.zeros((2, n, n))
    A[0] = (
        np.diag(np.full(n, -abs(up) - abs(down))) + np.diag(np.full(n - 1, up), -1) + np.diag(np.full(n - 1, down), 1)
    )
    A[1] = np.eye(n, k=-1)
    W = np.zeros((1, 2, n, n))
    W[0, 0, 0, 0] = 1.0
    h = 5.0
    with np.errstate(all="raise", under="ignore"):
        F, Psi, Q = transition.both(A, h, 0, W)
    expected = expm(A[0] * h)
    np.testing.assert_allclose(F[0], expected, atol=1e-13)
    np.testing.assert_allclose(Psi[0, 0], np.linalg.solve(A[0], expected - np.eye(n)), atol=1e-12)
    # the covariance satisfies its Lyapunov equation, and its derivative the differentiated one
    np.testing.assert_allclose(A[0] @ Q[0] + Q[0] @ A[0].T, expected @ W[0, 0] @ expected.T - W[0, 0], atol=1e-12)
    moved = A[1] @ Q[0] + A[0] @ Q[1]
    forced = F[1] @ W[0, 0] @ F[0].T
    np.testing.assert_allclose(moved + moved.T, forced + forced.T, atol=1e-11)
