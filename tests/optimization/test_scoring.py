"""Minimising likelihoods where it is hard: beside values without a likelihood, along curved valleys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from grisaille.bound_experiment import Unknown
from grisaille.estimation import LikelihoodEvaluation
from grisaille.optimization import Scaled, Search, hessian_at, scoring

Formula = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray, np.ndarray]]


class Given(Scaled):
    """−log L, its gradient, innovations and their derivatives by a formula; ``inf`` where there is no likelihood."""

    def __init__(self, formula: Formula, guess: list[float]) -> None:
        names = [f"p{k}" for k in range(len(guess))]
        # the size is one, so that ξ are the unknowns themselves
        self.unknowns = tuple(Unknown(n, "parameter", n, None, 0.0) for n in names)
        self.begin, self.formula = np.array(guess), formula

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        value, slope, errors, rows = self.formula(theta)
        if not np.isfinite(value):
            return LikelihoodEvaluation(theta, errors, rows[:0], errors, (), "no likelihood")
        return LikelihoodEvaluation(theta, errors, rows, errors, (), value=value, slope=slope, curvature=rows.T @ rows)

    def gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = self.evaluate(theta)
        return found.objective, found.slope


class From(Search):
    """A search that begins where the criterion says."""

    @property
    def start(self) -> np.ndarray:
        return self.inner(self.criterion.begin)


EDGE = 1e-4
AXES = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)


def beside_an_edge(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """f = −a − ε log(1 − a) + ½ b² in turned coordinates, a < 1: at its minimum a = 1 − ε it bends 1/ε times more than
    the expected information, the identity, says."""
    a, b = AXES @ theta
    if a >= 1:
        return np.inf, np.zeros(2), np.zeros(0), np.eye(2)
    return (
        float(-a - EDGE * np.log(1 - a) + 0.5 * b**2),
        AXES.T @ np.array([-1 + EDGE / (1 - a), b]),
        np.array([0.0, b]),
        AXES,
    )


def test_newton_steps_beside_an_edge_follow_the_curvature_that_is_there() -> None:
    start = AXES.T @ np.array([1 - 1.02 * EDGE, 1e-4])
    search = From(Given(beside_an_edge, list(start)))
    begin = search.evaluate(start)
    found = scoring.polish(search, begin, np.ones(2, dtype=bool))
    assert found.is_minimum
    assert found.decrement < 1e-10
    assert pytest.approx([1 - EDGE, 0.0], abs=1e-9) == AXES @ found.evaluation.theta
    assert AXES @ found.covariance @ AXES.T == pytest.approx(np.diag([EDGE, 1.0]), rel=0.05, abs=1e-6)
    assert [np.abs(step).max() for step in found.edges] == pytest.approx([1e-3, 1e-3])


def test_the_hessian_far_from_edges_is_formed_once() -> None:
    search = From(Given(beside_an_edge, [-2.0, 0.3]))
    begin = search.evaluate(search.criterion.begin)
    a = float(AXES[0] @ begin.theta)
    H = hessian_at(search, begin, np.ones(2, dtype=bool))
    assert AXES @ H.matrix @ AXES.T == pytest.approx(np.diag([EDGE / (1 - a) ** 2, 1.0]), abs=1e-8)
    assert search.evaluations == 5
    assert not H.edges


def test_steps_lost_in_rounding_are_not_taken_for_flat() -> None:
    """A gradient of 1e17 is no minimum although nothing can be differenced there."""

    def wall(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        rows = np.array([[1e17]])
        return 0.0 if theta[0] == 1.0 else np.inf, np.array([1e17]), np.array([1.0]), rows

    search = From(Given(wall, [1.0]))
    found = scoring.polish(search, search.evaluate(np.ones(1)), np.ones(1, dtype=bool))
    assert found.decrement > 0.1


NARROW = 100.0


def valley(theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """A narrow valley along y = x², as Rosenbrock's."""
    x, y = theta
    errors = np.array([NARROW * (y - x**2), 1 - x])
    rows = np.array([[-2 * NARROW * x, NARROW], [-1.0, 0.0]])
    return 0.5 * float(errors @ errors), rows.T @ errors, errors, rows


def test_a_narrow_valley_is_followed() -> None:
    search = From(Given(valley, [-1.2, 1.0]), most=1000)
    outcome = scoring.minimize(search, tolerance=1e-11)
    assert outcome.stopped_well and search.evaluations < 200
    assert outcome.evaluation.theta == pytest.approx([1.0, 1.0], abs=1e-4)
