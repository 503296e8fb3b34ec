"""Filters inside a batch: those of NumPy, the recursion written out; directions, slabs, white noise."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from compilation.systems import constrained
from zoo.brownian import BrownianPath

from grisaille.compilation import (
    HALF,
    MIXED,
    QUARTER,
    ColouredNoise,
    ColouredNoiseLayout,
    NoiseFilterGroup,
    StepFormula,
    build_step,
    white_noise_pairs,
)
from grisaille.compilation.kalman import ColouredNoiseStates
from grisaille.disturbance import Stream
from grisaille.errors import DataError

RNG = np.random.default_rng(8)
CELLS, M, NS = 40, 37, 2
GRID = np.cumsum(np.r_[0.0, RNG.choice([0.05, 0.02, 0.1], CELLS)])
WHICH = np.unique(np.diff(GRID).round(6), return_inverse=True)[1]
LAYOUT = ColouredNoiseLayout(orders=(2, 3), outputs=((0, 0), (2, 0), (3, 1)), sensitive=True, chains=((0, 1),))


def system():
    """Two states driven by four signals, 0, 2 and 3 from filters, 1 from a table; everything is seen."""
    x, u, p = ca.SX.sym("x", 2), ca.SX.sym("u", 4), ca.SX.sym("p", 1)
    rhs = ca.vertcat(x[1] + u[1], -ca.sin(x[0]) - p * x[1] + u[0] * u[3] + u[2])
    return constrained(x, ca.SX(0, 1), rhs=rhs, u=u, p=p, observed=ca.vertcat(x, u))


def group(n: int, rows: int, number: int) -> NoiseFilterGroup:
    random = np.random.default_rng(number)
    draw = lambda *shape: random.normal(size=shape) / (2 * n)  # noqa: E731
    lower = np.tril(np.ones((n, n)))
    return NoiseFilterGroup(
        Stream((number, 77), False), draw(3, n, n), draw(3, n, n) * lower, draw(n, n) * lower, draw(rows, n),
        draw(3, NS, n, n), draw(3, NS, n, n) * lower, draw(NS, n, n) * lower, draw(NS, rows, n),
    )  # fmt: skip


FILTERS = ColouredNoise(WHICH, (group(2, 2, 1), group(3, 1, 2)), mix=RNG.normal(size=(3, 3, 8)))
GIVEN = {"filters": FILTERS, "dp": [[1.0], [0.0]], "substeps": 2, "hold": "foh", "realizations": M}
TABLE = RNG.normal(size=CELLS + 1)


def run(grid=GRID, **changes):
    step = build_step(system(), directions=NS, filters=LAYOUT)
    return step.run(
        changes.pop("x0", [0.1, 0.0]), grid, [0, changes.pop("table", TABLE), 0, 0], [0.3], **(GIVEN | changes)
    )


def recursion(member: int) -> np.ndarray:
    """Signals 0, 2, 3 of one realization."""
    columns = []
    for g in FILTERS.groups:
        n = g.R.shape[0]
        w = g.R @ g.stream.normals(member, 0, n)
        rows = [g.C @ w]
        for k in range(CELLS):
            w = g.F[WHICH[k]] @ w + g.L[WHICH[k]] @ g.stream.normals(member, k + 1, n)
            rows.append(g.C @ w)
        columns.append(np.array(rows))
    return np.hstack(columns)


def test_signals_are_those_of_the_recursion():
    found = run()
    for m in (0, 5, M - 1):
        np.testing.assert_allclose(found.y[m][:, [2, 4, 5]], recursion(m), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found.y[3, :, 3], TABLE)


def test_filters_are_those_of_numpy_bit_by_bit():
    found, states = run(), ColouredNoiseStates(FILTERS, LAYOUT, np.arange(M), NS)
    for k in range(CELLS + 1):
        np.testing.assert_array_equal(found.y[:, k, [2, 4, 5]], states.signals)
        np.testing.assert_array_equal(found.sy[:, k, :, 2:][:, :, [0, 2, 3]], states.dsignals)
        if k < CELLS:
            states.advance(k)
    np.testing.assert_array_equal(found.w, states.w)
    np.testing.assert_array_equal(found.dw, states.dw)


def test_directions_that_move_filters_are_exact():
    found, e = run(), 1e-6
    for s in range(NS):

        def moved(sign: float, s: int = s):
            groups = tuple(
                replace(
                    g,
                    F=g.F + sign * e * g.dF[:, s],
                    L=g.L + sign * e * g.dL[:, s],
                    R=g.R + sign * e * g.dR[s],
                    C=g.C + sign * e * g.dC[s],
                )
                for g in FILTERS.groups
            )
            step = build_step(system(), directions=NS, filters=LAYOUT)
            p = 0.3 + sign * e * GIVEN["dp"][s][0]
            return step.run(
                [0.1, 0.0], GRID, [0, TABLE, 0, 0], [p], **(GIVEN | {"filters": replace(FILTERS, groups=groups)})
            )

        difference = (moved(1).y - moved(-1).y) / (2 * e)
        np.testing.assert_allclose(found.sy[:, :, s], difference, atol=1e-8 * max(1.0, np.abs(difference).max()))


def test_going_on_from_a_state_changes_nothing():
    whole, cut = run(), 17
    first = run(GRID[: cut + 1], table=TABLE[: cut + 1], filters=replace(FILTERS, which=WHICH[:cut]))
    rest = replace(FILTERS, which=WHICH[cut:], first_point=cut, w=first.w, dw=first.dw)
    second = run(GRID[cut:], table=TABLE[cut:], filters=rest, x0=first.x, sx0=first.sx)
    np.testing.assert_array_equal(second.y, whole.y[:, cut:])
    np.testing.assert_array_equal(second.sy, whole.sy[:, cut:])


def test_realizations_left_out_and_numbered_from_elsewhere():
    whole = run(reduce=True, rows=True)
    part = run(reduce=True, rows=True, skip=[0, 7], realizations=M)
    kept = np.setdiff1d(np.arange(M), [0, 7])
    np.testing.assert_array_equal(part.y[kept], whole.y[kept])
    assert part.moments.count == M - 2
    np.testing.assert_allclose(part.moments.mean, whole.y[kept].mean(axis=0), rtol=1e-12, atol=1e-14)
    later = run(realizations=5, filters=replace(FILTERS, first_realization=20))
    np.testing.assert_array_equal(later.y, whole.y[20:25])


def test_stages_are_read_at_halves_of_steps():
    x, u = ca.SX.sym("x", 1), ca.SX.sym("u", 1)
    step = build_step(constrained(x, ca.SX(0, 1), rhs=u, u=u, observed=ca.vertcat(x, u)))
    grid, halves = np.array([0.0, 1.0, 3.0]), np.arange(5) / 4
    cubic = np.concatenate([(a + h * halves) ** 3 for a, h in ((0.0, 1.0), (1.0, 2.0))] + [[27.0]])
    found = step.run([0.0], grid, [cubic], hold="stages", substeps=2)
    np.testing.assert_allclose(found.y[0], [[0, 0], [0.25, 1], [20.25, 27]], rtol=1e-14)


def test_white_noise_of_each_step_comes_from_its_stream():
    plain = constrained(ca.SX.sym("x", 2), ca.SX(0, 1))
    t, h, x, v = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", 2), ca.SX.sym("v", 3)
    empty, p = ca.SX(0, 1), ca.SX.sym("p", 1)
    after = ca.vertcat(x[0] + p * v[0], x[1] + v[1] + 10 * v[2])
    formula = StepFormula(t, h, x, (empty, empty, empty), p, ca.SX.sym("n", 2), after, v)
    step = build_step(plain, filters=ColouredNoiseLayout(white=(1, 2)), formula=formula)
    streams = Stream((5, 6)), Stream((7, 8))
    filters = ColouredNoise(np.zeros(4, dtype=np.int64), white=streams, first_point=3)
    one, two = (s.normals(np.arange(3)[:, None], np.arange(4, 8), n) for s, n in zip(streams, (1, 2), strict=True))
    for substeps in (1, 2, 8):
        found = step.run([0, 0], np.arange(5.0), [], [2.0], filters=filters, substeps=substeps, realizations=3)
        root = np.sqrt(substeps)
        np.testing.assert_allclose(found.x[:, 0], 2 * root * one[..., 0].sum(axis=1), rtol=1e-13)
        np.testing.assert_allclose(found.x[:, 1], root * (two @ [1.0, 10.0]).sum(axis=1), rtol=1e-13)
    with pytest.raises(DataError, match="a power of two"):
        step.run([0, 0], np.arange(5.0), [], [2.0], filters=filters, substeps=3, realizations=3)


def normals_of_steps(layout, substeps, count=4000):
    """The normals of one cell, (realizations, steps, nv), from those of the whole cell by halving its steps."""
    members, depth = np.arange(count)[:, None], substeps.bit_length() - 1
    steps = Stream((5, 6)).normals(members, 1, layout.white[0], np.array([0]))
    for level in range(depth):
        fresh = Stream((5, 6)).normals(members, 1, layout.white[0], (1 << level) + np.arange(1 << level))
        z, a = steps, fresh
        left, right = HALF * (z + a), HALF * (z - a)
        for i, k in white_noise_pairs(layout):
            if k is not None:
                p, q = HALF * z[..., i], MIXED * z[..., k] + QUARTER * a[..., i]
                r, s = QUARTER * z[..., k] - MIXED * a[..., i], HALF * a[..., k]
                left[..., i], right[..., i], left[..., k], right[..., k] = p + q, p - q, r + s, r - s
        steps = np.stack([left, right], axis=2).reshape(count, -1, layout.white[0])
    return steps


def test_halving_the_steps_keeps_the_path():
    """Increments and integrals of 16 steps, joined two by two, are those of 8; all are independent standard normals."""
    layout, found = ColouredNoiseLayout(white=(4,), paired=True), {}
    for n in (16, 8, 1):
        z, h = normals_of_steps(layout, n), 1 / n
        dW = np.sqrt(h) * z[..., :2]
        dZ = h * (0.5 * dW + np.sqrt(h / 12) * z[..., 2:])
        found[n] = BrownianPath(np.linspace(0, 1, n + 1), dW, dZ), z
    for n in (8, 1):
        coarse = found[16][0].coarsen(16 // n)
        np.testing.assert_allclose(coarse.normals(), found[n][1], atol=1e-13)
    flat = found[16][1].reshape(4000, -1)
    np.testing.assert_allclose(flat.T @ flat / 4000, np.eye(64), atol=6 / np.sqrt(4000))
    assert abs(np.mean(flat**4) - 3) < 0.05


@pytest.mark.parametrize("paired", [False, True])
def test_compiled_halvings_are_those_of_numpy(paired):
    plain = constrained(ca.SX.sym("x", 2), ca.SX(0, 1))
    t, h, x, v = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", 2), ca.SX.sym("v", 2)
    empty = ca.SX(0, 1)
    after = ca.vertcat(0.5 * x[0] + v[0], 0.7 * x[1] + v[1])  # keeps the order of the steps
    formula = StepFormula(t, h, x, (empty, empty, empty), ca.SX.sym("p", 1), ca.SX.sym("n", 2), after, v)
    layout = ColouredNoiseLayout(white=(2,), paired=paired)
    filters = ColouredNoise(np.zeros(1, dtype=np.int64), white=(Stream((5, 6)),))
    step = build_step(plain, filters=layout, formula=formula)
    for n in (1, 4, 64):
        found = step.run([0, 0], [0.0, 1.0], [], [2.0], filters=filters, substeps=n, realizations=5).x
        expected = np.zeros((5, 2))
        for z in np.moveaxis(normals_of_steps(layout, n, 5), 1, 0):
            expected = expected * [0.5, 0.7] + z
        np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"filters": None}, "Filters with () states were given to a step built for"),
        ({"filters": replace(FILTERS, which=WHICH[:-1])}, "given for 39 cells; the grid has 40"),
        ({"filters": replace(FILTERS, mix=None)}, "3 rows of 8 numbers are needed to mix"),
        ({"filters": replace(FILTERS, w=np.zeros((2, 5)))}, "Filter states have shape"),
    ],
)
def test_filters_that_do_not_fit_are_refused(wrong, words):
    import re

    with pytest.raises(DataError, match=re.escape(words)):
        run(**wrong)
