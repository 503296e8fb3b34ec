"""The last digits of least squares: judged by the offset where the objective only scatters."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.bound_experiment import Unknown
from grisaille.estimation import Evaluation
from grisaille.optimization import OFFSET_TOLERANCE, Scaled, Search, polish, relative_offset


class Scattering(Scaled):
    """A line through noisy points; away from the guess the objective is a little higher than it should be."""

    def __init__(self, guess: np.ndarray, rise: float) -> None:
        self.unknowns = tuple(Unknown(n, "parameter", n, None, float(v)) for n, v in zip("ab", guess, strict=True))
        self.rise = rise
        x = np.linspace(0.0, 1.0, 50)
        self.lines = np.column_stack([np.ones(50), x])
        self.values = 1 + 2 * x + np.random.default_rng(3).normal(size=50)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        errors = self.values - self.lines @ theta
        higher = 1.0 if np.allclose(theta, self.guess, rtol=1e-12, atol=0) else np.sqrt(1 + self.rise)
        return Evaluation(theta, errors * higher, -self.lines, errors, ())


def nearly(rise: float) -> tuple[Search, Evaluation]:
    """A search a few ten-thousandths of a standard error away from the minimum."""
    plain = Scattering(np.ones(2), rise)
    best = np.linalg.lstsq(plain.lines, plain.values, rcond=None)[0]
    errors = np.sqrt(np.diag(np.linalg.inv(plain.lines.T @ plain.lines)))
    best[0] += 2e-4 * errors[0]
    search = Search(Scattering(best, rise))
    return search, search.evaluate(search.guess)


def test_steps_that_bring_the_minimum_nearer_are_taken_although_the_objective_scatters() -> None:
    search, begin = nearly(rise=5e-9)
    assert relative_offset(search, begin) > OFFSET_TOLERANCE
    end = polish(search, begin)
    assert end.objective > begin.objective
    assert relative_offset(search, end) < 1e-9


def test_a_rise_beyond_all_scatter_ends_a_polish() -> None:
    search, begin = nearly(rise=1e-4)
    assert polish(search, begin) is begin
    assert search.evaluations == pytest.approx(5)  # the point itself, and a step halved three times
