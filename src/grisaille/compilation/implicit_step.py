"""One Runge–Kutta step of a system with implicit unknowns as a single straight-line formula (``step``, ``carried``).

::

    0 = g(t, x, z, ua)  →  z        k1 = f(t, x, z, ua)
    k2, k3, k4 likewise, with z solved anew at each stage from the one at the beginning
    x⁺ ← x + h/6 (k1 + 2 k2 + 2 k3 + k4), projected on the constraints;    z⁺ from g(t + h, x⁺, z⁺, ub) = 0

Where g is linear in z one Newton step solves it, and nothing is left to be looked at. For systems that are not stiff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from grisaille.compilation.implicit_as_states import LINEAR_EFFORT, UNSOLVED_VALUE, AlgebraicEffort, ImplicitAsStates
from grisaille.compilation.step import Slopes, StepFormula, project
from grisaille.compilation.step_tangent import ValueWithTangent, moved_function, project_moved, runge_kutta_moved
from grisaille.structure.system import System


def formulate_implicit_step(system: System, effort: AlgebraicEffort) -> tuple[StepFormula, ImplicitAsStates]:
    """Return the step of X = (x, z, ρ, ζ), symbolically; ``effort`` is for equations that are not linear in z."""
    carried = ImplicitAsStates(system, LINEAR_EFFORT if is_linear(system) else effort)
    nx = system.nx + 3 * system.nz
    t, h, X = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", nx)
    ua, um, ub = (ca.SX.sym(name, system.nu) for name in ("ua", "um", "ub"))
    p, nominal = ca.SX.sym("p", system.np), ca.SX.sym("nominal", nx)
    x, z, rho, zeta = carried.split(X)
    rhs = ca.Function("rhs", [system.t, system.x, system.z, system.u, system.p], [system.rhs])
    first, last = carried.begin(t, x, z, ua, p)
    corrections = [last]

    def slope(at: ca.SX, x: ca.SX, u: ca.SX) -> ca.SX:
        found, last = carried.solve(at, x, first, u, p)
        corrections.append(last)
        return rhs(at, x, found, u, p)

    half = 0.5 * h
    k1 = rhs(t, x, first, ua, p)
    k2 = slope(t + half, x + half * k1, um)
    k3 = slope(t + half, x + half * k2, um)
    k4 = slope(t + h, x + h * k3, ub)
    after = project(system, t + h, x + h / 6.0 * (k1 + 2 * (k2 + k3) + k4), ub, p, nominal[: system.nx])
    found, last = carried.solve(t + h, after, first, ub, p)
    for correction in [*corrections, last]:
        rho = ca.fmax(rho, correction)
    turned = carried.orientation(t, x, first, ua, p) * carried.orientation(t + h, after, found, ub, p) < 0
    ended = ca.vertcat(after, found, ca.if_else(turned, UNSOLVED_VALUE, rho), ca.fmax(zeta, ca.fabs(found)))
    formula = StepFormula(t, h, X, (ua, um, ub), p, nominal, ca.densify(ca.cse(ended)))
    return replace(formula, slopes=_slopes(formula, carried) if carried.effort is LINEAR_EFFORT else None), carried


def _slopes(step: StepFormula, carried: ImplicitAsStates) -> Slopes:
    """Return the derivatives of x and z; ρ and ζ are monitored only."""
    s, (ua, _, ub) = carried.original, step.signals
    x, z, _, _ = carried.split(step.x)
    arguments = [s.t, s.x, s.z, s.u, s.p]
    slope, by = ca.jacobian(s.residual, s.z), ca.vertcat(s.x, s.u, s.p)

    def slopes(sX: ca.SX, dp: ca.SX, du: Sequence[ca.SX]) -> ca.SX:
        ns, p = sX.size2(), ValueWithTangent(step.p, dp)
        rhs, moving = moved_function(s.rhs, arguments, ns), ca.SX.sym("d", by.numel(), ns)
        turned = ca.jtimes(s.residual, by, moving)
        solved = ca.Function("solved", [*arguments, moving], [-ca.solve(slope, ca.densify(turned))])

        def with_unknowns(found: ca.SX, t: ca.SX, x: ValueWithTangent, u: ValueWithTangent) -> ValueWithTangent:
            moving = ca.vertcat(x.slopes, u.slopes, p.slopes)
            return ValueWithTangent(found, solved(t, x.value, found, u.value, p.value, moving))

        def rates(found: ValueWithTangent, t: ca.SX, x: ValueWithTangent, u: ValueWithTangent) -> ValueWithTangent:
            moving = ca.vertcat(x.slopes, found.slopes, u.slopes, p.slopes)
            return ValueWithTangent(*rhs(t, x.value, found.value, u.value, p.value, moving))

        first_x, signals = (
            ValueWithTangent(x, sX[: s.nx, :]),
            [ValueWithTangent(*pair) for pair in zip(step.signals, du, strict=True)],
        )
        first = with_unknowns(carried.begin(step.t, x, z, ua, step.p)[0], step.t, first_x, signals[0])

        def at_stage(t: ca.SX, x: ValueWithTangent, u: ValueWithTangent) -> ValueWithTangent:
            if x is first_x:
                return rates(first, t, x, u)
            return rates(with_unknowns(carried.solve(t, x.value, first.value, u.value, p.value)[0], t, x, u), t, x, u)

        end, ended = step.t + step.h, runge_kutta_moved(at_stage, step.t, step.h, first_x, signals)
        ended = project_moved(s, end, ended, signals[2], p, step.nominal[: s.nx])
        found = carried.solve(end, ended.value, first.value, ub, p.value)[0]
        dz = with_unknowns(found, end, ended, signals[2]).slopes
        return ca.vertcat(ended.slopes, dz, ca.SX(2 * s.nz, ns))

    return slopes


def is_linear(system: System) -> bool:
    """Return whether the implicit equations are linear in their unknowns."""
    return not ca.depends_on(ca.jacobian(system.residual, system.z), system.z)
