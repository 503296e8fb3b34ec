"""The measurement update of linearised filters, as a formula with missing values.

    e = y − h(x)    S = H P Hᵀ + R    K = P Hᵀ S⁻¹    x ← x + K e    P ← (I − KH) P (I − KH)ᵀ + K R Kᵀ

A component that is not measured has zeros in e and H, and a one on the diagonal of R: it changes neither e ᵀS⁻¹e, nor
log det S, nor the moments, so one formula serves all patterns (eqs. (44)–(52) of the reference leave the rows out).
Only S is factorised. Afterwards the moments are put on the hidden constraints and algebraic unknowns are solved again.

Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import AlgebraicModel, solve_algebraic
from grisaille.filtering.constraint_projection import ConstraintProjection
from grisaille.filtering.moment_packing import Packing, lower_triangle
from grisaille.numerics.defined_points import at_defined_point, find_defined_points


@dataclass(frozen=True, eq=False)
class UpdateSymbols:
    """Arguments of every update; mask is one where y is measured, scale multiplies noise deviations."""

    t: ca.SX
    s: ca.SX
    u: ca.SX
    q: ca.SX
    nominal: ca.SX
    y: ca.SX
    mask: ca.SX
    scale: ca.SX

    @classmethod
    def of(cls, model: StochasticModel, packing: Packing) -> UpdateSymbols:
        ny = len(model.outputs)
        return cls(
            ca.SX.sym("t"), ca.SX.sym("s", packing.size), ca.SX.sym("u", model.u.numel()),
            ca.SX.sym("q", model.q.numel()), ca.SX.sym("nominal", model.n), ca.SX.sym("y", ny),
            ca.SX.sym("mask", ny), ca.SX.sym("scale", ny),
        )  # fmt: skip

    @property
    def arguments(self) -> list[ca.SX]:
        return [self.t, self.s, self.u, self.q, self.nominal, self.y, self.mask, self.scale]


@dataclass(frozen=True, eq=False)
class UpdateResult:
    """Moments after an update, innovation and its covariance, and z as the update knew it."""

    x: ca.SX
    P: ca.SX
    e: ca.SX
    S: ca.SX
    z: ca.SX


Update = Callable[[UpdateSymbols, ca.SX, ca.SX, ca.SX], UpdateResult]
"""(symbols, x, P, z) → moments after it"""


def update_function(closed: AlgebraicModel, update: Update, projection: ConstraintProjection) -> ca.Function:
    """Return (t, s, u, q, nominal, y, mask, scale) → s after it, e, lower triangle of S."""
    packing = closed.packing
    a = UpdateSymbols.of(closed.model, packing)
    x, P, z = packing.unpack(a.s)
    found = update(a, x, P, z)
    x, P = projection.after_update(a.t, found.x, found.P, a.u, a.q, a.nominal)
    z = solve_algebraic(closed.restarting, a.t, x, found.z, a.u, a.q)
    outputs = [packing.pack(x, P, z), ca.densify(found.e), ca.densify(lower_triangle(found.S))]
    return ca.Function("update", a.arguments, ca.cse(outputs))


def settle_function(closed: AlgebraicModel, projection: ConstraintProjection) -> ca.Function:
    """Return (t, s, u, q, nominal) → s with its moments on the constraints: an update without a measurement."""
    packing = closed.packing
    a = UpdateSymbols.of(closed.model, packing)
    x, P, z = packing.unpack(a.s)
    x, P = projection.after_update(a.t, x, P, a.u, a.q, a.nominal)
    z = solve_algebraic(closed.restarting, a.t, x, z, a.u, a.q)
    return ca.Function("settle", a.arguments[:5], ca.cse([packing.pack(x, P, z)]))


def linearized_update(closed: AlgebraicModel) -> Update:
    """Return the update of the extended filter."""

    def update(a: UpdateSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> UpdateResult:
        h, H, R, z = masked_measurement(closed, a, x, z)
        e = a.mask * a.y - h
        S = ca.mtimes([H, P, H.T]) + R
        K = solve_symmetric(S, ca.mtimes(H, P)).T
        return UpdateResult(x + ca.mtimes(K, e), joseph(P, K, H, R), e, S, z)

    return update


def masked_measurement(
    closed: AlgebraicModel, a: UpdateSymbols, x: ca.SX, z: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return h, H and R with rows that are not measured out of the way, and z."""
    h, H, R, z = seen_where_measured(closed, a, x, z)
    rows = ca.diag(a.mask)
    return a.mask * h, ca.mtimes(rows, H), masked_noise(a, R), z


def seen_where_measured(
    closed: AlgebraicModel, a: UpdateSymbols, x: ca.SX, z: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return h, H, R and z; outputs that may be undefined are taken at a point where they are not, where they are
    missing among others: their zeros in the mask would not make zero of infinity.
    """
    model = closed.model
    h, H, R, solved_z = closed.seen(a.t, x, z, a.u, a.q)
    if len(model.outputs) > 1 and not z.numel():
        for k, point in find_defined_points(model.measured, closed.symbols).items():
            own = closed.seen(*at_defined_point([a.t, x, z, a.u, a.q], a.mask[k] > 0, point))
            h[k], H[k, :], R[k, k] = own[0][k], own[1][k, :], own[2][k, k]
    return h, H, R, solved_z


def masked_noise(a: UpdateSymbols, R: ca.SX) -> ca.SX:
    factor = ca.diag(a.mask * a.scale)
    return ca.mtimes([factor, R, factor]) + ca.diag(1 - a.mask)


def joseph(P: ca.SX, K: ca.SX, H: ca.SX, R: ca.SX) -> ca.SX:
    """Return (I − KH) P (I − KH)ᵀ + K R Kᵀ, in an order without products of n × n matrices."""
    once = P - ca.mtimes(K, ca.mtimes(H, P))
    return once - ca.mtimes(ca.mtimes(once, H.T), K.T) + ca.mtimes([K, R, K.T])


def solve_symmetric(S: ca.SX, right: ca.SX) -> ca.SX:
    """Return S⁻¹ right by LDLᵀ."""
    D, upper, order = ca.ldl(ca.densify(S), False)
    return ca.densify(ca.ldl_solve(ca.densify(right), D, upper, order))
