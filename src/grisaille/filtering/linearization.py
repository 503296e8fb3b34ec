"""Mean and covariance between samples by exact solution of the linearised equation, step by step.

About a point x̄ of the step, with g quadratic in time through its values at the beginning, middle and end,

    δ' = A δ + g(t),  δ = x − x(0)        g(t) = f̄(t, x̄) + A (x(0) − x̄)        P' = A P + P Aᵀ + W

has the solution x + δ(h), P ← Φ P Φᵀ + ∫ e^{As} W e^{Aᵀs} ds with Φ = e^{Ah}. δ(h) is a column of the exponential of A
bordered by the polynomial's coefficients, so a singular A is no special case; exponential and integral are Taylor
series over 2⁻ˢ of the step and s doublings, s frozen (``gr_filter_linearized.h``). x̄ is the middle of the step
as a linearly implicit half step sees it: the step is exact for linear models with inputs held or joined by lines, of
second order for others, and stable however stiff they are. (At the beginning of the step, as the reference has it, the
covariance would be of first order only.)

Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (19)–(26).
"""

from __future__ import annotations

import casadi as ca

from grisaille.filtering.algebraic_model import AlgebraicModel, solve_algebraic, with_corrections
from grisaille.filtering.constraint_projection import ConstraintProjection, Rates
from grisaille.filtering.moment_packing import lower_triangle
from grisaille.filtering.moment_steps import StepSymbols


def coefficients_function(
    closed: AlgebraicModel, rates: Rates, constant: bool, averaged: ConstraintProjection | None = None
) -> ca.Function:
    """Return (arguments of a step) → A, G row by row, lower triangle of W, z.

    averaged : keeps rates that are averages over sigma points on the constraints
    constant : the drift does not change with time inside a step but through the states; g is then one vector
    """
    packing = closed.packing
    a = StepSymbols.of(closed.model, packing)
    x, P, z = packing.unpack(a.s)
    rates = averaged.tangent(closed, rates, a.nominal) if averaged is not None else rates
    middle, spread, z = _middle(rates, a, x, P, z)
    begin, mid, end = (
        rates(a.t + part * a.h, a.h, middle, spread, z, u, a.q) for part, u in zip((0.0, 0.5, 1.0), a.u, strict=True)
    )
    A, first, W = mid[1], mid[0] if constant else begin[0], mid[2]
    forcing = first + ca.mtimes(A, x - middle)
    if not constant:
        forcing = ca.horzcat(forcing, 4 * mid[0] - 3 * begin[0] - end[0], 2 * (begin[0] - 2 * mid[0] + end[0]))
        W = (begin[2] + 4 * mid[2] + end[2]) / 6
    z = with_corrections(end[3], [z, begin[3], mid[3]])
    column = ca.vertcat(ca.vec(ca.densify(A.T)), ca.vec(ca.densify(forcing.T)), lower_triangle(W), z)
    return ca.Function("coefficients", a.arguments, ca.cse([ca.densify(column)]))


def after_step_function(closed: AlgebraicModel, projection: ConstraintProjection) -> ca.Function:
    """Return (t, s, u, q, nominal) → s on the constraints after a step."""
    packing = closed.packing
    a = StepSymbols.of(closed.model, packing)
    x, P, z = packing.unpack(a.s)
    x, P = projection.after_step(a.t, x, P, a.u[0], a.q, a.nominal)
    z = solve_algebraic(closed, a.t, x, z, a.u[0], a.q)
    arguments = [a.t, a.s, a.u[0], a.q, a.nominal]
    return ca.Function("settle", arguments, ca.cse([packing.pack(x, P, z)]))


def _middle(rates: Rates, a: StepSymbols, x: ca.SX, P: ca.SX, z: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return both moments after half a step, implicit in the linear part; first order is enough for the second of the
    step.
    """
    f, A, W, z = rates(a.t, a.h, x, P, z, a.u[0], a.q)
    n, half = x.numel(), a.h / 2
    if not ca.depends_on(f, x):
        return x, P, z
    through = ca.solve(ca.SX.eye(n) - half * A, ca.SX.eye(n))
    return x + half * ca.mtimes(through, f), ca.mtimes([through, P + half * W, through.T]), z
