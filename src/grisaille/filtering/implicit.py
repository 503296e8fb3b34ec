"""Algebraic unknowns solved inside the formulas of a filter.

    0 = g(t, X, z, u, q)        z ← z − (∂g/∂z)⁻¹ g,   a fixed number of times, from the last known solution

The iterations are part of every formula, so derivatives go through them. From a start that is a solution at the
point itself, k iterations have the derivatives of the implicit function up to order 2ᵏ − 1: the Jacobians that a filter
needs, and the derivatives of those, are those of the implicit function theorem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel

STEPS = 4
"""Newton steps per evaluation: between stages z moves little."""


@dataclass(frozen=True, eq=False)
class Closed:
    """Formulas of a model over (t, X, z, u, q), where z is a guess and not an unknown any more."""

    model: StochasticModel
    steps: int = STEPS

    @property
    def symbols(self) -> list[ca.SX]:
        m = self.model
        return [m.t, m.X, m.z, m.u, m.q]

    @cached_property
    def z(self) -> ca.SX:
        """The solution."""
        m = self.model
        if not m.z.numel():
            return m.z
        slope = ca.jacobian(m.residual, m.z)
        change = ca.Function("newton", self.symbols, [ca.solve(slope, m.residual)])
        z = m.z
        for _ in range(self.steps):
            z = z - change(m.t, m.X, z, m.u, m.q)
        return z

    def formula(self, given: ca.SX) -> ca.SX:
        """A formula of the model with z solved."""
        m = self.model
        return ca.substitute([given], [m.z], [self.z])[0] if m.z.numel() else given

    @cached_property
    def rates(self) -> ca.Function:
        """(t, X, z, u, q) → drift f, its Jacobian A, the intensity W = B Bᵀ, and z."""
        f = self.formula(self.model.drift)
        B = self.formula(self.model.noise)
        return ca.Function("rates", self.symbols, [f, ca.jacobian(f, self.model.X), ca.mtimes(B, B.T), self.z])

    @cached_property
    def flow(self) -> ca.Function:
        """(t, X, z, u, q) → f, W, z: the same without the Jacobian."""
        B = self.formula(self.model.noise)
        return ca.Function("flow", self.symbols, [self.formula(self.model.drift), ca.mtimes(B, B.T), self.z])

    @cached_property
    def seen(self) -> ca.Function:
        """(t, X, z, u, q) → h, H = ∂h/∂X, R."""
        h = self.formula(self.model.measured)
        R = self.formula(self.model.variance)
        return ca.Function("seen", self.symbols, [h, ca.jacobian(h, self.model.X), R])


def solved(closed: Closed, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX) -> ca.SX:
    """z at a point, from a guess."""
    if not z.numel():
        return z
    return ca.Function("z", closed.symbols, [closed.z])(t, x, z, u, q)
