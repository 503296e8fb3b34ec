"""Averages over a Gaussian of formulas that jump: it is cut at each switch, and sigma points average the rest.

Let g ~ N(μ, s²) be the gap of a relation, μ = g(x), s² = G P Gᵀ, G = ∂g/∂x. Where g lies between a and b, with
α = (a − μ)/s, β = (b − μ)/s, the Gaussian has

    weight      p = Φ(β) − Φ(α)
    mean        x + P Gᵀ m/s                       m = (φ(α) − φ(β))/p
    covariance  P − P Gᵀ G P (1 − v)/s²            v = 1 + (α φ(α) − β φ(β))/p − m²

and the relation is a constant there; means and covariances of formulas add up over the parts. For one relation with a
linear gap and formulas that are linear on either side the result is exact; it is a smooth function of x and P, so
that likelihoods have derivatives where plain sigma points, which change sides one by one, make a staircase of them.
Further relations cut the parts again, each taken for a Gaussian. Where the gap is certain the relation decides.

``floor`` and ``ceil`` are cut at the five integers around the mean: s must stay below half a step (``near_switches``).

References: D. R. Barr, E. T. Sherrill, Am. Stat. 53 (1999) 357 (truncated moments); A. Gelb, Applied Optimal Estimation
(1974), section 6.2 (statistical linearisation).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.algebraic_model import AlgebraicModel, with_corrections
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.structure.switching_pieces import SwitchingPiece, separate_jumps

MAX_DEVIATIONS = 5.0
"""Standard deviations from which on a part's shape no longer matters: its weight is below 3e-7."""
STAIRS_PER_SIDE = 2
"""Integers on either side of the nearest one at which stairs are cut."""
MAX_PARTS = 64


@dataclass(frozen=True, eq=False)
class _MixturePart:
    weight: ca.SX
    x: ca.SX
    P: ca.SX
    marks: tuple[ca.SX, ...]
    """The value of each relation so far."""


@dataclass(frozen=True, eq=False)
class JumpAverage:
    """Moments of a vector formula v and of a matrix formula M as functions of (t, X, P, (z, ρ), u, q).

    ``function`` gives E v, E M, cov(X, v) and cov(v), and z at the mean with the corrections of all points.
    """

    function: ca.Function

    def __call__(self, *arguments: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, ca.SX]:
        mean, matrix, together, spread, z = self.function(*arguments)
        return mean, matrix, together, spread, z


def average(closed: AlgebraicModel, v: ca.SX, M: ca.SX, sigma: SigmaPoints) -> JumpAverage | None:
    """Return the average across a jump; None where neither formula jumps: plain sigma points then serve."""
    model = closed.model
    if not model.jumps:
        return None
    (v, M), pieces = separate_jumps([ca.densify(v), ca.densify(M)], ca.vertcat(model.X, model.z))
    if not pieces:
        return None
    _refuse_too_many(model, pieces)
    P = ca.SX.sym("P", model.n, model.n)
    parts = [_MixturePart(ca.SX(1), model.X, P, ())]
    for k, piece in enumerate(pieces):
        gap = _gap_function(closed, pieces[:k], piece)
        parts = [cut for part in parts for cut in _cut(closed, gap, piece.relation.kind, part)]
    marks = ca.vertcat(*(p.symbol for p in pieces))
    f = ca.Function("part", [*closed.symbols, marks], [closed.formula(v), closed.formula(M), closed.z])
    means, matrices, withins, spreads, solutions = [], [], [], [], []
    for part in parts:
        mean, matrix, within, spread, z = _over_points(f, closed, sigma, part)
        solutions += z
        means.append(mean)
        matrices.append(part.weight * matrix)
        withins.append(within)
        spreads.append(spread)
    mean = sum((p.weight * m for p, m in zip(parts, means, strict=True)), start=ca.SX(v.numel(), 1))
    together, spread = ca.SX(model.n, v.numel()), ca.SX(v.numel(), v.numel())
    for part, own, within, inside in zip(parts, means, withins, spreads, strict=True):
        together += part.weight * (within + ca.mtimes(part.x - model.X, (own - mean).T))
        spread += part.weight * (inside + ca.mtimes(own - mean, (own - mean).T))
    outputs = [mean, sum(matrices, start=ca.SX(*M.shape)), together, spread, with_corrections(closed.z, solutions)]
    t, x, z, u, q = closed.symbols
    arguments = [t, x, P, z, u, q]
    return JumpAverage(ca.Function("average", arguments, ca.cse([ca.densify(o) for o in outputs])))


def _over_points(
    f: ca.Function, closed: AlgebraicModel, sigma: SigmaPoints, part: _MixturePart
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX, list[ca.SX]]:
    """Return mean of both formulas, cov(X, v) and cov(v) inside a part, and z at its points."""
    t, _, z, u, q = closed.symbols
    points, means, covariances = sigma.around(part.x, part.P)
    found = [f(t, point, z, u, q, ca.vertcat(*part.marks)) for point in points]
    mean, matrix = (sum((means[i] * value[k] for i, value in enumerate(found)), start=0) for k in (0, 1))
    together, spread = ca.SX(part.x.numel(), mean.numel()), ca.SX(mean.numel(), mean.numel())
    for i, (point, value) in enumerate(zip(points, found, strict=True)):
        away = value[0] - mean
        together += covariances[i] * ca.mtimes(point - part.x, away.T)
        spread += covariances[i] * ca.mtimes(away, away.T)
    return mean, matrix, together, spread, [value[2] for value in found]


def _gap_function(closed: AlgebraicModel, before: Sequence[SwitchingPiece], piece: SwitchingPiece) -> ca.Function:
    """Return (t, X, z, u, q, relations before) → gap, ∂gap/∂X, the relation itself."""
    marks = ca.vertcat(*(p.symbol for p in before)) if before else ca.SX(0, 1)
    gap, value = closed.formula(piece.relation.gap), closed.formula(piece.relation.value)
    slope = ca.densify(ca.jacobian(gap, closed.model.X))
    return ca.Function("gap", [*closed.symbols, marks], [gap, slope, value])


def _cut(closed: AlgebraicModel, gap: ca.Function, kind: str, part: _MixturePart) -> Iterator[_MixturePart]:
    t, _, z, u, q = closed.symbols
    marks = ca.vertcat(*part.marks) if part.marks else ca.SX(0, 1)
    mean, G, value = gap(t, part.x, z, u, q, marks)
    if kind in ("eq", "ne"):  # equality has probability zero, unless nothing is uncertain
        yield _MixturePart(part.weight, part.x, part.P, (*part.marks, value))
        return
    reach = ca.mtimes(part.P, G.T)
    variance = ca.mtimes(G, reach)
    is_uncertain = variance > 0
    s = ca.sqrt(ca.if_else(is_uncertain, variance, 1.0))
    direction = reach / s
    for begin, end, level in _levels(kind, mean):
        low, high = ((None if edge is None else (edge - mean) / s) for edge in (begin, end))
        weight, shift, spread = truncated_moments(low, high)
        certain = ca.if_else(value == level, 1.0, 0.0) if kind != "sign" else ca.if_else(level * mean > 0, 1.0, 0.0)
        if kind == "sign":
            certain = ca.if_else(mean == 0, 0.5, certain)
        yield _MixturePart(
            part.weight * ca.if_else(is_uncertain, weight, certain),
            part.x + ca.if_else(is_uncertain, shift, 0.0) * direction,
            part.P - ca.if_else(is_uncertain, 1 - spread, 0.0) * ca.mtimes(direction, direction.T),
            (*part.marks, level),
        )


def _levels(kind: str, mean: ca.SX) -> list[tuple[ca.SX | None, ca.SX | None, ca.SX]]:
    """Return intervals of the gap (None: infinite) and the relation's value on each."""
    zero = ca.SX(0)
    if kind in ("lt", "le"):
        return [(None, zero, ca.SX(1)), (zero, None, zero)]
    if kind == "sign":
        return [(None, zero, ca.SX(-1)), (zero, None, ca.SX(1))]
    nearest = ca.floor(mean + 0.5)
    edges = [nearest + k for k in range(-STAIRS_PER_SIDE, STAIRS_PER_SIDE + 1)]
    below = [edges[0] - 1, *edges]
    levels = below if kind == "floor" else [level + 1 for level in below]
    return list(zip([None, *edges], [*edges, None], levels, strict=True))


def truncated_moments(low: ca.SX | None, high: ca.SX | None) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return probability, mean and variance of a standard normal between two bounds (None: infinite).

    Mean and variance of a part beyond ``MAX_DEVIATIONS`` are those of a cut there.
    """
    weight = _probability(low, high)
    low = None if low is None else ca.fmin(low, MAX_DEVIATIONS)
    high = None if high is None else ca.fmax(high, -MAX_DEVIATIONS)
    p = ca.fmax(_probability(low, high), 1e-12)
    at_low, at_high = (ca.SX(0) if edge is None else _density(edge) for edge in (low, high))
    mean = (at_low - at_high) / p
    square = ((0 if low is None else low * at_low) - (0 if high is None else high * at_high)) / p
    return weight, mean, ca.fmax(1 + square - mean**2, 0.0)


def _probability(low: ca.SX | None, high: ca.SX | None) -> ca.SX:
    upper = ca.SX(1) if high is None else ca.erf(high / math.sqrt(2))
    lower = ca.SX(-1) if low is None else ca.erf(low / math.sqrt(2))
    return (upper - lower) / 2


def _density(x: ca.SX) -> ca.SX:
    return ca.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _refuse_too_many(model: StochasticModel, pieces: Sequence[SwitchingPiece]) -> None:
    count = math.prod(2 * STAIRS_PER_SIDE + 2 if p.relation.kind in ("floor", "ceil") else 2 for p in pieces)
    if count > MAX_PARTS:
        raise EstimationError(
            f"{model.structure.model.name} jumps across {len(pieces)} relations of its states, {count} pieces; the "
            f"unscented filter averages over at most {MAX_PARTS}. Use gr.SimulatedPEM(), which simulates them, or "
            f"make some continuous (gr.tanh(x / width) in place of gr.sign(x))."
        )
