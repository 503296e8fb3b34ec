"""Jumps that no Gaussian filter averages: outputs with two peaks, noise that is another on either side.

An output that jumps by more than twice what it is known to on either side has a density with two peaks near the switch;
noise whose deviation changes by more than a factor of two makes that of the states lopsided. Estimates over many data
sets showed it: with jumps of ± 2 in an output known to 0.2, intervals of 95 % held the truth in 10 of 20; with noise
three times as strong on one side in 67 of 80, twice as strong in 57 of 60.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from grisaille.cache import IdentityKey
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.model_jumps import ModelJump
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.structure.switching_pieces import SwitchingPiece, separate_jumps

TWO_PEAK_DISTANCE = 2.0
"""Deviations between two equal Gaussians from which on their mixture has two peaks."""
NOISE_RATIO = 2.0
"""Factor between noise deviations on either side."""


@dataclass(frozen=True, eq=False)
class JumpPoints:
    """Where a filter is near a switch: (N,) times, (N, …) states, covariances, algebraic unknowns, signals."""

    t: Floats
    x: Floats
    P: Floats
    z: Floats
    u: Floats
    is_sample: Floats


def too_large(model: StochasticModel, jump: ModelJump, points: JumpPoints, q: Floats) -> str:
    """Return why the jump at these points is beyond an average, in words; empty where it is not."""
    if not len(points.t):
        return ""
    sides_of = model.cached_value(("both sides", IdentityKey(jump)), lambda: _both_sides(model, jump))
    if sides_of is None:
        return ""
    for i, t in enumerate(points.t):
        at = (t, points.x[i], points.z[i], points.u[i], q)
        known, gap = (np.array(v.full()).ravel() for v in sides_of.relations(*at))
        sides = []
        for side in _sides(jump.kind, float(gap[0])):
            known[sides_of.mark] = side
            sides.append([np.array(v.full()) for v in sides_of.values(*at, known)])
        found = _outputs(model, jump, t, points.P[i], sides) if points.is_sample[i] else ""
        found = found or _noise(model, jump, t, sides)
        if found:
            return found
    return ""


@dataclass(frozen=True, eq=False)
class _BothSides:
    """What is measured, its variance and the driving noise, given what relations are.

    values : also a function of all relations, of which the jump is the one at ``mark``
    relations : what they all are, and the gap of the jump
    """

    values: ca.Function
    relations: ca.Function
    mark: int


def _both_sides(model: StochasticModel, jump: ModelJump) -> _BothSides | None:
    """Return the functions of a jump; None where none of these formulas jumps with it."""
    closed, m = AlgebraicModel(model), model
    formulas = [ca.densify(m.measured), ca.densify(m.variance), ca.densify(ca.mtimes(m.noise, m.noise.T))]
    formulas, pieces = separate_jumps(formulas, ca.vertcat(m.X, m.z))
    mine = [k for k, p in enumerate(pieces) if p.relation.kind == jump.kind]
    mine = [k for k in mine if str(_written_out(pieces, pieces[k].relation.gap)) == str(jump.gap)]
    if not mine:
        return None
    marks = ca.vertcat(*(p.symbol for p in pieces))
    h, R, W = (closed.formula(f) for f in formulas)
    outputs = [h, ca.diag(R), ca.diag(W), ca.jacobian(h, m.X)]
    value = ca.Function("sides", [*closed.plain_symbols, marks], [ca.densify(o) for o in outputs])
    now = [closed.formula(_written_out(pieces, p.relation.value)) for p in pieces]
    relations = ca.Function("now", closed.plain_symbols, [ca.vertcat(*now), closed.formula(jump.gap)])
    return _BothSides(value, relations, mine[0])


def _outputs(m: StochasticModel, jump: ModelJump, t: float, P: Floats, sides: list[list[Floats]]) -> str:
    away = np.abs(sides[0][0] - sides[1][0]).ravel()
    for k, name in enumerate(m.outputs):
        deviations = [np.sqrt(max(float(s[1][k, 0] + s[3][k] @ P @ s[3][k]), 0.0)) for s in sides]
        if away[k] > TWO_PEAK_DISTANCE * max(deviations):
            return (
                f"The output {name} jumps by {away[k]:.2g} with {jump.text} near t = {t:g}, where it is known to ± "
                f"{max(deviations):.2g} on either side: its prediction has two peaks, and the unscented filter, which "
                f"takes it for a Gaussian, would estimate wrongly. Measure what does not jump, or use "
                f"gr.SimulatedPEM()."
            )
    return ""


def _noise(m: StochasticModel, jump: ModelJump, t: float, sides: list[list[Floats]]) -> str:
    one, other = sides[0][2].ravel(), sides[1][2].ravel()
    for k, name in enumerate(m.names):
        low, high = sorted((float(one[k]), float(other[k])))
        if high > NOISE_RATIO**2 * low:
            return (
                f"The noise that drives {name} has the deviation {np.sqrt(high):.2g} on one side of {jump.text} and "
                f"{np.sqrt(low):.2g} on the other, and near t = {t:g} both are possible: more than a factor of "
                f"{NOISE_RATIO:g} makes the state lopsided, and the unscented filter, which takes it for a "
                "Gaussian, would "
                f"estimate wrongly. Use gr.SimulatedPEM(), or noise that does not jump."
            )
    return ""


def _sides(kind: str, gap: float) -> tuple[float, float]:
    if kind == "sign":
        return -1.0, 1.0
    if kind in ("floor", "ceil"):
        level = float(np.round(gap))
        return (level - 1.0, level) if kind == "floor" else (level, level + 1.0)
    return 0.0, 1.0


def _written_out(pieces: Sequence[SwitchingPiece], formula: ca.SX) -> ca.SX:
    for piece in reversed(pieces):
        formula = ca.substitute(formula, piece.symbol, piece.relation.value)
    return formula
