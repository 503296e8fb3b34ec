"""Intervals of the normal law: log P and moments of z = (y − mean)/std inside, from which derivatives follow.

With M(x) = Q(x)/φ(x) of the upper tail and a ≤ b mirrored so that b ≥ |a|,

    r_a = φ(a)/P = 1/(M(a) − e^(−Δ) M(b)),   r_b = e^(−Δ) r_a,   Δ = (b − a)(b + a)/2
    E z = r_a − r_b,   E z² = 1 + a r_a − b r_b,   E z³ = 2 E z + a² r_a − b² r_b,   E z⁴ = 3 E z² + a³ r_a − b³ r_b

Narrow intervals, in which that cancels, are averaged on the nodes of Gauss and Legendre; so are those so far out that
a² loses the digits, after the exponential decay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.law_derivatives import Derivatives, assemble_derivatives
from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI

if TYPE_CHECKING:
    from grisaille.laws.values import Values


NARROW_FALL = 1.0
"""Fall of log p, plus the width, below which an interval is narrow."""
TINY_FALL = 0.1
"""Of the same, below which five nodes are enough."""
FAR_DEVIATIONS = 300.0
"""Standard deviations beyond which moments are averaged."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
FEW_NODES, FEW_WEIGHTS = np.polynomial.legendre.leggauss(5)
TAIL_NODES, TAIL_WEIGHTS = np.polynomial.legendre.leggauss(40)

Moments = tuple[np.ndarray, tuple[np.ndarray, ...]]
"""log P, and of what lies inside E z, E z², var z, cov(z, z²), var z²."""


def normal_moments(low: np.ndarray, high: np.ndarray, half: np.ndarray | None = None) -> Moments:
    """Return log P of intervals of the standard normal law, and moments inside.

    half : half the widths, where they are known better than from the ends
    """
    shape = np.shape(low)
    with np.errstate(all="ignore"):
        half = np.ravel(0.5 * (high - low) if half is None else half)
        low, high = np.ravel(low), np.ravel(high)
        is_mirrored = low + high < 0
        a, b = np.where(is_mirrored, -high, low), np.where(is_mirrored, -low, high)
        log_p, found = _wide(a, b)
        is_narrow = half * (b + a) + 2 * half < NARROW_FALL
        is_far = (a > FAR_DEVIATIONS) & ~is_narrow
        is_tiny, cell = half * (b + a) + 2 * half < TINY_FALL, (0.5 * (a + b), half)
        rules = ((is_tiny, _tiny, cell), (is_narrow & ~is_tiny, _narrow, cell), (is_far, _tail, (a, b)))
        for chosen, rule, given in rules:
            rows = np.flatnonzero(chosen)
            if len(rows):
                log_p[rows], some = rule(*(g[rows] for g in given))
                for moment, part in zip(found, some, strict=True):
                    moment[rows] = part
        log_p = np.where(half > 0, log_p, -np.inf)
    sign = np.where(is_mirrored, -1.0, 1.0)
    moments = (sign * found[0], found[1], found[2], sign * found[3], found[4])
    return log_p.reshape(shape), tuple(m.reshape(shape) for m in moments)


def _wide(a: np.ndarray, b: np.ndarray) -> Moments:
    from scipy.special import erfcx, ndtr

    def mills(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(0.5 * np.pi) * erfcx(x / np.sqrt(2)))

    shrink = np.exp(-0.5 * (b - a) * (b + a))
    end = np.where(np.isinf(b), 0.0, b)
    above = np.maximum(a, 0.0)
    relative = mills(above) - shrink * np.where(np.isinf(b), 0.0, mills(end))
    missing = ndtr(np.minimum(a, 0.0)) + ndtr(-b)
    density = np.exp(-0.5 * a * a - HALF_LOG_TWO_PI)
    log_p = np.where(a > 0, np.log(relative) - 0.5 * above * above - HALF_LOG_TWO_PI, np.log1p(-missing))
    at_a = np.where(a > 0, 1 / relative, density / (1 - missing))
    at_b = np.where(np.isinf(b), 0.0, shrink * at_a)
    at_b = np.where(a > 0, at_b, np.exp(-0.5 * end * end - HALF_LOG_TWO_PI) / (1 - missing) * ~np.isinf(b))
    start = np.where(np.isinf(a), 0.0, a)
    first = at_a - at_b
    second = 1 + start * at_a - end * at_b
    third = 2 * first + start**2 * at_a - end**2 * at_b
    fourth = 3 * second + start**3 * at_a - end**3 * at_b
    return log_p, (first, second, second - first**2, third - first * second, fourth - second**2)


def _tiny(middle: np.ndarray, half: np.ndarray) -> Moments:
    return _of_nodes(middle, FEW_NODES[:, None] * half, FEW_WEIGHTS[:, None] * half)


def _narrow(middle: np.ndarray, half: np.ndarray) -> Moments:
    return _of_nodes(middle, NODES[:, None] * half, WEIGHTS[:, None] * half)


def _tail(a: np.ndarray, b: np.ndarray) -> Moments:
    """Return moments where the density falls as exp(−a u), u = z − a, on which e^(−u²/2) is a polynomial."""
    width = np.minimum(b - a, 60.0 / a)
    half = 0.5 * width
    return _of_nodes(a, half * (1 + TAIL_NODES[:, None]), half * TAIL_WEIGHTS[:, None])


def _of_nodes(start: np.ndarray, u: np.ndarray, weight: np.ndarray) -> Moments:
    """Return moments on nodes start + u: of exp(−z²/2) relative to that at the start."""
    parts = weight * np.exp(-u * (start + 0.5 * u))
    total = parts.sum(axis=0)
    log_p = np.log(total) - 0.5 * start * start - HALF_LOG_TWO_PI
    share = parts / total
    middle = np.einsum("qn,qn->n", share, u)
    one, away = start + middle, u - middle
    square = away * away
    second = share * square
    var, skew, fourth = second.sum(axis=0), np.einsum("qn,qn->n", second, away), np.einsum("qn,qn->n", second, square)
    spread = 4 * one * one * var + 4 * one * skew + fourth - var * var
    return log_p, (one, var + one * one, var, 2 * one * var + skew, spread)


def derivatives_of_moments(
    log_p: np.ndarray, moments: tuple[np.ndarray, ...], std: Values, names: tuple[str, ...]
) -> Derivatives:
    """Return the derivatives of log P by mean and std."""
    one, two, var, skew, spread = moments
    first = {"mean": one / std, "std": (two - 1) / std}
    second = {
        ("mean", "mean"): (var - 1) / std**2,
        ("mean", "std"): (skew - 2 * one) / std**2,
        ("std", "std"): (spread - 3 * two + 1) / std**2,
    }
    return assemble_derivatives(names, log_p, first, second)


def squares_of_moments(moments: tuple[np.ndarray, ...], std: Values, names: tuple[str, ...]) -> np.ndarray:
    """Return E[s sᵀ] by mean and std."""
    one, two, _, skew, spread = moments
    found = {
        ("mean", "mean"): two / std**2,
        ("mean", "std"): (skew + one * (two - 1)) / std**2,
        ("std", "std"): (spread + (two - 1) ** 2) / std**2,
    }
    return assemble_derivatives(names, np.zeros(np.shape(one)), {}, found).hessian
