"""Reduced systems built by hand, so that these tests stand without the stages before compilation."""

from __future__ import annotations

import casadi as ca

from grisaille.structure import Signal, System


def pendulum(suffix: str = "") -> System:
    """Index-3 pendulum with drag: x, y, vx, vy; accelerations from the twice differentiated length; u and w as signals.

    p = (m, g, L, k); observed: x, y, vx, vy, tension, angle.
    """
    t, x = ca.SX.sym("t"), ca.SX.sym("x" + suffix, 4)
    u, p = ca.SX.sym("u" + suffix, 2), ca.SX.sym("p" + suffix, 4)
    m, g, length, k = ca.vertsplit(p)
    r, v = x[:2], x[2:]
    force = ca.vertcat(-k * ca.fabs(v[0]) * v[0] + u[0] + u[1] ** 2, -k * ca.fabs(v[1]) * v[1] - m * g)
    # m a = tension r + force,  r·a + v·v = 0
    block = ca.vertcat(ca.horzcat(m, 0, -r[0]), ca.horzcat(0, m, -r[1]), ca.horzcat(r[0], r[1], 0))
    solution = ca.solve(block, ca.vertcat(force, -ca.dot(v, v)))
    return System(
        t=t, x=x, z=ca.SX(0, 1), u=u, p=p,
        rhs=ca.vertcat(v, solution[:2]),
        residual=ca.SX(0, 1),
        constraints=ca.vertcat(ca.dot(r, r) - length**2, ca.dot(r, v)),
        observed=ca.vertcat(x, solution[2], ca.atan2(r[0], -r[1])),
        state_names=("x", "y", "vx", "vy"),
        implicit_names=(),
        signals=(Signal("u", 0, "input"), Signal("w", 0, "disturbance")),
        parameter_names=("m", "g", "L", "k"),
        observed_names=("x", "y", "vx", "vy", "tension", "phi"),
        constraint_texts=("x**2 + y**2 == L**2", "x*vx + y*vy == 0"),
        constraint_levels=(0, 1),
        residual_texts=(),
        pivots=ca.vertcat(m),
        pivot_texts=("m",),
    )  # fmt: skip


PENDULUM = (0.3, 9.81, 6.25, 0.05)
HANGING = (0.0, -6.25, 0.0, 0.0)


def implicit_decay(**names: str) -> System:
    """x' = -z,  0 = z + p0 z**3 - x + u0·t,  observed x + z; the parameter may carry any name."""
    t, x, z, u, p = (ca.SX.sym(names.get(n, n)) for n in "txzup")
    return System(
        t=t, x=x, z=z, u=u, p=p, rhs=-z, residual=z + p * z**3 - x + u * t, constraints=ca.SX(0, 1), observed=x + z,
        state_names=("x",), implicit_names=("z",), signals=(Signal("u", 0, "input"),),
        parameter_names=(names.get("p", "p"),), observed_names=("y",), constraint_texts=(), constraint_levels=(),
        residual_texts=("z + p*z**3 == x - u*t",), pivots=ca.SX(0, 1), pivot_texts=(),
    )  # fmt: skip


def constrained(x: ca.SX, constraints: ca.SX, levels: tuple[int, ...] | None = None, **parts: ca.SX) -> System:
    """States with given constraints, at rest unless ``rhs`` is given."""
    empty, n = ca.SX(0, 1), constraints.numel()
    return System(
        t=parts.get("t", ca.SX.sym("t")), x=x, z=empty, u=parts.get("u", empty), p=parts.get("p", empty),
        rhs=parts.get("rhs", ca.SX.zeros(x.numel())), residual=empty, constraints=constraints,
        observed=parts.get("observed", x), state_names=tuple(f"x{i}" for i in range(x.numel())), implicit_names=(),
        signals=(), parameter_names=(), observed_names=(), constraint_texts=("?",) * n,
        constraint_levels=(0,) * n if levels is None else levels, residual_texts=(), pivots=empty, pivot_texts=(),
    )  # fmt: skip
