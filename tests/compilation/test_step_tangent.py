"""Derivatives of steps stage by stage: those of the steps themselves, in fewer operations."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
from compilation.systems import pendulum

from grisaille.compilation import (
    ALGEBRAIC_EFFORTS,
    LINEAR_EFFORT,
    PLAIN_DIALECT,
    ValueWithTangent,
    formulate_implicit_step,
    project,
    project_moved,
    step_sensitivity,
)
from grisaille.compilation.printer import _soon, _statements
from grisaille.structure import System

RANDOM = np.random.default_rng(4)


def net() -> System:
    """A pendulum's states with four unknowns that stay implicit, linear in them, and both constraints."""
    plain, z = pendulum(), ca.SX.sym("z", 4)
    x, v, k = plain.x[0], plain.x[2], plain.p[3]
    A = ca.vertcat(
        ca.horzcat(2 + ca.cos(x), 1, 0, 0.3), ca.horzcat(1, -3 - k * x**2, 1, 0),
        ca.horzcat(0, 1, 2 + k, -ca.cos(v)), ca.horzcat(0.5, 0, 1, 4 + v**2),
    )  # fmt: skip
    right = ca.vertcat(x, v, plain.u[1], plain.p[0])
    return replace(
        plain, z=z, rhs=plain.rhs + ca.vertcat(0, 0, z[0] * z[1], z[2] - k * z[3]), residual=ca.mtimes(A, z) - right,
        implicit_names=tuple("ijkm"), residual_texts=("",) * 4,
    )  # fmt: skip


def test_linear_unknowns_are_moved_by_another_right_hand_side() -> None:
    system = net()
    step, carried = formulate_implicit_step(system, ALGEBRAIC_EFFORTS[0])
    assert carried.effort is LINEAR_EFFORT
    nx, kept = step.x.numel(), system.nx + system.nz
    sx, dp, du = ca.SX.sym("sx", nx, 3), ca.SX.sym("dp", system.np, 3), [ca.SX.sym(n, 1, 3) for n in "abc"]
    arguments = [*step.arguments, sx, dp, *du]
    staged, plain = (
        ca.Function("s", arguments, [ca.cse(step_sensitivity(s, sx, dp, (1,), du))])
        for s in (step, replace(step, slopes=None))
    )
    given = [RANDOM.normal(size=a.shape) for a in arguments]
    given[1], given[2][:4] = 0.05, [[0.6], [-0.8], [0.4], [0.3]]
    given[6][:] = [[1.2], [9.8], [1.0], [0.3]]
    a, b = (np.array(f(*given))[:kept] for f in (staged, plain))
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    assert staged.n_instructions() < 0.7 * plain.n_instructions()


def test_projections_are_moved_as_their_derivative_says() -> None:
    system = pendulum()
    t, x, u, p = ca.SX.sym("t"), *(ca.SX.sym(n, k) for n, k in (("x", system.nx), ("u", system.nu), ("p", system.np)))
    nominal, d = ca.SX.sym("n", system.nx), [ca.SX.sym(n, k, 2) for n, k in (("dx", system.nx), ("du", system.nu))]
    dp = ca.SX.sym("dp", system.np, 2)
    found = project_moved(
        system, t, ValueWithTangent(x, d[0]), ValueWithTangent(u, d[1]), ValueWithTangent(p, dp), nominal
    )
    after = project(system, t, x, u, p, nominal)
    expected = ca.jtimes(after, ca.vertcat(x, u, p), ca.vertcat(*d, dp))
    function = ca.Function("f", [t, x, u, p, nominal, *d, dp], [found.value, after, found.slopes, expected])
    # far from the constraints, where the derivative of the matrix counts
    value, after, slopes, expected = (np.array(a) for a in function(*(RANDOM.normal(size=a.shape) for a in [
        t, x, u, p, nominal, *d, dp]
    )))  # fmt: skip
    np.testing.assert_array_equal(value, after)
    np.testing.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-9)


def test_what_the_first_output_does_not_need_follows_at_once() -> None:
    x, d = ca.SX.sym("x", 40), ca.SX.sym("d", 40)
    y = x
    for _ in range(20):
        y = ca.sin(y) * ca.vertcat(y[1:], y[0])
    function = ca.Function("f", [x, d], [y, ca.jtimes(y, x, d)])
    lines, results = _statements(function, ("x", "d"), ("out", "sout"), PLAIN_DIALECT)
    ordered = _soon(lines, results, "out")
    assert sorted(s.target for s in ordered) == sorted(s.target for s in lines)
    seen: set[str] = set()
    names = {s.target for s in lines}
    for s in ordered:
        assert names.intersection(s.operands) <= seen
        seen.add(s.target)
    assert _held(ordered, results) < 0.4 * _held(lines, results)


def _held(lines, results) -> int:
    """The most values that wait for a later use."""
    last = {o: k for k, s in enumerate(lines) for o in s.operands} | {r.value: len(lines) for r in results}
    ends = [last.get(s.target, k) for k, s in enumerate(lines)]
    return max(sum(e > k for e in ends[: k + 1]) for k in range(len(lines)))
