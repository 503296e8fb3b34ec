"""Projection of means and covariances onto the hidden constraints.

    x ← π(x),        P ← Π P Πᵀ,   Π = ∂π/∂x        after a step: π is one correction per level (``compilation.step``)

after Runge–Kutta steps of the mean, two after others, which leave the constraints further.
After a measurement update π is repeated until the point lies on the constraints, and Π is the projector on their
tangent there. The metric is that of the nominal sizes of the states.

Averages over sigma points lead away from the constraints: the mean of points on a circle lies inside it. Corrected
after steps only, that would cost a step all orders but the first, so the rates themselves are made tangent,

    x' = f + Π c,   c = f̄ − f        P' = (A + N) P + P (A + N)ᵀ + Π W Πᵀ,   N = ∂(Π(x) c)/∂x, c held

f(x) is tangent as it is, and so is A P + P Aᵀ while x' = f. N is what ∂π/∂x does to P at x + c dt: it turns P along
with the tangent, and stretches it as a circle stretches what lies inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import casadi as ca

from grisaille.compilation.step import project
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.structure.system import System

PROJECTION_CORRECTIONS = 3
"""Gauss–Newton corrections after an update: each squares the violation."""
Rates = Callable[[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX, ca.SX], tuple[ca.SX, ca.SX, ca.SX, ca.SX]]
"""(t, h, x, P, z, u, q) → f̄, A, W, z in a step of length h"""


def augmented(model: StochasticModel) -> System:
    """Return the reduced system with the states of the disturbances among its own."""
    return replace(
        model.structure.system, x=model.X, p=model.q, rhs=model.drift, constraints=model.constraints,
        state_names=model.names, parameter_names=model.quantities,
    )  # fmt: skip


class ConstraintProjection:
    """Formulas of (t, x, P, u, q, nominal)."""

    def __init__(self, model: StochasticModel, per_step: int = 2) -> None:
        self.nc, self.per_step = int(model.constraints.numel()), per_step
        self._corrections: dict[int, ca.Function] = {}
        if not self.nc:
            return
        s = augmented(model)
        nominal = ca.SX.sym("nominal", s.nx)
        for count in {1, per_step, PROJECTION_CORRECTIONS}:
            after = s.x
            for _ in range(count):
                after = project(s, s.t, after, s.u, s.p, nominal)
            slope = ca.jacobian(after, s.x)
            self._corrections[count] = ca.Function("project", [s.t, s.x, s.u, s.p, nominal], [after, slope])

    def tangent(self, closed: AlgebraicModel, rates: Rates, nominal: ca.SX) -> Rates:
        """Return rates of averages that stay on the constraints."""
        if not self.nc:
            return rates
        s = augmented(closed.model)
        held, c = ca.SX.sym("nominal", s.nx), ca.SX.sym("c", s.nx)
        slope = ca.jacobian(project(s, s.t, s.x, s.u, s.p, held), s.x)
        turn = ca.jacobian(ca.mtimes(slope, c), s.x)
        tangent = ca.Function("tangent", [s.t, s.x, s.u, s.p, held], [slope])
        turning = ca.Function("turning", [s.t, s.x, s.u, s.p, held, c], [turn])

        def kept(
            t: ca.SX, h: ca.SX, x: ca.SX, P: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX
        ) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
            along = tangent(t, x, u, q, nominal)
            # inside a step P is tangent but for its order: sigma points feel the root of what sticks out
            mean, A, W, solved = rates(t, h, x, ca.mtimes([along, P, along.T]), z, u, q)
            c = mean - closed.flow(t, h, x, z, u, q)[0]
            N = turning(t, x, u, q, nominal, c)
            return mean - c + ca.mtimes(along, c), A + N, ca.mtimes([along, W, along.T]), solved

        return kept

    def onto_after_step(
        self, t: ca.SX, x: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        """Return the point on the constraints after a step, and Π."""
        moved, tangent = self._corrections[self.per_step](t, x, u, q, nominal)
        return moved, tangent

    def onto_after_update(
        self, t: ca.SX, x: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        """Return the same after an update."""
        moved, _ = self._corrections[PROJECTION_CORRECTIONS](t, x, u, q, nominal)
        _, tangent = self._corrections[1](t, moved, u, q, nominal)
        return moved, tangent

    def after_step(
        self, t: ca.SX, x: ca.SX, P: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        if not self.nc:
            return x, P
        moved, tangent = self.onto_after_step(t, x, u, q, nominal)
        return moved, ca.mtimes([tangent, P, tangent.T])

    def after_update(
        self, t: ca.SX, x: ca.SX, P: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        if not self.nc:
            return x, P
        moved, tangent = self.onto_after_update(t, x, u, q, nominal)
        return moved, ca.mtimes([tangent, P, tangent.T])
