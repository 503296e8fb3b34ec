"""What draws of several chains are worth: R̂, effective sizes, Monte Carlo standard errors.

Chains are split in halves, and with them R̂² = (within (n − 1)/n + between)/within, on ranks: draws are replaced by
normal quantiles of their ranks, and by those of their distance from the median, and the larger R̂ counts. Effective
sizes are n m / τ, τ the sum of autocorrelations in pairs while these are positive, made monotone (C. Geyer, 1992); of
the bulk on ranks, of the tails for the 5 % and 95 % quantiles. Monte Carlo standard errors are s/√ESS for the mean.

Reference: A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-normalization, folding, and
localization: an improved R̂", Bayesian Analysis 16, 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MIN_DRAWS = 4
"""Of half a chain, for anything to be said."""
TAILS = (0.05, 0.95)


@dataclass(frozen=True)
class Convergence:
    """What draws of one quantity are worth; NaN where they are too few, or all the same."""

    r_hat: float
    ess_bulk: float
    ess_tail: float
    mcse_mean: float
    mcse_sd: float


def convergence_of(draws: np.ndarray) -> Convergence:
    """Return what (chains, draws) of one quantity are worth."""
    halves = _split(np.asarray(draws, dtype=float))
    if halves.shape[1] < MIN_DRAWS or not np.isfinite(halves).all() or np.ptp(halves) == 0:
        return Convergence(*[np.nan] * 5)
    ranked, folded = _normal_ranks(halves), _normal_ranks(np.abs(halves - np.median(halves)))
    tails = [effective_size((halves <= np.quantile(halves, q)).astype(float)) for q in TAILS]
    size, sd = effective_size(halves), float(halves.std(ddof=1))
    return Convergence(
        max(_r_hat(ranked), _r_hat(folded)), effective_size(ranked), min(tails), sd / np.sqrt(size), _mcse_sd(halves)
    )


def mcse_of_mean(draws: np.ndarray) -> float:
    """Return the Monte Carlo standard error of the mean of (chains, draws) of anything."""
    halves = _split(np.asarray(draws, dtype=float))
    return float(halves.std(ddof=1) / np.sqrt(effective_size(halves)))


def effective_size(chains: np.ndarray) -> float:
    """Return how many independent draws have a mean as certain as that of (chains, draws)."""
    m, n = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    length = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, length, axis=1)
    covariances = np.fft.irfft(np.abs(spectrum) ** 2, length, axis=1)[:, :n].mean(axis=0) / n
    within = float(covariances[0]) * n / (n - 1)
    total = within * (n - 1) / n + (float(chains.mean(axis=1).var(ddof=1)) if m > 1 else 0.0)
    if total <= 0:
        return float(m * n)
    rho = 1 - (within - covariances * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: 2 * (n // 2)].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs <= 0)
    kept = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    tau = -1.0 + 2.0 * float(kept.sum())
    # draws that alternate are worth more than independent ones, but not without limit
    tau = max(tau, 1 / np.log10(m * n))
    return float(m * n / tau)


def _mcse_sd(halves: np.ndarray) -> float:
    """Return that of the standard deviation, by the delta method from the squares' effective size."""
    squares = (halves - halves.mean()) ** 2
    error = float(squares.std(ddof=1)) / np.sqrt(effective_size(squares))
    return float(error / (2 * float(halves.std(ddof=1))))


def _r_hat(halves: np.ndarray) -> float:
    n = halves.shape[1]
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    return float(np.sqrt((n - 1) / n + between / within)) if within > 0 else np.nan


def _split(chains: np.ndarray) -> np.ndarray:
    """Return halves of chains; the middle draw of an odd number is left out."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def _normal_ranks(values: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(values, method="average").reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)))
