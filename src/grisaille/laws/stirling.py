"""Errors of Stirling's formula, and log(1 + x) − x, for log-densities at large parameters without cancellation.

    log Γ(z) = (z − ½) log z − z + ½ log 2π + δ(z)
    ψ(z)     = log z − 1/(2z) + δ'(z)              ψ'(z) = 1/z + 1/(2z²) + δ''(z)

Differences such as log Γ(z + ½) − log Γ(z) − ½ log z lose as many digits as z has; written in δ and in

    log1p_minus(x) = log(1 + x) − x = −x²/2 + x³/3 − …

they lose none (C. Loader, "Fast and accurate computation of binomial probabilities", 2000).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.symbolic_functions import HALF_LOG_TWO_PI, STIRLING

if TYPE_CHECKING:
    from grisaille.laws.values import Values


Numeric = Callable[[np.ndarray], np.ndarray]
SERIES_FROM = 10.0
"""From here on the series; its first term that is left out is below 1e-17."""
SERIES_BELOW = 0.3
"""Below, log(1 + x) − x is a series in r = x/(2 + x)."""
SERIES_TERMS = 12


def stirling_error(z: Values) -> np.ndarray:
    """Return δ(z) of positive numbers."""
    from scipy.special import gammaln

    def direct(z: np.ndarray) -> np.ndarray:
        return np.asarray(gammaln(z) - (z - 0.5) * np.log(z) + z - HALF_LOG_TWO_PI)

    return _either(z, direct, lambda z: _series(z, lambda k: 1.0) / z)


def digamma_error(z: Values) -> np.ndarray:
    """Return δ'(z) of positive numbers."""
    from scipy.special import digamma

    def direct(z: np.ndarray) -> np.ndarray:
        return np.asarray(digamma(z) - np.log(z) + 0.5 / z)

    return _either(z, direct, lambda z: -_series(z, lambda k: 2 * k + 1) / z**2)


def trigamma_error(z: Values) -> np.ndarray:
    """Return δ''(z) of positive numbers."""
    from scipy.special import zeta

    def direct(z: np.ndarray) -> np.ndarray:
        return np.asarray(zeta(2.0, z) - 1 / z - 0.5 / z**2)

    return _either(z, direct, lambda z: _series(z, lambda k: (2 * k + 1) * (2 * k + 2)) / z**3)


def log1p_minus(x: Values) -> np.ndarray:
    """Return log(1 + x) − x of numbers above −1."""
    x = np.asarray(x, dtype=float)
    with np.errstate(all="ignore"):
        r = x / (2 + x)
        square = r * r
        tail = np.zeros_like(r)
        for k in range(SERIES_TERMS, 0, -1):
            tail = (tail + 2 / (2 * k + 1)) * square
        return np.asarray(np.where(np.abs(x) < SERIES_BELOW, r * (tail - x), np.log1p(x) - x))


def log_ratio(ratio: Values, x: Values) -> np.ndarray:
    """Return log(ratio) of positive numbers, given x = ratio − 1 without the digits that it loses near one."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.abs(x) < SERIES_BELOW, np.log1p(x), np.log(ratio)))


def log_ratio_minus(ratio: Values, x: Values) -> np.ndarray:
    """Return log(ratio) − x, given x = ratio − 1 likewise."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(np.abs(x) < SERIES_BELOW, log1p_minus(x), np.log(ratio) - x))


def deviance(count: Values, expected: Values, difference: Values) -> np.ndarray:
    """Return count · log(count / expected) − (count − expected) ≥ 0, given count − expected."""
    with np.errstate(all="ignore"):
        x = difference / expected
        near = (1 + x) * log1p_minus(x) + x * x
        found = expected * np.where(np.abs(x) < SERIES_BELOW, near, (1 + x) * np.log1p(x) - x)
    return np.asarray(np.where(np.asarray(count) == 0, expected, found))


def _series(z: np.ndarray, factor: Callable[[int], float]) -> np.ndarray:
    """Return Σ factor(k) c_k / z^(2k)."""
    inverse, found = 1 / (z * z), np.zeros_like(z)
    for k in range(len(STIRLING) - 1, -1, -1):
        found = found * inverse + factor(k) * STIRLING[k]
    return found


def _either(z: Values, direct: Numeric, series: Numeric) -> np.ndarray:
    """Return the direct formula of small numbers and the series of large ones."""
    z = np.asarray(z, dtype=float)
    with np.errstate(all="ignore"):
        is_large = z >= SERIES_FROM
        if is_large.all():
            return np.asarray(series(z))
        found = np.asarray(direct(np.where(is_large, 1.0, z)))
        return np.where(is_large, series(np.where(is_large, z, SERIES_FROM)), found) if is_large.any() else found
