"""Algebraic unknowns solved inside the formulas of a filter.

    0 = g(t, X, z, u, q)        z ← z − (∂g/∂z)⁻¹ g,   a fixed number of times, from the last known solution

The iterations are part of every formula, so derivatives go through them. From a start that is a solution at the
point itself, k iterations have the derivatives of the implicit function up to order 2ᵏ − 1: the Jacobians that a filter
needs, and the derivatives of those, are those of the implicit function theorem.

Whether they are enough is carried along: a filter carries (z, ρ), and ρ is the largest last correction of each unknown
so far. Newton's method squares errors, so where ρ is small against z what is left is its square (``roots``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.averaged_bends import average_bends
from grisaille.filtering.moment_packing import Packing

NEWTON_STEPS = 4
"""Newton steps per evaluation: between stages z moves little."""
RESTART_NEWTON_STEPS = 8
"""After an update, which moves states further than a step does."""


@dataclass(frozen=True, eq=False)
class AlgebraicModel:
    """Formulas of a model over (t, X, (z, ρ), u, q), where z is a guess and not an unknown any more."""

    model: StochasticModel
    steps: int = NEWTON_STEPS

    @property
    def packing(self) -> Packing:
        """Of what a filter carries."""
        return packing_of(self.model)

    @property
    def restarting(self) -> AlgebraicModel:
        """Return the Newton method for states that have changed much."""
        return replace(self, steps=max(RESTART_NEWTON_STEPS, self.steps))

    @cached_property
    def symbols(self) -> list[ca.SX]:
        m = self.model
        return [m.t, m.X, ca.vertcat(m.z, ca.SX.sym("rho", m.z.numel())), m.u, m.q]

    @property
    def plain_symbols(self) -> list[ca.SX]:
        """Return the same without corrections, for formulas that do not look at them."""
        m = self.model
        return [m.t, m.X, m.z, m.u, m.q]

    @cached_property
    def z(self) -> ca.SX:
        """Return the solution, and the largest last correction so far."""
        return self._solution(self.model.residual, ca.SX(0, 1))

    def _solution(self, residual: ca.SX, widths: ca.SX) -> ca.SX:
        """Return the solution of residual = 0, in which widths are averaged over, and its largest last correction."""
        m = self.model
        if not m.z.numel():
            return m.z
        slope = ca.jacobian(residual, m.z)
        change = ca.Function("newton", [*self.plain_symbols, widths], [ca.solve(slope, residual)])
        z = m.z
        for _ in range(self.steps):
            last = change(m.t, m.X, z, m.u, m.q, widths)
            z = z - last
        return ca.vertcat(z, ca.fmax(self.symbols[2][m.z.numel() :], ca.fabs(last)))

    def formula(self, given: ca.SX) -> ca.SX:
        """Return a formula of the model with z solved."""
        m = self.model
        return ca.substitute([given], [m.z], [self.z[: m.z.numel()]])[0] if m.z.numel() else given

    @cached_property
    def h(self) -> ca.SX:
        """The length of a step, over which bends are averaged."""
        return ca.SX.sym("h")

    @property
    def step_symbols(self) -> list[ca.SX]:
        """The symbols of what is evaluated in a step of length h."""
        t, *others = self.symbols
        return [t, self.h, *others]

    @cached_property
    def rates(self) -> ca.Function:
        """(t, h, X, (z, ρ), u, q) → drift f, its Jacobian A, the intensity W = B Bᵀ, and (z, ρ)."""
        m, averaged = self.model, average_bends(self.model, self.h)
        z = self._solution(averaged.residual, averaged.widths) if averaged.widths.numel() else self.z
        f, B = averaged.drift, m.noise
        if m.z.numel():
            f, B = ca.substitute([f, B], [m.z], [z[: m.z.numel()]])
        found = [f, ca.jacobian(f, m.X), ca.mtimes(B, B.T), z]
        if averaged.widths.numel():
            found = ca.substitute(found, [averaged.widths], [self.formula(averaged.formulas)])
        return ca.Function("rates", self.step_symbols, found)

    @cached_property
    def flow(self) -> ca.Function:
        """(t, h, X, (z, ρ), u, q) → f, W, (z, ρ): the same without the Jacobian."""
        f, _, W, z = self.rates(*self.step_symbols)
        return ca.Function("flow", self.step_symbols, [f, W, z])

    @cached_property
    def seen(self) -> ca.Function:
        """(t, X, (z, ρ), u, q) → h, H = ∂h/∂X, R, (z, ρ)."""
        h = self.formula(self.model.measured)
        R = self.formula(self.model.variance)
        return ca.Function("seen", self.symbols, [h, ca.jacobian(h, self.model.X), R, self.z])


def packing_of(model: StochasticModel) -> Packing:
    """Return what a filter of the model carries: moments, algebraic unknowns and their corrections."""
    return Packing(model.n, 2 * int(model.z.numel()))


def solve_algebraic(closed: AlgebraicModel, t: ca.SX, x: ca.SX, z: ca.SX, u: ca.SX, q: ca.SX) -> ca.SX:
    """Return (z, ρ) at a point, from a guess."""
    if not z.numel():
        return z
    return ca.Function("z", closed.symbols, [closed.z])(t, x, z, u, q)


def with_corrections(z: ca.SX, others: list[ca.SX]) -> ca.SX:
    """Return (z, ρ) with the corrections of other points, too: the largest counts."""
    nz = z.numel() // 2
    rho = z[nz:]
    for other in others:
        rho = ca.fmax(rho, other[nz:])
    return ca.vertcat(z[:nz], rho)
