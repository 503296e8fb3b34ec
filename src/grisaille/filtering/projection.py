"""Means and covariances kept on the hidden constraints.

    x ← π(x),        P ← Π P Πᵀ,   Π = ∂π/∂x        after a step: π is one correction per level (``compilation.step``)

after Runge–Kutta steps of the mean, two after others, which leave the constraints further.
After a measurement update π is repeated until the point lies on the constraints, and Π is the projector on their
tangent there. The metric is that of the nominal sizes of the states.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from grisaille.compilation.step import project
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.structure.system import System

CORRECTIONS = 3
"""Gauss–Newton corrections after an update: each squares the violation."""


def augmented(model: StochasticModel) -> System:
    """The reduced system with the states of the disturbances among its own."""
    return replace(
        model.structure.system, x=model.X, p=model.q, rhs=model.drift, constraints=model.constraints,
        state_names=model.names, parameter_names=model.quantities,
    )  # fmt: skip


class Projection:
    """Formulas of (t, x, P, u, q, nominal)."""

    def __init__(self, model: StochasticModel, per_step: int = 2) -> None:
        self.nc, self.per_step = int(model.constraints.numel()), per_step
        self._corrections: dict[int, ca.Function] = {}
        if not self.nc:
            return
        s = augmented(model)
        nominal = ca.SX.sym("nominal", s.nx)
        for count in {1, per_step, CORRECTIONS}:
            after = s.x
            for _ in range(count):
                after = project(s, s.t, after, s.u, s.p, nominal)
            slope = ca.jacobian(after, s.x)
            self._corrections[count] = ca.Function("project", [s.t, s.x, s.u, s.p, nominal], [after, slope])

    def after_step(
        self, t: ca.SX, x: ca.SX, P: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        if not self.nc:
            return x, P
        moved, tangent = self._corrections[self.per_step](t, x, u, q, nominal)
        return moved, ca.mtimes([tangent, P, tangent.T])

    def after_update(
        self, t: ca.SX, x: ca.SX, P: ca.SX, u: ca.SX, q: ca.SX, nominal: ca.SX
    ) -> tuple[ca.SX, ca.SX]:  # fmt: skip
        if not self.nc:
            return x, P
        moved, _ = self._corrections[CORRECTIONS](t, x, u, q, nominal)
        _, tangent = self._corrections[1](t, moved, u, q, nominal)
        return moved, ca.mtimes([tangent, P, tangent.T])
