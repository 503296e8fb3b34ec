"""Limits of intervals: levels on the log scale, and one-sided ones of what a bound holds.

    free          θ ± h,    h = quantile · standard error
    free levels   θ e^{± h/θ}: positive, and nearer to the law of a standard deviation than θ ± h
    correlations  tanh(artanh θ ± h/(1 − θ²)), R. A. Fisher's z: inside (−1, 1)
    at a bound    the bound, and on the other side where the criterion has risen by ½q², q the one-sided quantile:
                  g d + ½ c d² = ½ q²,    g: its slope into the range, c: its curvature (expected, others held)
    at a kink     of a prior: such a limit on either side, with q the two-sided quantile and the slope of that side

The criterion is even in a level that is zero; the likelihood itself was followed to the limit there (``levels``).
Reference: S. G. Self, K.-Y. Liang, Journal of the American Statistical Association 82 (1987) 605.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.prior_terms import prior_term
from grisaille.laws.prior_measure import log_prior
from grisaille.model.measurement.noise_covariances import is_correlation

KINK_DISTANCE = 1e-9
"""Of the size of an unknown: how far beside a kink the slopes of a prior are taken."""


def interval_limits(estimate: Estimate, half: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper limits of all unknowns; ``half`` is half the length of symmetric ones."""
    theta = estimate.theta
    lower, upper = theta - half, theta + half
    for k, u in enumerate(estimate.unknowns):
        if estimate.at_kink[k]:
            lower[k], upper[k] = _around_kink(estimate, k, level)
        elif not estimate.free[k]:
            lower[k], upper[k] = _held(estimate, k, level)
        elif u.kind in ("scale", "noise") and theta[k] > 0 and np.isfinite(half[k]):
            factor = np.exp(min(half[k] / theta[k], 700.0))
            lower[k], upper[k] = theta[k] / factor, theta[k] * factor
        elif u.kind == "parameter" and is_correlation(u.target) and abs(theta[k]) < 1 and np.isfinite(half[k]):
            z, reach = np.arctanh(theta[k]), half[k] / (1 - theta[k] ** 2)
            lower[k], upper[k] = np.tanh(z - reach), np.tanh(z + reach)
    return lower, upper


def _held(estimate: Estimate, k: int, level: float) -> tuple[float, float]:
    """Return the bound and the limit on its other side, NaN where nothing determines it."""
    from scipy.stats import norm

    u, value = estimate.unknowns[k], float(estimate.theta[k])
    at_lower = abs(value - u.lower) <= abs(value - u.upper)
    quantile = float(norm.ppf(level))
    found = estimate.limits.get(u.name, np.nan) / norm.ppf(0.95)  # of a level that is zero, at 95 %
    slope, curvature = _slope_and_curvature(estimate, k)
    reach = quantile * (found if found > 0 else _distance(abs(slope), curvature, quantile) / quantile)
    other = value + reach if at_lower else value - reach
    if not np.isfinite(other):
        other = np.nan
    return (u.lower, np.minimum(other, u.upper)) if at_lower else (np.maximum(other, u.lower), u.upper)


def _around_kink(estimate: Estimate, k: int, level: float) -> tuple[float, float]:
    """Return limits on both sides, NaN where nothing determines them."""
    from scipy.stats import norm

    u, value, at = estimate.unknowns[k], float(estimate.theta[k]), float(estimate.evaluation.theta[k])
    slope, curvature = _slope_and_curvature(estimate, k)
    quantile, beside = float(norm.ppf(0.5 + level / 2)), KINK_DISTANCE * max(u.size, abs(value))
    of_data = slope + log_prior(u.prior, at)[1]
    ends = []
    for side, bound in ((-1.0, u.lower), (1.0, u.upper)):
        rise = side * (of_data - log_prior(u.prior, value + side * beside)[1])
        end = value + side * _distance(max(rise, 0.0), curvature, quantile)
        ends.append(side * min(side * end, side * bound) if np.isfinite(end) else np.nan)
    return ends[0], ends[1]


def _slope_and_curvature(estimate: Estimate, k: int) -> tuple[float, float]:
    evaluation = estimate.evaluation
    if not evaluation.information.size or len(evaluation.jacobian) not in (0, len(evaluation.residuals)):
        return np.nan, np.nan
    slope, curvature = evaluation.gradient, evaluation.information
    if len(slope) and len(evaluation.residuals) == estimate.count:  # of the data alone
        prior = prior_term(estimate.unknowns, evaluation.theta)
        slope, curvature = slope + prior.gradient, curvature + prior.curvature
    return (float(slope[k]) if len(slope) else np.nan), float(curvature[k, k])


def _distance(slope: float, curvature: float, quantile: float) -> float:
    """Return the positive d at which slope · d + ½ curvature · d² is half the square of a quantile."""
    drop = 0.5 * quantile**2
    if not (np.isfinite(slope) and np.isfinite(curvature)) or (slope <= 0 and curvature <= 0):
        return np.nan
    curvature = max(curvature, 0.0)
    return float(2 * drop / (slope + np.sqrt(slope**2 + 2 * curvature * drop)))
