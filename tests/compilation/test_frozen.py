"""Batches on a frozen grid: a batch is its step repeated, exact sensitivities, moments, holds, failures."""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest
from compilation.systems import HANGING, PENDULUM, constrained, pendulum
from scipy.integrate import solve_ivp

from grisaille.compilation import build_step
from grisaille.errors import DataError

SYSTEM = pendulum()
RNG = np.random.default_rng(5)
M, K = 70, 60
GRID = np.cumsum(np.r_[0.0, RNG.uniform(0.005, 0.02, K)])
U, W = 0.5 * RNG.normal(size=K + 1), 0.5 * RNG.normal(size=(M, K + 1))
START = np.array(HANGING) + np.array([0.0, 0.0, 1.0, 0.0]) * RNG.normal(size=(M, 1))
SEEDS = np.array([[0, 0, 0, 1.0], [1.0, 0.5, 0, 0]])


def step(directions: int = 0):
    return build_step(SYSTEM, observed=[5, 4], directions=directions)


@pytest.mark.parametrize(("hold", "n"), [(("foh", "foh"), 1), (("zoh", "foh"), 3)])
def test_a_batch_is_its_step_repeated(hold, n):
    fused, kept = step(), [0, 7, 31, K]
    found = fused.run(START, GRID, [U, W], PENDULUM, hold=hold, substeps=n, keep=kept)
    slow = (PENDULUM, np.ones(4))
    constants = fused.once(*slow)
    for m in (0, M - 1):
        x, ends = ca.DM(START[m]), np.column_stack([U, W[m]])
        for k in range(K + 1):
            if k in kept:
                np.testing.assert_allclose(
                    found.y[m, kept.index(k)],
                    fused.observe(GRID[k], x, ends[k], PENDULUM).full().ravel(),
                    rtol=1e-11,
                    atol=1e-12,
                )
            if k == K:
                break
            h, right = (GRID[k + 1] - GRID[k]) / n, np.where([w == "zoh" for w in hold], ends[k], ends[k + 1])
            for j in range(n):
                ua, um, ub = (ends[k] + (j + part) / n * (right - ends[k]) for part in (0.0, 0.5, 1.0))
                x = fused.step(GRID[k] + j * h, h, x, ua, um, ub, ca.DM(0, 1), *slow, constants)
        np.testing.assert_allclose(found.x[m], x.full().ravel(), rtol=1e-11, atol=1e-12)
    assert found.failed.tolist() == [-1] * M


def test_constraints_hold_to_rounding():
    end = step().run(START, GRID, [U, W], PENDULUM).x
    assert np.abs(np.sum(end[:, :2] ** 2, axis=1) - 6.25**2).max() < 1e-13
    assert np.abs(np.sum(end[:, :2] * end[:, 2:], axis=1)).max() < 1e-14


def test_sensitivities_are_the_derivative_of_the_discrete_trajectory():
    fused = step(2)
    found = fused.run(START[:3], GRID, [U, W[:3]], PENDULUM, dp=SEEDS)
    for s, direction in enumerate(SEEDS):
        ends = [fused.run(START[:3], GRID, [U, W[:3]], PENDULUM + e * direction) for e in (1e-5, -1e-5)]
        difference = (ends[0].y - ends[1].y) / 2e-5
        np.testing.assert_allclose(found.sy[:, :, s], difference, atol=1e-7 * max(1.0, np.abs(difference).max()))
        np.testing.assert_allclose(found.sx[:, s], (ends[0].x - ends[1].x) / 2e-5, atol=1e-7)


def test_moments_are_those_of_the_rows():
    fused = step(1)
    rows = fused.run(START, GRID, [U, W], PENDULUM, dp=SEEDS[:1], keep=20)
    moments = fused.run(START, GRID, [U, W], PENDULUM, dp=SEEDS[:1], keep=20, reduce=True).moments
    deviation, sdeviation = rows.y - rows.y.mean(axis=0), rows.sy - rows.sy.mean(axis=0)
    assert moments.count == M
    np.testing.assert_allclose(moments.mean, rows.y.mean(axis=0), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(moments.spread, (deviation**2).sum(axis=0), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(moments.smean, rows.sy.mean(axis=0), rtol=1e-10, atol=1e-14)
    cross = (deviation[:, :, None, :] * sdeviation).sum(axis=0)
    np.testing.assert_allclose(moments.scross, cross, rtol=1e-9, atol=1e-13)


def test_digits_do_not_depend_on_threads_or_waves(monkeypatch):
    results = []
    for threads, wave in ((1, 8_000_000), (2, 8_000_000), (3, 1)):
        monkeypatch.setattr("grisaille.compilation.batch_native.MAX_DOUBLES_OF_MOMENTS", wave)
        results.append(step().run(START, GRID, [U, W], PENDULUM, reduce=True, threads=threads).moments)
    for other in results[1:]:
        np.testing.assert_array_equal(other.mean, results[0].mean)
        np.testing.assert_array_equal(other.spread, results[0].spread)


def test_agrees_with_an_independent_solution_of_the_angle_form():
    m, g, length, k = PENDULUM
    force = lambda t: np.interp(t, GRID, U) + np.interp(t, GRID, W[0]) ** 2  # noqa: E731

    def angle(t, s):
        c, sn = np.cos(s[0]), np.sin(s[0])
        vx, vy = length * s[1] * c, length * s[1] * sn
        push = (force(t) - k * abs(vx) * vx) * c + (-k * abs(vy) * vy - m * g) * sn
        return [s[1], push / (m * length)]

    state = np.array([0.0, START[0, 2] / length])
    for a, b in pairwise(GRID):
        state = solve_ivp(angle, (a, b), state, rtol=1e-12, atol=1e-14).y[:, -1]
    errors = [step().run(START[0], GRID, [U, W[0]], PENDULUM, substeps=n).y[0, -1, 0] - state[0] for n in (1, 2, 8)]
    assert abs(errors[0]) < 2e-7 and abs(errors[1]) < abs(errors[0]) / 12 and abs(errors[2]) < 1e-10


def test_holds():
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u", 2)
    integrators = constrained(x, ca.SX(0, 1), rhs=u, u=u, observed=ca.vertcat(x, u))
    signals = [np.array([1.0, 3.0, 5.0])] * 2
    found = build_step(integrators).run([0, 0], [0, 1, 3], signals, hold=["zoh", "foh"], substeps=2)
    np.testing.assert_allclose(found.y[0], [[0, 0, 1, 1], [1, 2, 3, 3], [7, 10, 5, 5]], rtol=1e-14)


def test_a_realization_that_blows_up_is_marked_where_it_was_seen():
    x, p = ca.SX.sym("x", 1), ca.SX.sym("p", 1)
    system = constrained(x, ca.SX(0, 1), rhs=p * x**2, p=p)
    fused = build_step(system)
    found = fused.run([1.0], np.linspace(0, 10, 101), [], [[0.0], [1.0], [-1.0]], keep=10)
    assert found.failed[0] == found.failed[2] == -1 and 10 <= found.failed[1] < 30
    assert not np.isfinite(found.y[1, -1, 0]) and found.y[0, -1, 0] == 1.0
    unseen = fused.run([1.0], np.linspace(0, 10, 101), [], [1.0], keep=[0])
    assert unseen.failed.tolist() == [100]


def test_progress_ends_at_the_count():
    seen: list[tuple[int, int]] = []
    step().run(START, GRID, [U, W], PENDULUM, reduce=True, progress=lambda *now: seen.append(now))
    assert seen and all(total == M for _, total in seen) and seen == sorted(seen)


def test_an_interrupt_stops_the_batch():
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        step().run(START, GRID, [U, W], PENDULUM, threads=2, progress=stop)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x0": [1.0]}, r"x0 has shape \(1,\); expected \(4,\) or \(70, 4\)"),
        ({"signals": [U]}, "1 signals given, 2 needed"),
        ({"signals": [U, W[:, :-1]]}, "signal 1 has shape"),
        ({"x0": START[:5]}, r"different numbers of realizations: \[5, 70\]"),
        ({"grid": GRID[::-1]}, "increasing times"),
        ({"hold": "spline"}, '"zoh" or "foh"'),
        ({"keep": [3, 2]}, "do not decrease, all below 61"),
        ({"dp": np.eye(4)}, "dp has shape"),
        ({"substeps": 0}, "substeps"),
    ],
)
def test_wrong_arguments_are_refused(wrong, words):
    given = {"x0": HANGING, "grid": GRID, "signals": [U, W], "p": PENDULUM} | wrong
    with pytest.raises(DataError, match=words):
        step().run(**given)
