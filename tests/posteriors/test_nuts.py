"""Trajectories: second order, reversible, and transitions that keep a density whatever the step."""

from __future__ import annotations

import numpy as np
import pytest
from posteriors.densities import Known, banana, banana_draws, funnel, funnel_draws, normal
from scipy.stats import kstest, norm

from grisaille.posteriors import Point, nuts, transition


def point(target: Known, z: np.ndarray) -> Point:
    return Point(z, *target.value_and_gradient(z))


def energy_error(step: float, length: float) -> float:
    target, r = banana(), np.array([0.3, -0.8])
    begin = point(target, np.array([0.7, -0.5]))
    state = nuts._State(begin, r, 0.5 * float(r @ r) - begin.log_density)
    way = nuts._Trajectory(target.value_and_gradient, step, state.energy, np.random.default_rng(0))
    for _ in range(round(length / step)):
        moved = way.leap(state, step)
        assert moved is not None
        state = moved
    return abs(state.energy - way.energy)


def test_the_error_of_the_energy_is_of_second_order() -> None:
    errors = [energy_error(h, 0.8) for h in (0.1, 0.05, 0.025)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1) and errors[1] / errors[2] == pytest.approx(4, rel=0.05)


def test_leaps_go_back_where_they_came_from() -> None:
    target, r = funnel(), np.array([0.3, -0.8, 0.1])
    begin = point(target, np.array([0.7, -0.5, 0.2]))
    way = nuts._Trajectory(target.value_and_gradient, 0.2, 0.0, np.random.default_rng(0))
    first = state = nuts._State(begin, r, 0.0)
    for step in [0.2] * 5 + [-0.2] * 5:
        moved = way.leap(state, step)
        assert moved is not None
        state = moved
    np.testing.assert_allclose(state.point.z, first.point.z, atol=1e-13)
    np.testing.assert_allclose(state.r, first.r, atol=1e-13)


@pytest.mark.parametrize("step", [0.15, 0.6, 1.1])
@pytest.mark.parametrize("which", ["banana", "funnel"])
def test_exact_draws_stay_exact_draws(which: str, step: float) -> None:
    """Two transitions of each of 800 draws: every marginal law is kept, for long steps too (level 0.1 %, seed 1)."""
    rng = np.random.default_rng(1)
    target = banana() if which == "banana" else funnel()
    begin = banana_draws(800, rng) if which == "banana" else funnel_draws(800, rng)
    ends = []
    for z in begin:
        at = point(target, z)
        for _ in range(2):
            at = transition(target.value_and_gradient, at, step, rng, max_depth=4).point
        ends.append(at.z)
    found = np.array(ends)
    if which == "banana":
        whitened = np.column_stack([found[:, 0] / 2, found[:, 1] - 0.3 * (found[:, 0] ** 2 - 4)])
    else:
        whitened = np.column_stack([found[:, 0] / 1.5, found[:, 1:] * np.exp(-found[:, :1] / 2)])
    for column in whitened.T:
        assert kstest(column, norm.cdf).pvalue > 1e-3 / whitened.shape[1]
    assert np.mean(np.any(found != begin, axis=1)) > 0.3


def test_a_point_without_a_density_is_a_divergence_with_its_place() -> None:
    """A wall at zero: trajectories that meet it end, and no draw lies behind it."""

    def wall(x: np.ndarray) -> tuple[float, np.ndarray]:
        return (-np.inf, np.full(1, np.nan)) if x[0] < 0 else (-0.5 * float(x @ x), -x)

    rng, at, places = np.random.default_rng(2), Point(np.ones(1), -0.5, -np.ones(1)), []
    for _ in range(300):
        found = transition(wall, at, 0.5, rng)
        at = found.point
        places += [found.diverged] if found.diverged is not None else []
        assert at.z[0] >= 0
    assert len(places) > 10 and all(p[0] < 0 for p in places)


def test_trajectories_have_at_most_so_many_doublings() -> None:
    target = normal(np.eye(2) * 1e4, np.zeros(2))
    found = transition(
        target.value_and_gradient, point(target, np.zeros(2)), 0.01, np.random.default_rng(0), max_depth=5
    )
    assert found.depth == 5 and found.evaluations == 31 and target.evaluations == 32
