"""Where the model is compared with the spline on each interval between knots, and with what weight.

    ∫ g dt ≈ Σ_cells length · Σ_i w_i g(left + s_i length)

``"gauss"`` takes as many Gauss points as the order of the splines, exact for linear models with constant coefficients.
``"ends+midpoints"`` takes the first instant, every middle and the last instant, all with equal weight: what
CollocInfer calls its quadrature. ``"simpson"`` takes both ends and the middle of each interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.collocation.array_types import Floats
from grisaille.errors import EstimationError

QUADRATURE_KINDS = ("gauss", "simpson", "ends+midpoints")
MAX_QUADRATURE_POINTS = 20


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Fractions (points,) of every cell and weights (cells, points), lengths included."""

    fractions: Floats
    weights: Floats


def make_quadrature(kind: str | int, bounds: Floats, order: int) -> Quadrature:
    """Return the rule on the cells between ``bounds``; a whole number asks for so many Gauss points."""
    lengths = np.diff(bounds)
    if kind == "simpson":
        return Quadrature(np.array([0.0, 0.5, 1.0]), lengths[:, None] * (np.array([1.0, 4.0, 1.0]) / 6))
    if kind == "ends+midpoints":
        weights = np.zeros((len(lengths), 3))
        weights[:, 1] = weights[0, 0] = weights[-1, 2] = lengths.sum() / (len(lengths) + 2)
        return Quadrature(np.array([0.0, 0.5, 1.0]), weights)
    refuse_quadrature(kind)
    nodes, shares = np.polynomial.legendre.leggauss(order if kind == "gauss" else int(kind))
    return Quadrature((1 + nodes) / 2, lengths[:, None] * (shares / 2))


def refuse_quadrature(kind: object) -> None:
    """Refuse a quadrature that is neither a known name nor a number of Gauss points."""
    whole = isinstance(kind, int) and not isinstance(kind, bool) and 1 <= kind <= MAX_QUADRATURE_POINTS
    if not (kind in QUADRATURE_KINDS if isinstance(kind, str) else whole):
        raise EstimationError(
            f"quadrature is {kind!r}; it must be one of {', '.join(map(repr, QUADRATURE_KINDS))}, or a number of "
            "Gauss points "
            f"from 1 to {MAX_QUADRATURE_POINTS}."
        )
