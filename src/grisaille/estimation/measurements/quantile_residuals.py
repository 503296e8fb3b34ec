"""Randomised quantile residuals: what tests of residuals take in place of errors over noise where laws are not normal.

    r = Φ⁻¹(F(y−) + u (F(y) − F(y−)))          u uniform, a function of (seed, output, sample)

are independent and standard normal if the law holds, counts and limits of detection included; of normal laws they are
errors over noise. At estimates that follow from scores s with the information I they are, to first order,

    r ~ N(0, I − Q Qᵀ),    Q = J I^(−1/2),    J = E[r sᵀ] = −E[∂r/∂θ]

by which tests know what unknowns took from them (``assessment.residual_tests``).
Reference: P. K. Dunn, G. K. Smyth, Randomized quantile residuals, J. Comput. Graph. Statist. 5 (1996) 236.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grisaille.laws import Law, Normal
from grisaille.laws.random import uniforms

CENTRAL_PROBABILITIES = (0.15865525393145707, 0.8413447460685429)
"""Probabilities one standard deviation of a normal law around its mean."""
DEFAULT_SEED = 0
"""Of the random numbers by which counts and values at limits are spread over their probability."""
NEAR_ONE, NEAR_ZERO = 1e-13, 1e-300
"""Probabilities above and below a value that are found from its density when they are smaller."""
MIN_ATOM_WIDTH = 1e-6
"""Range of r over which the residuals of one value are spread, from which on it has a probability of its own."""
FARTHEST, MAX_CELLS, MIN_CELLS, MAX_NODES = 6.0, 60, 16, 2_000_000
"""Of averages over a law: the range of r, and into how many cells it is cut."""


def quantile_residuals(
    law: Law, values: np.ndarray, output: str, experiment: str, seed: int = DEFAULT_SEED
) -> np.ndarray:
    """Return r (N,) of the samples of an output.

    law : filled, with the numbers of each sample
    Beyond eight deviations, where no distribution function tells probabilities from one, r is that of a tail as heavy
    as density times width.
    """
    from scipy.special import ndtri, ndtri_exp

    filled: Any = law
    if isinstance(law, Normal):
        return np.asarray((values - filled.mean) / filled.std)
    with np.errstate(all="ignore"):
        below, upto = filled.distribution_below(values), filled.distribution(values)
        u = uniforms(len(values), seed, f"residuals of {output} in {experiment}")
        p = below + u * (upto - below)
        r = ndtri(p)
        far = np.flatnonzero(~((p > NEAR_ZERO) & (p < 1 - NEAR_ONE)))
        if len(far):
            tail = np.minimum(np.log(width_of(law)) * (not law.is_discrete) + filled.log_density(values), 0.0)
            ends = np.maximum(-ndtri_exp(tail), -ndtri(NEAR_ONE))
            r[far] = (np.where(p > 0.5, ends, -ends))[far]
    return np.asarray(r)


def scores_along(law: Law, names: Sequence[str]) -> np.ndarray:
    """Return E[r s] (N, k), s the scores by arguments of a filled law.

    The range of r is cut into cells with one value each, which end where values with a probability of their own do.
    """
    from scipy.special import ndtr, ndtri

    filled: Any = law
    count = len(np.ravel(filled.arguments[law.location_path]))
    if isinstance(law, Normal):
        slope = {"mean": 1 / (filled.std + np.zeros(count)), "std": np.zeros(count)}
        return np.stack([slope[n] for n in names], axis=1) if names else np.zeros((count, 0))
    cells = int(np.clip(MAX_NODES // max(count, 1), MIN_CELLS, MAX_CELLS))
    edges = np.linspace(-FARTHEST, FARTHEST, cells + 1)
    middle = np.repeat((edges[1:] + edges[:-1]) / 2, count)
    nodes = filled.filled(
        {p: np.tile(np.broadcast_to(v, (count,)), cells) for p, v in filled.arguments.items() if v is not None}
    )
    with np.errstate(all="ignore"):
        y = np.asarray(nodes.quantile(ndtr(middle)))
        slopes = nodes.by_arguments(y, names).gradient.reshape(cells, count, -1)
        upto, below = (ndtri(f(y)).reshape(cells, count) for f in (nodes.distribution, nodes.distribution_below))
    at, is_atom = middle.reshape(cells, count), upto - below > MIN_ATOM_WIDTH
    with np.errstate(invalid="ignore"):
        ends = (upto[:-1] + below[1:]) / 2
    ends = np.where(np.isnan(ends), (at[:-1] + at[1:]) / 2, ends)  # within a value that has all of the probability
    ends = np.where(is_atom[:-1] & ~is_atom[1:], upto[:-1], np.where(is_atom[1:] & ~is_atom[:-1], below[1:], ends))
    ends = np.clip(ends, at[:-1], at[1:])
    height = np.exp(-0.5 * ends**2) / np.sqrt(2 * np.pi)
    rest = np.zeros((1, count))
    weight = np.concatenate([rest, height]) - np.concatenate([height, rest])
    return np.asarray(np.einsum("cn,cnk->nk", weight, np.where(np.isfinite(slopes), slopes, 0.0)))


def width_of(law: Law) -> np.ndarray:
    """Return half the width of the middle 68 % of a law; one where that is nothing."""
    low, high = (np.asarray(law.quantile(p), dtype=float) for p in CENTRAL_PROBABILITIES)
    wide = 0.5 * (high - low)
    return np.where(np.isfinite(wide) & (wide > 0), wide, 1.0)
