"""Tests of standardized residuals that account for what the fit has already removed from them.

If the noise is white and of unit variance, the residuals of a fit are, to first order, r ~ N(0, I − QQᵀ),
Q = J F^(−1/2), with the weighted Jacobian J and the information F of the unknowns. Of least squares F = JᵀJ, and Q is
an orthonormal basis of what the unknowns can move; a likelihood learns about levels of noise from variances too,
F = JᵀJ + …, and takes less from the innovations. Means and variances below follow from that, so that tests keep their
size whatever the model is, where textbook degrees of freedom (lags minus parameters) are right for autoregressions
only.

    autocorrelation    Ljung–Box Q = ν(ν+2) Σ (ρ_k − E ρ_k)²/(n−k), ν = n − |Q|²; its law under r ~ N(0, I − QQᵀ) as
                       Pearson's of type III, with three moments from draws of a fixed seed
    periodogram        cumulated, each ordinate divided by its expectation; Kolmogorov's distance (Bartlett), with mean
                       and spread from the same draws
    inputs             c = Uᵀr,  cᵀ (UᵀU − UᵀQQᵀU)⁺ c;  U: the input and its past (static models: powers)
    normality          Shapiro–Wilk, beyond 5000 samples Jarque–Bera
    outliers           largest externally studentized residual, Bonferroni
    size               Σr² ~ χ²(n − |Q|²), where the noise was known

Reference: G. Box, G. Jenkins, Time Series Analysis (1976), chapter 8; R. D. Cook, S. Weisberg, Residuals (1982).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from grisaille.estimation.residuals.robust_weights import middle_level

MIN_SAMPLES = 8
MAX_LAGS = 20
LONG, DRAWN = 4000, 400_000
"""Samples from which on the autocorrelations are independent enough for χ², and numbers drawn for fewer."""
MAX_TAKEN_SHARE = 0.9
"""Frequencies of which the unknowns took more than this are left out of the periodogram."""


MEDIAN_SPREAD, OUTLYING = 1.167, 4.0
"""Relative standard deviation of a level from a median, times √n; and levels beyond which values are outliers."""


@dataclass(frozen=True)
class ResidualTest:
    """One statistic with its p value; ``degrees_of_freedom`` is NaN where it has none."""

    statistic: float
    p: float
    degrees_of_freedom: float = np.nan


def orthonormal(jacobian: np.ndarray) -> np.ndarray:
    """Return Q of J = QR, without directions the data do not see."""
    if not jacobian.shape[1]:
        return np.zeros((len(jacobian), 0))
    norms = np.linalg.norm(jacobian, axis=0)
    u, s, _ = np.linalg.svd(jacobian / np.where(norms > 0, norms, 1.0), full_matrices=False)
    return np.asarray(u[:, s > 1e-10 * s.max(initial=0.0)] if s.max(initial=0.0) > 0 else u[:, :0])


def taken_directions(jacobian: np.ndarray, information: np.ndarray) -> np.ndarray:
    """Return J F^(−1/2): what unknowns with the information F take from residuals with the Jacobian J."""
    size = np.sqrt(np.abs(np.diag(information)))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    kept = values > 1e-10 * values.max(initial=0.0)
    taken = (jacobian / size) @ (vectors[:, kept] / np.sqrt(values[kept]))
    # no more than all: rounding, and an information that lacks a part of JᵀJ
    largest = float(np.linalg.norm(taken, 2)) if taken.size else 0.0
    return np.asarray(taken / max(largest, 1.0))


def lag_count(n: int) -> int:
    return max(1, min(MAX_LAGS, n // 5))


def autocorrelation(r: np.ndarray, lags: int) -> np.ndarray:
    """Return ρ_1 … ρ_lags."""
    total = float(r @ r)
    return np.array([float(r[:-k] @ r[k:]) / total if total > 0 else 0.0 for k in range(1, lags + 1)])


def ljung_box(r: np.ndarray, q: np.ndarray) -> ResidualTest:
    """Test whether residuals can be predicted from earlier ones."""
    from scipy.stats import chi2, gamma

    n, lags = len(r), lag_count(len(r))
    left = n - float(np.sum(q**2))
    mean, variance = np.array([_moments(q, n, k) for k in range(1, lags + 1)]).T
    weight = left * (left + 2) / (n - np.arange(1, lags + 1))
    statistic = float(np.sum(weight * (autocorrelation(r, lags) - mean / left) ** 2))
    dof = float(np.sum(weight * variance)) / (left * (left + 2))
    if n > LONG:
        return ResidualTest(statistic, float(chi2.sf(statistic, dof)), dof)
    law = _drawn_law(np.ascontiguousarray(q).tobytes(), n)
    shape = 4 / law.skewness**2
    p = gamma.sf(shape + (statistic - law.centre) / law.spread * np.sqrt(shape), shape)
    return ResidualTest(statistic, float(p), dof)


def quick_ljung_box(r: np.ndarray, q: np.ndarray) -> ResidualTest:
    """Return the same with the law of long records."""
    from scipy.stats import chi2

    n, lags = len(r), lag_count(len(r))
    left = n - float(np.sum(q**2))
    weight = left * (left + 2) / (n - np.arange(1, lags + 1))
    statistic = float(np.sum(weight * autocorrelation(r, lags) ** 2))
    return ResidualTest(statistic, float(chi2.sf(statistic, lags)), lags)


def _moments(q: np.ndarray, n: int, k: int) -> tuple[float, float]:
    """Return mean and variance of c_k = Σ r_t r_{t+k} = rᵀAr for r ~ N(0, I − QQᵀ)."""
    aq = np.zeros_like(q)
    aq[:-k] += q[k:] / 2
    aq[k:] += q[:-k] / 2
    inner = q.T @ aq
    return -float(np.trace(inner)), float((n - k) - 4 * np.sum(aq**2) + 2 * np.sum(inner**2))


@dataclass(frozen=True)
class SimulatedLaw:
    """The simulated distribution of the statistics under r ~ N(0, I − QQᵀ)."""

    centre: float
    """Mean, standard deviation and skewness of Ljung and Box's."""
    spread: float
    skewness: float
    distance: tuple[float, float]
    """Mean and standard deviation of Kolmogorov's distance, and of that of the white noise the draws were made of."""
    white_distance: tuple[float, float]


@lru_cache(maxsize=32)
def _drawn_law(taken: bytes, n: int) -> SimulatedLaw:
    q, lags = np.frombuffer(taken).reshape(n, -1), lag_count(n)
    left = n - float(np.sum(q**2))
    mean = np.array([_moments(q, n, k)[0] for k in range(1, lags + 1)])
    weight = left * (left + 2) / (n - np.arange(1, lags + 1))
    white, r = _drawn(q, n)
    drawn = ((_correlations(r, lags) - mean / left) ** 2) @ weight
    centre, spread = float(drawn.mean()), float(drawn.std())
    skewness = max(float(np.mean((drawn - centre) ** 3)) / spread**3, 0.1)
    taken_off, left_alone = _ordinates(r.T, q)[1].T, _ordinates(white.T, q, is_white=True)[1].T
    if taken_off.shape[1] < 3:
        return SimulatedLaw(centre, spread, skewness, (0.0, 1.0), (0.0, 1.0))
    apart, known = _distances(taken_off), _distances(left_alone)
    return SimulatedLaw(
        centre, spread, skewness, (float(apart.mean()), float(apart.std())), (float(known.mean()), float(known.std()))
    )  # fmt: skip


def _drawn(q: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (draws, n) white noise and, made of it, residuals r ~ N(0, I − QQᵀ); always the same ones."""
    draws = int(np.clip(DRAWN // n, 500, 2000))
    white = np.random.default_rng(0).standard_normal((draws, n))
    u, s, _ = np.linalg.svd(q, full_matrices=False)
    return white, white - ((white @ u) * (1 - np.sqrt(np.clip(1 - s**2, 0.0, None)))) @ u.T


def _correlations(r: np.ndarray, lags: int) -> np.ndarray:
    """Return (draws, lags) autocorrelations of each row."""
    size = 1 << int(np.ceil(np.log2(r.shape[1] + lags)))
    power = np.abs(np.fft.rfft(r, size, axis=1)) ** 2
    products = np.fft.irfft(power, size, axis=1)[:, : lags + 1]
    return np.asarray(products[:, 1:] / products[:, :1])


@dataclass(frozen=True)
class Periodogram:
    """Cumulated share of the residuals' power; ``frequency`` in cycles per sample."""

    frequency: np.ndarray
    cumulated: np.ndarray
    distance: float
    p: float

    @property
    def uniform(self) -> np.ndarray:
        """Return the straight line of white noise."""
        return np.arange(1, len(self.cumulated) + 1) / max(len(self.cumulated), 1)

    @property
    def excess(self) -> tuple[float, float]:
        """Frequency of the greatest distance, and its sign: positive where slow motion has too much power."""
        if not len(self.cumulated):
            return np.nan, 0.0
        off = self.cumulated - self.uniform
        k = int(np.argmax(np.abs(off)))
        return float(self.frequency[k]), float(np.sign(off[k]))


def cumulated_periodogram(r: np.ndarray, q: np.ndarray, *, quick: bool = False) -> Periodogram:
    """Apply Bartlett's test of a flat spectrum; ``quick``: with the law of long records."""
    from scipy.stats import kstwo

    frequency, power = _ordinates(r, q)
    if len(power) < 3 or not power.sum() > 0:
        return Periodogram(frequency[:0], power[:0], 0.0, np.nan)
    cumulated, m = np.cumsum(power) / power.sum(), len(power) - 1
    distance = float(_distances(power[None])[0])
    like = distance
    if not quick and len(r) <= LONG and q.shape[1]:
        law = _drawn_law(np.ascontiguousarray(q).tobytes(), len(r))
        (mean, spread), (white_mean, white_spread) = law.distance, law.white_distance
        like = white_mean + (distance - mean) / spread * white_spread
    return Periodogram(frequency, cumulated, distance, float(kstwo.sf(like, m)))


def _ordinates(r: np.ndarray, q: np.ndarray, is_white: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies, and the power there over its expectation, of one series or of columns.

    is_white : nothing was taken from r; frequencies are those of residuals all the same
    """
    n = len(r)
    inner = slice(1, (n - 1) // 2 + 1)
    power = np.abs(np.fft.rfft(r, axis=0)[inner]) ** 2 / n
    taken = np.sum(np.abs(np.fft.rfft(q, axis=0)[inner]) ** 2, axis=1) / n
    kept = taken < MAX_TAKEN_SHARE
    left = 1.0 if is_white else 1 - taken[kept]
    return np.fft.rfftfreq(n)[inner][kept], (power[kept].T / left).T


def _distances(power: np.ndarray) -> np.ndarray:
    """Return Kolmogorov's, of each row of ordinates."""
    cumulated = np.cumsum(power, axis=1)
    m = power.shape[1] - 1
    cumulated = cumulated[:, :-1] / cumulated[:, -1:]
    grid = np.arange(1, m + 1) / m
    return np.asarray(np.maximum((grid - cumulated).max(axis=1), (cumulated - grid + 1 / m).max(axis=1)))


def regressors(u: np.ndarray, n: int, *, is_static: bool) -> np.ndarray:
    """Return the input and its past, or its first three powers; constant columns are left out."""
    centred = u - u.mean()
    scale = float(np.sqrt(np.mean(centred**2)))
    if not scale > 1e-12 * (1 + np.abs(u).max(initial=0.0)):
        return np.zeros((n, 0))
    x = centred / scale
    if is_static:
        columns = [x, x**2, x**3]
    else:
        columns = [np.concatenate([np.full(k, x[0]), x[: n - k]]) for k in range(lag_count(n) + 1)]
    stacked = np.stack(columns, axis=1)
    return np.asarray(stacked - stacked.mean(axis=0))


def input_dependence(r: np.ndarray, q: np.ndarray, u: np.ndarray, *, known: bool) -> ResidualTest:
    """Test whether the residuals still contain the columns of ``u``, beyond what the unknowns can fit.

    With ``known`` noise the statistic is χ²; otherwise r was scaled by itself, and its share of Σr² is a beta variable.
    """
    from scipy.stats import beta, chi2

    basis, s, _ = np.linalg.svd(u, full_matrices=False)
    basis = basis[:, s > 1e-6 * s.max(initial=0.0)] if s.max(initial=0.0) > 0 else basis[:, :0]
    part = q.T @ basis
    values, vectors = np.linalg.eigh(np.eye(basis.shape[1]) - part.T @ part)
    seen = values > 1e-6
    d, left = int(seen.sum()), len(r) - float(np.sum(q**2))
    if d == 0 or left - d < 1:
        return ResidualTest(0.0, np.nan, 0.0)
    c = (vectors[:, seen].T @ (basis.T @ r)) / np.sqrt(values[seen])
    statistic = float(c @ c)
    p = chi2.sf(statistic, d) if known else beta.sf(statistic / float(r @ r), d / 2, (left - d) / 2)
    return ResidualTest(statistic, float(p), d)


def cross_correlation(r: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the correlation of the residuals with each column."""
    norms = np.linalg.norm(u, axis=0) * np.linalg.norm(r)
    return np.asarray((u.T @ r) / np.where(norms > 0, norms, 1.0))


def normality(r: np.ndarray) -> ResidualTest:
    """Test whether the values are normally distributed."""
    from scipy.stats import jarque_bera, shapiro

    if np.ptp(r) == 0:
        return ResidualTest(0.0, np.nan)
    found = shapiro(r) if len(r) <= 5000 else jarque_bera(r)
    return ResidualTest(float(found.statistic), float(found.pvalue))


def outliers(r: np.ndarray, q: np.ndarray, degrees_of_freedom: int, level: float) -> tuple[ResidualTest, np.ndarray]:
    """Return the test of the largest externally studentized residual (Bonferroni), and the indices of all outliers."""
    from scipy.stats import t as student

    nu = max(degrees_of_freedom - 1, 1)
    internal = r / np.sqrt(np.clip(1 - np.sum(q**2, axis=1), 1e-6, None))
    room = np.clip(degrees_of_freedom - internal**2, 1e-12, None)
    external = np.abs(internal) * np.sqrt(nu / room)
    p = np.minimum(2 * student.sf(external, nu) * len(r), 1.0)
    k = int(np.argmax(external))
    return ResidualTest(float(external[k]), float(p[k]), float(nu)), np.flatnonzero(p < level)


def middle_size(r: np.ndarray, q: np.ndarray) -> tuple[ResidualTest, float]:
    """Return whether the middle of the residuals is as wide as known noise makes it, outliers left out; and how wide it
    is.

    The standard deviation of the level from the median of n normal values is 1.167/√n of it (Huber, Ronchetti 2009,
    section 5.1); values beyond ``OUTLYING`` levels are left out.
    """
    from scipy.stats import norm

    level = middle_level(r)
    inner = r[np.abs(r) <= OUTLYING * level]
    taken = float(np.sum(q**2)) * len(inner) / max(len(r), 1)
    width = middle_level(inner) * float(np.sqrt(len(inner) / max(len(inner) - taken, 1.0)))
    spread = MEDIAN_SPREAD / np.sqrt(max(len(inner), 1))
    return ResidualTest(width, float(2 * norm.sf(abs(width - 1) / spread))), width


def sticking_out(r: np.ndarray, level: float) -> tuple[float, np.ndarray]:
    """Return the largest residual in units of the scatter of the middle ones, and the indices of outliers by that."""
    from scipy.stats import norm

    size = np.abs(r) / max(middle_level(r), 1e-300)
    return float(size.max(initial=0.0)), np.flatnonzero(2 * norm.sf(size) * len(r) < level)


def size(r: np.ndarray, q: np.ndarray) -> ResidualTest:
    """Test whether residuals are as large as the known noise makes them; two-sided."""
    from scipy.stats import chi2

    dof = len(r) - float(np.sum(q**2))
    total = float(r @ r)
    return ResidualTest(total, float(2 * min(chi2.sf(total, dof), chi2.cdf(total, dof))), dof)
