"""Mean and covariance between samples by their differential equations, with classical Runge–Kutta steps.

    x' = f̄        P' = A P + P Aᵀ + W

f̄, A, W are functions of (t, x, P): the drift, its Jacobian and B Bᵀ at the mean for linearised filters; averages over
sigma points for the unscented one. After each step both moments are projected on the hidden constraints. The number of
steps is chosen once and kept, so that everything is a smooth function of the unknowns.

Reference: A. H. Jazwinski, Stochastic Processes and Filtering Theory (1970), section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from grisaille.filtering.implicit import Closed, solved
from grisaille.filtering.packing import Packing
from grisaille.filtering.projection import Projection
from grisaille.filtering.stochastic import StochasticModel

Rates = Callable[[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX, ca.SX, ca.SX]]
"""(t, x, P, z, u, q) → f̄, A, W, z"""


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


def linearized_rates(closed: Closed) -> Rates:
    """Those of the extended filter: everything at the mean."""

    def rates(t: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        f, A, W, z = closed.rates(t, x, z, u, q)
        return f, A, W, z

    return rates


def moment_step(model: StochasticModel, rates: Rates, projection: Projection) -> ca.Function:
    """One Runge–Kutta step of both moments."""
    packing = Packing(model.n, model.z.numel())
    a = StepSymbols.of(model, packing)
    x, P, z = packing.unpack(a.s)
    half = a.h / 2
    dx, dP, sum_x, sum_P = ca.SX.zeros(model.n), ca.SX.zeros(model.n, model.n), 0, 0
    for length, offset, u, weight in ((0, 0, 0, 1), (half, half, 1, 2), (half, half, 1, 2), (a.h, a.h, 2, 1)):
        here = P + length * dP
        dx, A, W, z = rates(a.t + offset, x + length * dx, here, z, a.u[u], a.q)
        moved = ca.mtimes(A, here)
        dP = moved + moved.T + W
        sum_x, sum_P = sum_x + weight * dx, sum_P + weight * dP
    sixth, end = a.h / 6, a.t + a.h
    x, P = projection.after_step(end, x + sixth * sum_x, P + sixth * sum_P, a.u[2], a.q, a.nominal)
    z = solved(Closed(model), end, x, z, a.u[2], a.q)
    return ca.Function("step", a.arguments, ca.cse([packing.pack(x, P, z)]))
