"""Residual tests: their size under the null, judged by exact binomial bounds at 0.1 %, and their power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from grisaille.assessment import residual_tests as tests

RUNS, LEVEL = 600, 0.05
LOW, HIGH = binom.ppf(0.0005, RUNS, LEVEL), binom.ppf(0.9995, RUNS, LEVEL)
T = np.linspace(-1.0, 1.0, 120)
Q = tests.orthonormal(np.vander(T, 4))
U = tests.regressors(np.sign(np.sin(7 * T)), len(T), is_static=False)


def residuals(noise: np.ndarray) -> np.ndarray:
    """Of a least-squares fit, scaled to the variance their degrees of freedom give them."""
    r = noise - Q @ (Q.T @ noise)
    return r * np.sqrt((len(r) - Q.shape[1]) / (r @ r))


TESTS: dict[str, Callable[[np.ndarray], float]] = {
    "autocorrelation": lambda r: tests.ljung_box(r, Q).p,
    "periodogram": lambda r: tests.cumulated_periodogram(r, Q).p,
    "inputs": lambda r: tests.input_dependence(r, Q, U, known=False).p,
    "normality": lambda r: tests.normality(r).p,
    "outliers": lambda r: tests.outliers(r, Q, len(r) - Q.shape[1], LEVEL)[0].p,
}


@pytest.mark.parametrize("name", TESTS)
def test_size(name: str) -> None:
    random = np.random.default_rng(3)
    hits = sum(TESTS[name](residuals(random.standard_normal(len(T)))) < LEVEL for _ in range(RUNS))
    assert LOW <= hits <= HIGH


def test_size_of_known_noise() -> None:
    random = np.random.default_rng(4)
    hits = [0, 0]
    for _ in range(RUNS):
        e = random.standard_normal(len(T))
        r = e - Q @ (Q.T @ e)
        hits[0] += tests.size(r, Q).p < LEVEL
        hits[1] += tests.input_dependence(r, Q, U, known=True).p < LEVEL
    assert all(LOW <= h <= HIGH for h in hits)


def test_parameters_take_degrees_of_freedom() -> None:
    none = np.zeros((len(T), 0))
    r = np.random.default_rng(0).standard_normal(len(T))
    assert tests.ljung_box(r, none).degrees_of_freedom == pytest.approx(tests.lag_count(len(T)))
    assert tests.lag_count(len(T)) - 4 < tests.ljung_box(r, Q).degrees_of_freedom < tests.lag_count(len(T))


def test_without_parameters_it_is_the_textbook_statistic() -> None:
    r = np.random.default_rng(1).standard_normal(50)
    found = tests.ljung_box(r, np.zeros((50, 0)))
    rho = [np.sum(r[k:] * r[:-k]) / np.sum(r**2) for k in range(1, 11)]
    assert found.statistic == pytest.approx(50 * 52 * sum(p**2 / (50 - k) for k, p in enumerate(rho, 1)))


def test_power() -> None:
    e = np.random.default_rng(5).standard_normal(len(T))
    slow = np.convolve(e, [1.0, 0.8, 0.6])[: len(T)]
    assert TESTS["autocorrelation"](residuals(slow)) < 1e-4
    assert TESTS["periodogram"](residuals(slow)) < 1e-3
    assert tests.cumulated_periodogram(residuals(slow), Q).excess[1] > 0
    alternating = e - 0.9 * np.roll(e, 1)
    assert tests.cumulated_periodogram(residuals(alternating), Q).excess[1] < 0
    assert TESTS["inputs"](residuals(e + 0.8 * U[:, 3])) < 1e-4
    assert TESTS["normality"](residuals(e**3)) < 1e-6
    spoiled = e.copy()
    spoiled[17] += 7
    found, where = tests.outliers(residuals(spoiled), Q, len(T) - 4, 0.01)
    assert found.p < 1e-4 and where.tolist() == [17]
    assert tests.size(1.5 * residuals(e), Q).p < 1e-4


def test_what_the_unknowns_took_is_not_tested() -> None:
    """An input that the unknowns reproduce exactly leaves nothing to test."""
    columns = np.vander(T, 3)[:, :2] - np.vander(T, 3)[:, :2].mean(axis=0)
    assert tests.input_dependence(residuals(T), Q, columns, known=True).degrees_of_freedom == 0


@pytest.mark.parametrize(("n", "count"), [(24, 2), (84, 3), (300, 3)])
def test_ljung_box_keeps_its_size(n: int, count: int) -> None:
    """Refused at the level 1 %, over 300 draws: more than nine once in a thousand."""
    t = np.arange(n) / n
    q = tests.orthonormal(np.column_stack([np.exp(-3 * t), t * np.exp(-3 * t), np.sin(5 * t)][:count]))
    r = np.random.default_rng(n).standard_normal((300, n))
    r -= (r @ q) @ q.T
    assert sum(tests.ljung_box(row, q).p < 0.01 for row in r) <= 9


def test_what_a_likelihood_takes_is_less_than_its_jacobian_spans():
    """r ~ N(0, I − J F⁻¹ Jᵀ): with F = JᵀJ a projection, with more information about a column less of it."""
    rng = np.random.default_rng(3)
    J = rng.standard_normal((40, 3)) * [1.0, 1e-9, 1e6]
    q = tests.taken_directions(J, J.T @ J)
    basis = tests.orthonormal(J)
    assert np.allclose(q @ q.T, basis @ basis.T, atol=1e-9)
    more = J.T @ J + np.diag([0.0, 1.0, 0.0])
    less = tests.taken_directions(J, more)
    assert np.allclose(less @ less.T, J @ np.linalg.inv(more) @ J.T, atol=1e-9)


@pytest.mark.parametrize("n", [20, 41, 84])
def test_the_periodogram_keeps_its_size(n: int) -> None:
    """Unknowns take whole frequencies and halves of them: by Kolmogorov's law alone 6.6 and 1.7 % of 41 samples."""
    t = np.arange(n) / n
    q = tests.orthonormal(np.column_stack([np.exp(-3 * t), t * np.exp(-3 * t), np.cos(2 * np.pi * 3 * t)]))
    r = np.random.default_rng(n).standard_normal((1000, n))
    r -= (r @ q) @ q.T
    p = np.array([tests.cumulated_periodogram(row, q).p for row in r])
    for level in (0.05, 0.01):
        assert binom.ppf(0.0005, len(p), level) <= (p < level).sum() <= binom.ppf(0.9995, len(p), level)
