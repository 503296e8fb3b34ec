"""One frozen step as a single straight-line formula: classical Runge–Kutta, then one projection on the constraints.

::

    k1 = f(t, x, ua)              k2 = f(t + h/2, x + h/2 k1, um)
    k3 = f(t + h/2, x + h/2 k2, um)    k4 = f(t + h, x + h k3, ub)
    x⁺ = x + h/6 (k1 + 2 k2 + 2 k3 + k4)
    x⁺ ← x⁺ - W Cᵀ (C W Cᵀ)⁻¹ c(t + h, x⁺, ub, p),    C = ∂c/∂x,  W = diag(nominal²),   level by level

Positions are corrected first, velocities at the corrected positions: a level's correction moves only the variables that
no lower level contains, so it leaves the lower levels alone. Where that leaves a level too few variables, it is
corrected together with all lower ones. One Gauss–Newton iteration squares the violation: RK4's is of order h⁵ per step,
so what remains is rounding. The count is fixed, so the step is a smooth function of x and p, and its exact derivative
(``step_sensitivity``) is that of the trajectory computed.

For systems without implicit unknowns (``nz == 0``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import casadi as ca

from grisaille.errors import CompilationError
from grisaille.structure.system import System

GRAM_REGULARISATION = 1e-13
"""Relative lift of the Gram matrix's diagonal: constraints that repeat one another then share a correction instead of
dividing by zero; a correction is wrong by 1e-13 of itself."""


Slopes = Callable[[ca.SX, ca.SX, Sequence[ca.SX]], ca.SX]
"""∂x⁺ from the derivatives of x, of p and of the signals at t, t + h/2 and t + h; directions are columns"""


@dataclass(frozen=True)
class StepFormula:
    """Symbols and the state after the step; ``signals`` are at ``t``, ``t + h/2`` and ``t + h``.

    ``noise`` are standard normals of this very step (white noise in the equations); plain Runge–Kutta has none.
    """

    t: ca.SX
    h: ca.SX
    x: ca.SX
    signals: tuple[ca.SX, ca.SX, ca.SX]
    p: ca.SX
    nominal: ca.SX
    after: ca.SX
    noise: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    slopes: Slopes | None = None
    """Its derivative in fewer operations than that of ``after`` (``step_tangent``)."""

    @cached_property
    def content(self) -> str:
        """Return the step as text: equal for steps that share their code."""
        return str(ca.Function("s", [*self.arguments, self.noise], [self.after]).serialize())

    @property
    def arguments(self) -> list[ca.SX]:
        return [self.t, self.h, self.x, *self.signals, self.p, self.nominal]


def formulate_step(system: System) -> StepFormula:
    """Return the step of a system, symbolically."""
    if system.nz:
        names = ", ".join(system.implicit_names)
        raise CompilationError(f"A fused step needs explicit equations, but {names} remain implicit; use gr_implicit.")
    t, h, x = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", system.nx)
    ua, um, ub = (ca.SX.sym(name, system.nu) for name in ("ua", "um", "ub"))
    p, nominal = ca.SX.sym("p", system.np), ca.SX.sym("nominal", system.nx)
    after = project(system, t + h, runge_kutta(system, t, h, x, ua, um, ub, p), ub, p, nominal)
    return StepFormula(t, h, x, (ua, um, ub), p, nominal, ca.densify(ca.cse(after)))


def step_sensitivity(
    step: StepFormula, sx: ca.SX, dp: ca.SX, places: Sequence[int] = (), du: Sequence[ca.SX] = ()
) -> ca.SX:
    """Return ∂x⁺/∂x·sx + ∂x⁺/∂p·dp + Σ ∂x⁺/∂u·du for directions as columns; ``du`` at t, t + h/2, t + h, of the signals
    at ``places``.
    """
    if step.slopes is not None:
        return ca.densify(step.slopes(sx, dp, [_placed(d, places, step, sx.size2()) for d in du or 3 * [ca.SX(0, 0)]]))
    moving = [ca.vertcat(*(u[i] for i in places)) for u in step.signals] if du else []
    return ca.densify(ca.jtimes(step.after, ca.vertcat(step.x, step.p, *moving), ca.vertcat(sx, dp, *du)))


def _placed(du: ca.SX, places: Sequence[int], step: StepFormula, directions: int) -> ca.SX:
    """Return derivatives of all signals from those of some."""
    placed = ca.SX(step.signals[0].numel(), directions)
    for row, place in enumerate(places):
        placed[place, :] = du[row, :]
    return placed


def runge_kutta(system: System, t: ca.SX, h: ca.SX, x: ca.SX, ua: ca.SX, um: ca.SX, ub: ca.SX, p: ca.SX) -> ca.SX:
    """Return one step of the classical fourth-order method."""
    rhs = ca.Function("rhs", [system.t, system.x, system.u, system.p], [system.rhs])
    half, sixth = 0.5 * h, h / 6.0
    k1 = rhs(t, x, ua, p)
    k2 = rhs(t + half, x + half * k1, um, p)
    k3 = rhs(t + half, x + half * k2, um, p)
    k4 = rhs(t + h, x + h * k3, ub, p)
    return x + sixth * (k1 + 2 * (k2 + k3) + k4)


def project(system: System, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, nominal: ca.SX) -> ca.SX:
    """Return one Gauss–Newton correction per level, in the metric of ``nominal``."""
    for rows, columns in correction_plan(system):
        x = moved_by(correct(system, rows, columns, t, x, u, p, nominal).change, columns, x)
    return x


class Correction(NamedTuple):
    """v = W Cᵀ λ with (C W Cᵀ) λ = c."""

    change: ca.SX
    slopes: ca.SX
    """C"""
    multipliers: ca.SX
    """λ"""
    weight: ca.SX
    """W"""


def correct(
    system: System, rows: list[int], columns: list[int], t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, nominal: ca.SX
) -> Correction:
    """Return how far the states ``columns`` are to be moved back so that the constraints ``rows`` hold."""
    hidden = constraints_in(system, rows)
    slopes = ca.jacobian(hidden, ca.vertcat(*(system.x[j] for j in columns)))
    value, C = ca.Function("c", [system.t, system.x, system.u, system.p], [hidden, slopes])(t, x, u, p)
    W = ca.vertcat(*(nominal[j] ** 2 for j in columns))
    multipliers = solve_gram(C, W, value)
    return Correction(W * ca.mtimes(C.T, multipliers), C, multipliers, W)


def constraints_in(system: System, rows: list[int]) -> ca.SX:
    return ca.vertcat(*(system.constraints[i] for i in rows))


def moved_by(change: ca.SX, columns: list[int], x: ca.SX) -> ca.SX:
    """Return x with ``change`` taken off the rows ``columns``."""
    moved = ca.SX(x)
    for j, column in enumerate(columns):
        moved[column, :] -= change[j, :]
    return moved


def correction_plan(system: System) -> list[tuple[list[int], list[int]]]:
    """Return which constraints are corrected together by moving which states, in order."""
    plan = []
    touched: set[int] = set()
    below: list[int] = []
    for level in sorted(set(system.constraint_levels)):
        rows = [i for i, other in enumerate(system.constraint_levels) if other == level]
        below += rows
        columns = [j for j in _states_in(system, rows) if j not in touched]
        if _rank(system, rows, columns) < len(rows):
            rows, columns = list(below), _states_in(system, below)
        touched |= set(_states_in(system, rows))
        plan.append((rows, columns))
    return plan


def _states_in(system: System, rows: list[int]) -> list[int]:
    hidden = ca.vertcat(*(system.constraints[i] for i in rows))
    pattern = ca.jacobian_sparsity(hidden, system.x)
    return sorted(set(pattern.get_col()))


def _rank(system: System, rows: list[int], columns: list[int]) -> int:
    if not columns:
        return 0
    hidden = ca.vertcat(*(system.constraints[i] for i in rows))
    return int(ca.sprank(ca.jacobian_sparsity(hidden, ca.vertcat(*(system.x[j] for j in columns)))))


def solve_gram(C: ca.SX, W: ca.SX, c: ca.SX) -> ca.SX:
    """Return (C diag(W) Cᵀ)⁻¹ c: by division, by Cramer's rule, or by LDLᵀ from three constraints on."""
    G = ca.mtimes(C, ca.repmat(W, 1, C.size1()) * C.T)
    n = G.size1()
    if n == 1:
        return c / G
    lift = 1.0 + GRAM_REGULARISATION
    if n == 2:
        a, b, d = lift * G[0, 0], G[0, 1], lift * G[1, 1]
        return ca.vertcat(d * c[0] - b * c[1], a * c[1] - b * c[0]) / (a * d - b * b)
    return _solve_ldl([[lift * G[i, j] if i == j else G[i, j] for j in range(n)] for i in range(n)], c)


def _solve_ldl(G: list[list[ca.SX]], c: ca.SX) -> ca.SX:
    n = len(G)
    lower = [[ca.SX(0)] * n for _ in range(n)]
    inverse: list[ca.SX] = []
    scaled = [[ca.SX(0)] * n for _ in range(n)]
    for j in range(n):
        pivot = G[j][j] - sum((scaled[j][k] * lower[j][k] for k in range(j)), ca.SX(0))
        inverse.append(1.0 / pivot)
        for i in range(j + 1, n):
            scaled[i][j] = G[i][j] - sum((scaled[i][k] * lower[j][k] for k in range(j)), ca.SX(0))
            lower[i][j] = scaled[i][j] * inverse[j]
    y: list[ca.SX] = []
    for i in range(n):
        y.append(c[i] - sum((lower[i][k] * y[k] for k in range(i)), ca.SX(0)))
    solution = [ca.SX(0)] * n
    for i in reversed(range(n)):
        solution[i] = y[i] * inverse[i] - sum((lower[k][i] * solution[k] for k in range(i + 1, n)), ca.SX(0))
    return ca.vertcat(*solution)
