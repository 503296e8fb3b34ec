"""The derivative of a Runge–Kutta step, stage by stage: what was solved in a stage is solved again with its own matrix.

::

    0 = A z + b     →   A ż = −∂(A z + b)/∂(x, u, p) · (ẋ, u̇, ṗ)                   z held
    G λ = c,  G = C W Cᵀ,  v = W Cᵀ λ,  x⁺ = x − v
                    →   G λ̇ = ċ − Ċ v − C (W Ċᵀ λ),    v̇ = W (Ċᵀ λ + Cᵀ λ̇)

The derivative of an elimination has thrice its operations, another right-hand side a few. The matrices and their
factors stand in both formulas and are computed once, since equal subexpressions are shared (``hoisting``). Numbers are
those of the derivative of the step itself, up to rounding (and to 1e-13 of a correction, by which G is lifted).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import casadi as ca

from grisaille.compilation.step import constraints_in, correct, correction_plan, moved_by, solve_gram
from grisaille.structure.system import System


class ValueWithTangent(NamedTuple):
    """A value and its derivatives, directions as columns."""

    value: ca.SX
    slopes: ca.SX

    def plus(self, factor: ca.SX | float, other: ValueWithTangent) -> ValueWithTangent:
        return ValueWithTangent(self.value + factor * other.value, self.slopes + factor * other.slopes)


Rates = Callable[[ca.SX, ValueWithTangent, ValueWithTangent], ValueWithTangent]
"""(t, x, u) → x'"""


def runge_kutta_moved(
    rates: Rates, t: ca.SX, h: ca.SX, x: ValueWithTangent, signals: Sequence[ValueWithTangent]
) -> ValueWithTangent:
    """Return ``step.runge_kutta`` with derivatives."""
    ua, um, ub = signals
    half = 0.5 * h
    k1 = rates(t, x, ua)
    k2 = rates(t + half, x.plus(half, k1), um)
    k3 = rates(t + half, x.plus(half, k2), um)
    k4 = rates(t + h, x.plus(h, k3), ub)
    return ValueWithTangent(
        *(a + h / 6.0 * (b + 2 * (c + d) + e) for a, b, c, d, e in zip(x, k1, k2, k3, k4, strict=True))
    )


def project_moved(
    system: System, t: ca.SX, x: ValueWithTangent, u: ValueWithTangent, p: ValueWithTangent, nominal: ca.SX
) -> ValueWithTangent:
    """Return ``step.project`` with derivatives."""
    arguments, by = [system.t, system.x, system.u, system.p], ca.vertcat(system.x, system.u, system.p)
    for rows, columns in correction_plan(system):
        found = correct(system, rows, columns, t, x.value, u.value, p.value, nominal)
        hidden = constraints_in(system, rows)
        C = ca.jacobian(hidden, ca.vertcat(*(system.x[j] for j in columns)))
        v, multipliers = ca.SX.sym("v", len(columns)), ca.SX.sym("l", len(rows))
        directions = ca.SX.sym("d", by.numel(), x.slopes.size2())
        turned = [ca.jtimes(f, by, directions) for f in (hidden, ca.mtimes(C, v), ca.mtimes(C.T, multipliers))]
        held = ca.Function("turned", [*arguments, v, multipliers, directions], turned)
        moving = ca.vertcat(x.slopes, u.slopes, p.slopes)
        dc, dCv, dCl = held(t, x.value, u.value, p.value, found.change, found.multipliers, moving)
        weight = ca.repmat(found.weight, 1, dc.size2())
        right = dc - dCv - ca.mtimes(found.slopes, weight * dCl)
        again = ca.horzcat(*(solve_gram(found.slopes, found.weight, right[:, s]) for s in range(right.size2())))
        slopes = moved_by(weight * (dCl + ca.mtimes(found.slopes.T, again)), columns, x.slopes)
        x = ValueWithTangent(moved_by(found.change, columns, x.value), slopes)
    return x


def moved_function(formula: ca.SX, arguments: list[ca.SX], directions: int) -> ca.Function:
    """Return the formula and its derivatives; time, the first of the arguments, is constant."""
    by = ca.vertcat(*arguments[1:])
    moving = ca.SX.sym("d", by.numel(), directions)
    return ca.Function("moved", [*arguments, moving], [formula, ca.jtimes(formula, by, moving)])
