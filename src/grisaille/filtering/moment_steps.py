"""Mean and covariance between samples by their differential equations, with classical Runge–Kutta or Euler's steps.

    x' = f̄        P' = A P + P Aᵀ + W

f̄, A, W are functions of (t, x, P): the drift, its Jacobian and B Bᵀ at the mean for linearised filters; averages over
sigma points for the unscented one. After each step both moments are projected on the hidden constraints. The number of
steps is chosen once and kept, so that everything is a smooth function of the unknowns.

Reference: A. H. Jazwinski, Stochastic Processes and Filtering Theory (1970), section 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import AlgebraicModel, solve_algebraic
from grisaille.filtering.constraint_projection import ConstraintProjection, Rates
from grisaille.filtering.moment_packing import Packing


@dataclass(frozen=True, eq=False)
class StepSymbols:
    """Arguments of every step: signals are at t, t + h/2 and t + h."""

    t: ca.SX
    h: ca.SX
    s: ca.SX
    u: tuple[ca.SX, ca.SX, ca.SX]
    q: ca.SX
    nominal: ca.SX

    @classmethod
    def of(cls, model: StochasticModel, packing: Packing) -> StepSymbols:
        nu, nq = model.u.numel(), model.q.numel()
        u = (ca.SX.sym("ua", nu), ca.SX.sym("um", nu), ca.SX.sym("ub", nu))
        return cls(
            ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("s", packing.size), u, ca.SX.sym("q", nq),
            ca.SX.sym("nominal", model.n),
        )  # fmt: skip

    @property
    def arguments(self) -> list[ca.SX]:
        return [self.t, self.h, self.s, *self.u, self.q, self.nominal]


@dataclass(frozen=True)
class StageTable:
    """An explicit method: where each stage is evaluated, as a part of the step, its signals, and its weight."""

    parts: tuple[float, ...]
    signals: tuple[int, ...]
    weights: tuple[float, ...]
    is_for_comparison: bool = False
    """Whether it stands in for what other programs do: too poor for its number of steps to be found."""


STAGE_TABLES = {
    "rk4": StageTable((0.0, 0.5, 0.5, 1.0), (0, 1, 1, 2), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "euler": StageTable((0.0,), (0,), (1.0,), is_for_comparison=True),
}
"""Each stage starts from the slopes of the one before."""


def linearized_rates(closed: AlgebraicModel) -> Rates:
    """Return the rates of the extended filter: everything is evaluated at the mean."""

    def rates(
        t: ca.SX, h: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        f, A, W, z = closed.rates(t, h, x, z, u, q)
        return f, A, W, z

    return rates


def moment_step(
    closed: AlgebraicModel, rates: Rates, projection: ConstraintProjection, solver: str = "rk4", averaged: bool = False
) -> ca.Function:
    """Return one step of both moments; ``averaged`` rates are those of sigma points, which leave the constraints."""
    model, packing = closed.model, closed.packing
    a = StepSymbols.of(model, packing)
    x, P, z = packing.unpack(a.s)
    rates = projection.tangent(closed, rates, a.nominal) if averaged else rates
    method = STAGE_TABLES[solver]
    dx, dP, sum_x, sum_P = ca.SX.zeros(model.n), ca.SX.zeros(model.n, model.n), 0, 0
    for part, u, weight in zip(method.parts, method.signals, method.weights, strict=True):
        here = P + part * a.h * dP
        dx, A, W, z = rates(a.t + part * a.h, a.h, x + part * a.h * dx, here, z, a.u[u], a.q)
        moved = ca.mtimes(A, here)
        dP = moved + moved.T + W
        sum_x, sum_P = sum_x + weight * dx, sum_P + weight * dP
    end = a.t + a.h
    x, P = projection.after_step(end, x + a.h * sum_x, P + a.h * sum_P, a.u[2], a.q, a.nominal)
    z = solve_algebraic(closed, end, x, z, a.u[2], a.q)
    return ca.Function("step", a.arguments, ca.cse([packing.pack(x, P, z)]))
