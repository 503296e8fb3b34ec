"""The joint descent: its reduced system against the whole one, and matrices that are not positive definite."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.collocation import arrow_descent
from grisaille.estimators import build_problem


class Decay(gr.Model):
    k, c = gr.Parameter(0.5, bounds=(0.0, 4.0)), gr.Parameter(0.2)
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == c - k * x**2 + w]


@pytest.fixture(scope="module")
def problem():
    t = np.linspace(0.0, 4.0, 9)
    random = np.random.default_rng(2)
    runs = [
        gr.Experiment(t, {}, {"y": np.exp(-0.4 * t) + 0.1 * random.normal(size=9)}, name=name)
        for name in ("one", "two")
    ]
    return build_problem(
        Decay(), runs, ["k", "c", "start(x)"], gr.Collocation(criterion="amle", knots=9, transcription="spline")
    )


def dense(band: np.ndarray) -> np.ndarray:
    n = band.shape[1]
    return sum(np.diag(band[d, : n - d], -d) + (np.diag(band[d, : n - d], d) if d else 0) for d in range(len(band)))


@pytest.mark.parametrize("left_out", [[], [1, 2]])
def test_reduced_system_is_the_schur_complement_of_the_whole(problem, left_out: list[int]) -> None:
    now = problem.trajectories.task(problem).linearised(problem.inner(problem.guess), problem.trajectories.first_betas)
    among = np.ones(4, dtype=bool)
    among[left_out] = False
    S, right, carried, own = now.reduced(now.factors(), among)
    expected, slope = now.corner.copy(), now.slope.copy()
    for part, held, border, g, V, v in zip(now.parts, now.held, now.borders, now.gradients, carried, own, strict=True):
        free = ~held
        A, B = dense(part.band)[np.ix_(free, free)], border[free] * among
        expected -= B.T @ np.linalg.solve(A, B)
        slope -= B.T @ np.linalg.solve(A, g[free])
        np.testing.assert_allclose(V[free], np.linalg.solve(A, B), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(v[free], np.linalg.solve(A, g[free]), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(S, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(right, slope, rtol=1e-9, atol=1e-9)


def test_minimum_has_no_slope_left(problem) -> None:
    found = arrow_descent.minimize(
        problem.trajectories.task(problem), problem.inner(problem.guess), problem.trajectories.first_betas
    )
    assert found.converged
    q = found.at
    assert np.abs(q.slope).max() < 1e-4
    assert max(np.abs(g).max() for g in q.gradients) < 1e-3


def test_trials_that_overflow_have_no_value_and_give_no_warning(problem) -> None:
    far = [1e160 * (1 + np.arange(len(b))) for b in problem.trajectories.first_betas]
    for exact in (False, True):
        assert not np.isfinite(
            problem.trajectories.task(problem).linearised(problem.inner(problem.guess), far, exact).cost
        )
