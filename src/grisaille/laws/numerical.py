"""Distribution function, quantile and mode of a law that gives its log-density alone."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.law import Law


OUTSIDE_PROBABILITY = 1e-9
"""Probability outside the range in which a mode is sought."""


def distribution_of(law: Law, value: ArrayLike) -> np.ndarray:
    """Return ∫ p up to each value, by adaptive quadrature."""
    from scipy.integrate import quad

    low, high = law.support

    def below(x: float) -> float:
        if x <= low or x >= high:
            return float(x >= high)
        middle = _middle(law)

        def density(v: float) -> float:
            return float(np.exp(law.log_density(v)))

        if x <= middle:
            return float(quad(density, low, x, epsabs=1e-13, epsrel=1e-11, limit=200)[0])
        return float(1 - quad(density, x, high, epsabs=1e-13, epsrel=1e-11, limit=200)[0])

    return np.asarray(np.vectorize(below, otypes=[float])(np.asarray(value, dtype=float)))


def quantile_of(law: Law, probability: ArrayLike) -> np.ndarray:
    """Return the root of the distribution function less each probability."""
    from scipy.optimize import brentq

    low, high = law.support

    def root(p: float) -> float:
        if not 0 < p < 1:
            return float(low if p == 0 else high if p == 1 else np.nan)
        centre, width = _middle(law), 1.0
        a = b = centre
        while float(law.distribution(a)) > p:
            a, width = max(centre - width, 0.5 * (a + low) if np.isfinite(low) else -np.inf), 2 * width
        width = 1.0
        while float(law.distribution(b)) < p:
            b, width = min(centre + width, 0.5 * (b + high) if np.isfinite(high) else np.inf), 2 * width
        if a == b:
            return a
        return float(brentq(lambda x: float(law.distribution(x)) - p, a, b, xtol=1e-14 * max(1.0, abs(a), abs(b))))

    return np.asarray(np.vectorize(root, otypes=[float])(np.asarray(probability, dtype=float)))


@lru_cache(maxsize=1024)
def mode_of(law: Law) -> float:
    """Return where ℓ is largest: the best of many quantile-like points, made exact by bracketing."""
    from scipy.optimize import minimize_scalar

    points = _grid(law)
    values = np.array([log_density_in_measure(law, float(x)) for x in points])
    best = int(np.nanargmax(values))
    a, b = float(points[max(best - 1, 0)]), float(points[min(best + 1, len(points) - 1)])
    found = minimize_scalar(
        lambda x: -log_density_in_measure(law, float(x)), bounds=(a, b), method="bounded", options={"xatol": 0.0}
    )
    return float(found.x)


def log_density_in_measure(law: Law, value: float) -> float:
    """Return ℓ, the log-density in the law's measure."""
    found = float(law.log_density(value))
    return found + (float(np.log(value)) if law.measure == "log" and value > 0 else 0.0)


def _grid(law: Law) -> np.ndarray:
    """Return points over the support, close where it is narrow and wide where it is not."""
    low, high = law.support
    share = np.linspace(0.0, 1.0, 401)[1:-1]
    if np.isfinite(low) and np.isfinite(high):
        return np.asarray(low + (high - low) * share)
    wide = np.concatenate([-np.geomspace(1e8, 1e-8, 800), [0.0], np.geomspace(1e-8, 1e8, 800)])
    if np.isfinite(low):
        return np.asarray(low + wide[wide > 0])
    return np.asarray(high + wide[wide < 0]) if np.isfinite(high) else wide


def _middle(law: Law) -> float:
    """Return a value that has probability on both sides."""
    low, high = law.support
    mode = float(law.mode)
    if low < mode < high:
        return mode
    if np.isfinite(low) and np.isfinite(high):
        return float(0.5 * (low + high))
    return float(low + 1.0 if np.isfinite(low) else high - 1.0)
