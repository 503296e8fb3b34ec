"""Likelihood-ratio tests of values on a boundary: levels of noise that may be zero.

Under the hypothesis that m variances σ² are zero and r ordinary unknowns have given values, 2 Δ log L is not χ²(r + m)
but a mixture,

    P(2 Δ log L > d) = Σ_j w_j P(χ²(r + j) > d),        w_j: probability that j of the m variances come out positive

with χ² replaced by the law of the fit (``law``) where it is F. For one variance the weights are ½, ½. For several they
depend on the information V⁻¹ about the variances: with Z ~ N(0, V), count the positive entries of the point of the
positive orthant nearest to Z in the norm of V⁻¹; drawn, with a fixed seed. Reference: S. G. Self, K.-Y. Liang, J. Am.
Stat. Assoc. 82 (1987) 605.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.assessment.deviance_law import DevianceLaw
from grisaille.estimation.density.profile_criterion import ProfileCriterion

MONTE_CARLO_DRAWS = 20_000
SMALL_LEVEL = 1e-3
"""Of a level's size: where the information about σ² near zero is taken."""


def mixture_p(ratio: float, ordinary: int, weights: Sequence[float] | np.ndarray, law: DevianceLaw) -> float:
    """Return the probability of a larger ratio; ``law``: of ratios away from the boundary."""
    return float(np.dot(weights, [law.p(ratio, ordinary + j) for j in range(len(weights))]))


def mixture_weights(V: np.ndarray) -> np.ndarray:
    """Return w_0 … w_m for the covariance V of m unconstrained estimates of variances."""
    m = len(V)
    if m == 0:
        return np.ones(1)
    if m == 1:
        return np.array([0.5, 0.5])
    size = np.sqrt(np.diag(V))
    rho = V / np.outer(size, size)
    if m == 2:
        angle = float(np.arccos(np.clip(rho[0, 1], -1, 1))) / (2 * np.pi)
        # both positive, none, one
        return np.array([angle, 0.5, 0.5 - angle])
    return _drawn(rho)


def _drawn(rho: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    root = np.linalg.cholesky(np.linalg.inv(rho + 1e-12 * np.eye(len(rho)))).T
    random = np.random.default_rng(0)
    Z = random.multivariate_normal(np.zeros(len(rho)), rho, MONTE_CARLO_DRAWS)
    counts = [int(np.sum(nnls(root, root @ z)[0] > 0)) for z in Z]
    return np.bincount(counts, minlength=len(rho) + 1) / MONTE_CARLO_DRAWS


def variance_covariance(criterion: ProfileCriterion, theta: np.ndarray, levels: Sequence[int]) -> np.ndarray:
    """Return V of the variances σ² of some levels at θ, where they are zero; other unknowns follow."""
    near = theta.copy()
    sizes = np.array([criterion.unknowns[k].size for k in levels])
    near[list(levels)] = np.maximum(SMALL_LEVEL * sizes, near[list(levels)])
    information = criterion.evaluate(near).information
    n = len(levels)
    if information is None:
        return np.eye(n)
    slopes = np.ones(len(theta))
    slopes[list(levels)] = 1 / (2 * near[list(levels)])  # dσ/d(σ²)
    information = information * np.outer(slopes, slopes)
    size = np.sqrt(np.maximum(np.diag(information), 1e-300))
    inverse = np.linalg.pinv(information / np.outer(size, size), rcond=1e-12) / np.outer(size, size)
    return np.asarray(inverse[np.ix_(list(levels), list(levels))])
