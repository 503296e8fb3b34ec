"""Delayed values on the steps of an ensemble, as weighted sums of stored past values.

The past of f is kept on pieces of two steps each, from a over m to b, as the quartic that has the values f(a), f(m),
f(b) and the slopes f'(a+), f'(m): at b the slope may jump. v(t) = f(t − tau) is replaced on every step by the parabola
with the same first moments (``experiment/projected_signals.py``), of which a step sees the values at its ends and its
middle:

    v̄(s_m) = Σ_j (2j + 1) P_j(s_m) ∫₀¹ P_j v ds,

a sum over the two or three pieces that a step meets tau before, with weights that depend on the steps and on tau only.
They are smooth in tau, and since f is continuous ∂v̄/∂tau is the same with −f' in place of f.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grisaille.experiment.projected_signals import LEGENDRE, NORMS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
NUMBERS_PER_PIECE = 5
"""Numbers of a piece: f(a), f'(a+), f(m), f'(m), f(b)."""
STAGES = np.array([0.0, 0.5, 1.0])
_x, _w = np.polynomial.legendre.leggauss(4)  # exact for parabolas times quartics
_AT, _WEIGHTS = 0.5 * (_x + 1), 0.5 * _w
_POWERS = np.arange(5)


def _row(s: float, order: int) -> list[float]:
    """Return derivatives of 1, s, …, s⁴."""
    return [1.0, s, s**2, s**3, s**4] if order == 0 else [0.0, 1.0, 2 * s, 3 * s**2, 4 * s**3]


_BASIS = np.linalg.inv(np.array([_row(0.0, 0), _row(0.0, 1), _row(0.5, 0), _row(0.5, 1), _row(1.0, 0)]))
"""(powers, numbers of a piece of length one)"""


def delayed_weights(points: Floats, tau: float, order: int) -> csr_array:
    """Return weights (3 · steps, 5 · pieces + 1) of the derivative ``order`` of a delayed value; the last column
    belongs to the value at the start, which holds before.

    points : ends of the steps, two for each piece
    """
    from scipy.sparse import csr_array

    edges = points[::2]
    later = edges[edges + tau < points[-1]] + tau
    ends = np.unique(np.concatenate([points, later]))
    # instants that differ by rounding make no interval
    ends = ends[np.diff(ends, append=np.inf) > 8 * np.spacing(np.abs(points).max() + tau)]
    left, width = ends[:-1], np.diff(ends)
    middle = left + 0.5 * width
    step = np.clip(np.searchsorted(points, middle, side="right") - 1, 0, len(points) - 2)
    piece = np.searchsorted(edges, middle - tau, side="right") - 1
    t = left[:, None] + width[:, None] * _AT
    length = np.diff(points)[step]
    s = (t - points[step][:, None]) / length[:, None]
    weights = _WEIGHTS * (width / length)[:, None]
    legendre = s[..., None] ** np.arange(3) @ LEGENDRE.T
    stages = (STAGES[:, None] ** np.arange(3) @ LEGENDRE.T) * NORMS
    share = np.einsum("kn,knj,mj->knm", weights, legendre, stages)
    here = np.flatnonzero(piece >= 0)
    long = np.diff(edges)[piece[here]]
    inside = (t[here] - tau - edges[piece[here]][:, None]) / long[:, None]
    basis = _derived_powers(inside, order) @ _BASIS / long[:, None, None] ** order
    basis[..., [1, 3]] *= long[:, None, None]
    found = np.einsum("knm,knc->kmc", share[here], basis)
    columns = NUMBERS_PER_PIECE * piece[here][:, None, None] + np.arange(NUMBERS_PER_PIECE)
    rows = 3 * step[here][:, None] + np.arange(3)
    before = np.flatnonzero(piece < 0)
    first = share[before].sum(axis=1) if order == 0 else np.zeros((len(before), 3))
    last = NUMBERS_PER_PIECE * (len(edges) - 1)
    return csr_array(
        (
            np.concatenate([found.ravel(), first.ravel()]),
            (
                np.concatenate([np.broadcast_to(rows[..., None], found.shape).ravel(),
                                (3 * step[before][:, None] + np.arange(3)).ravel()]),
                np.concatenate([np.broadcast_to(columns, found.shape).ravel(), np.full(first.size, last)]),
            ),
        ),
        shape=(3 * (len(points) - 1), last + 1),
    )  # fmt: skip


def _derived_powers(s: Floats, order: int) -> Floats:
    """Return derivatives of powers of s up to the fourth."""
    factors, powers = np.ones(5), _POWERS.copy()
    for _ in range(order):
        factors, powers = factors * powers, np.maximum(powers - 1, 0)
    return np.asarray(factors * s[..., None] ** powers)
