"""A prior of the curvature of a table's values.

Under ``gr.Smoothness(scale)`` the curve f is a line plus twice integrated white noise, −log density = ½ ∫ f″² dx / σ²
up to a constant, with σ² = 48 scale² / L³, L the range of the knots: the curve's middle lies off the chord between its
ends with the standard deviation ``scale``. Of all curves through values y at the knots the natural cubic spline has the
least ∫ f″² dx, which is (Qᵀy)ᵀ R⁻¹ (Qᵀy), Qᵀy the differences of successive slopes and R tridiagonal with
(hₖ + hₖ₊₁)/3 and hₖ₊₁/6; and this is −2 σ² log of the density of the values themselves. So more knots do not change
what is believed, however uneven they are. Level and slope of the curve stay free. Of a table that repeats itself all is
cyclic; of one of two arguments the mean over the lines along each of them.

Reference: G. Wahba, J. R. Stat. Soc. B 40 (1978) 364; Q and R: P. J. Green, B. W. Silverman, Nonparametric Regression
and Generalized Linear Models (1994), section 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.curves.curve_values import curve_values, unknowns_in
from grisaille.laws import SmoothCurve, Smoothness
from grisaille.model.curve_tables import CurveTable, find_curves
from grisaille.model.flat import FlatModel
from grisaille.structure.switching_pieces import is_affine

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


def with_smoothness(
    flat: FlatModel, unknowns: Sequence[Unknown], experiments: Sequence[Experiment]
) -> tuple[Unknown, ...]:
    """Return the unknowns with every ``gr.Smoothness`` written out as a joint prior of the table it belongs to."""
    believed = [u for u in unknowns if isinstance(u.prior, Smoothness)]
    curves = find_curves(flat)
    made: list[tuple[CurveTable, SmoothCurve]] = []
    joint: dict[str, SmoothCurve] = {}
    for unknown in believed:
        curve = _curve_of(unknown, curves)
        prior = next((p for c, p in made if c is curve and p.scale == unknown.prior.scale), None)
        if prior is None:
            _refuse_two_scales(unknown, curve, made)
            prior = _written_out(flat, curve, unknown.prior, unknowns, experiments)
            made.append((curve, prior))
        joint[unknown.name] = prior
    return tuple(replace(u, prior=joint[u.name]) if u.name in joint else u for u in unknowns)


def bending_rows(knots: Sequence[float], outside: str) -> np.ndarray:
    """Return A with |A y|² = −2 log density of values y at the knots, for a scale of one."""
    h = np.diff(knots) / (knots[-1] - knots[0])
    if outside == "repeat":
        n = len(h)
        Q, R = np.zeros((n, n)), np.zeros((n, n))
        for k in range(n):
            before, after = (k - 1) % n, (k + 1) % n
            for at, value in ((before, 1 / h[before]), (k, -1 / h[before] - 1 / h[k]), (after, 1 / h[k])):
                Q[k, at] += value
            R[k, k] += (h[before] + h[k]) / 3
            R[k, after] += h[k] / 6
            R[after, k] += h[k] / 6
    else:
        n = len(h) - 1
        Q = np.zeros((n, len(knots)))
        for k in range(n):
            Q[k, k : k + 3] = 1 / h[k], -1 / h[k] - 1 / h[k + 1], 1 / h[k + 1]
        R = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(R), Q) / np.sqrt(48))


def surface_rows(curve: CurveTable) -> np.ndarray:
    """Return the same for the values of a table of one or two arguments, row by row."""
    if len(curve.knots) == 1:
        return bending_rows(curve.knots[0], curve.outside[0])
    first, second = (
        bending_rows(knots, way) if len(knots) > 2 else np.zeros((0, n))
        for knots, way, n in zip(curve.knots, curve.outside, curve.shape, strict=True)
    )
    shares = [_shares(knots, way) for knots, way in zip(curve.knots, curve.outside, strict=True)]
    along = np.kron(first, np.diag(np.sqrt(shares[1])))
    across = np.kron(np.diag(np.sqrt(shares[0])), second)
    return np.vstack([along, across])


def _shares(knots: Sequence[float], outside: str) -> np.ndarray:
    """Return how much of the range belongs to each knot."""
    h = np.diff(knots) / (2 * (knots[-1] - knots[0]))
    share = np.append(h, 0.0) + np.append(0.0, h)
    if outside != "repeat":
        return np.asarray(share)
    share[0] += share[-1]
    return np.asarray(share[:-1])


def _curve_of(unknown: Unknown, curves: Sequence[CurveTable]) -> CurveTable:
    found = [c for c in curves if unknown.kind == "parameter" and unknown.target in c.parameters]
    if not found:
        raise EstimationError(
            f"The prior of '{unknown.name}' is {unknown.prior}, which is for the values of a gr.table or gr.table2; "
            f"'{unknown.name}' is not one of them. Use gr.Normal or gr.LogNormal."
        )
    if len(found) > 1:
        raise EstimationError(
            f"The prior of '{unknown.name}' is {unknown.prior}, but it stands in {len(found)} different tables: "
            f"{'; '.join(c.text for c in found[:3])}. Which of them is smooth cannot be decided: give them values of "
            f"their own, or use the same knots, kind and values."
        )
    if max(len(knots) for knots in found[0].knots) < 3:
        raise EstimationError(f"{found[0].text} has two knots and nothing to bend: leave out {unknown.prior}.")
    return found[0]


def _refuse_two_scales(unknown: Unknown, curve: CurveTable, made: Sequence[tuple[CurveTable, SmoothCurve]]) -> None:
    other = next((p for c, p in made if c is curve), None)
    if other is not None:
        raise EstimationError(
            f"The values of {curve.text} have priors of different scales, Smoothness({other.scale:g}) and "
            f"{unknown.prior} of '{unknown.name}': a curve has one."
        )


def _written_out(
    flat: FlatModel,
    curve: CurveTable,
    prior: Smoothness,
    unknowns: Sequence[Unknown],
    experiments: Sequence[Experiment],
) -> SmoothCurve:
    rows = surface_rows(curve) / prior.scale
    own = unknowns_in(flat, curve, unknowns)
    blocks = []
    for experiment in experiments if any(u.experiment is not None for u in own) else experiments[:1]:
        matrix, offset = _values(flat, curve, own, experiment)
        blocks.append((rows @ matrix, rows @ offset))
    matrix = np.vstack([m for m, _ in blocks])
    offset = np.concatenate([o for _, o in blocks])
    return SmoothCurve(
        prior.scale, tuple(u.name for u in own), tuple(map(tuple, matrix.tolist())), tuple(offset.tolist())
    )


def _values(
    flat: FlatModel, curve: CurveTable, own: Sequence[Unknown], experiment: Experiment
) -> tuple[np.ndarray, np.ndarray]:
    """Return the table's values as (matrix, offset) of the unknowns in one experiment."""
    symbols, formulas = curve_values(flat, curve, own, experiment)
    values = ca.vertcat(*formulas)
    if not is_affine(values, symbols):
        raise EstimationError(
            f"gr.Smoothness is for tables whose values are the unknowns themselves or linear in them; those of "
            f"{curve.text} are not. Let the unknowns be the values: transform='log' keeps them above zero."
        )
    function = ca.Function("values", [symbols], [ca.densify(ca.jacobian(values, symbols)), ca.densify(values)])
    matrix, offset = (np.array(o.full()) for o in function(np.zeros(len(own))))
    return matrix, offset.ravel()
