"""Test whether residuals of different outputs are correlated: noise that sensors share, a reference, a supply.

Standardized residuals of a right model, freed from the correlation C that it says they have at one instant
(``joint_innovations``), are independent between outputs at all lags. Of each pair, at the instants where both were
measured, and lags l = −2 … 2,

    c = Σ a_{t+l} b_t,   E c = −tr(Q_aᵀQ_b),   var c = (n − 4|AQ|² + 2|QᵀAQ|²) (1 + 2 Σ_k ρ_a(k) ρ_b(k))

for residuals ~ N(0, I − QQᵀ) (``residual_tests``); the last factor, Bartlett's, is there for series that are not white
by themselves. (c − E c)/√(var c) is compared as a correlation of ν samples is, by Student's t, and the smallest p of
all pairs and lags counts as often as there are some (Bonferroni): the test calls a right model wrong with at most the
probability of its level.

Reference: G. Box, G. Jenkins, Time Series Analysis (1976), section 11.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grisaille.assessment import residual_tests as tests
from grisaille.assessment.joint_innovations import joint_correlations
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted

MAX_LAGS = 2
"""Most samples by which one output may lead another."""


@dataclass(frozen=True)
class CorrelatedPair:
    """Two outputs of one experiment, where they are most alike."""

    first: str
    second: str
    lag: int
    """Samples by which the first one is later."""
    correlation: float
    p: float
    """Of this pair and lag alone."""

    @property
    def words(self) -> str:
        """Return which, how much and when."""
        when = "at the same instants" if self.lag == 0 else f"{abs(self.lag)} sample{'s' * (abs(self.lag) > 1)} apart"
        return f"{self.first} and {self.second}: correlation {self.correlation:+.2f} {when}"


@dataclass(frozen=True, eq=False)
class OutputCorrelations:
    """The pairs of one experiment."""

    case: ExperimentTerm
    pairs: tuple[CorrelatedPair, ...]
    p: float
    """Of all pairs and lags together."""

    @property
    def worst(self) -> CorrelatedPair:
        """Return the pair with the largest correlation."""
        return min(self.pairs, key=lambda pair: pair.p)


def between_outputs(fit: Fitted, taken: np.ndarray) -> Iterator[OutputCorrelations]:
    """Compare the outputs of every experiment that has several.

    taken : (samples, …) what the unknowns took from the residuals, Q
    """
    residuals, at = fit.estimate.evaluation.residuals, 0
    for case in fit.estimate.cases:
        part = slice(at, at + case.count)
        at = part.stop
        outputs = [s.output for s in case.samples if len(s.values) >= tests.MIN_SAMPLES]
        if len(outputs) < 2 or not any(_common(case, a, b) >= tests.MIN_SAMPLES for a, b in combinations(outputs, 2)):
            continue
        found = _compared(fit, case, outputs, residuals[part], taken[part])
        if found is not None:
            yield found


def _common(case: ExperimentTerm, first: str, second: str) -> int:
    """Return instants where both were measured."""
    rows = {s.output: s.rows for s in case.samples}
    return len(np.intersect1d(rows[first], rows[second], assume_unique=True))


def _compared(
    fit: Fitted, case: ExperimentTerm, outputs: list[str], r: np.ndarray, q: np.ndarray
) -> OutputCorrelations | None:
    names, count = list(case.trial.data.outputs), len(case.grid)
    values, basis = np.full((count, len(names)), np.nan), np.zeros((count, len(names), q.shape[1]))
    at = 0
    for s in case.samples:
        part, column = slice(at, at + len(s.values)), names.index(s.output)
        at = part.stop
        values[s.rows, column], basis[s.rows, column] = r[part], q[part]
    C = joint_correlations(fit, case)
    if C is not None:
        values, basis = _freed(values, basis, C)
    columns = [names.index(o) for o in outputs]
    pairs = [
        pair
        for a, b in combinations(columns, 2)
        for pair in correlated_pairs(names[a], names[b], values[:, [a, b]], basis[:, [a, b]])
    ]
    if not pairs:
        return None
    p = min(min(pair.p for pair in pairs) * len(pairs), 1.0)
    strongest = {(pair.first, pair.second): pair for pair in sorted(pairs, key=lambda pair: -pair.p)}
    return OutputCorrelations(case, tuple(strongest.values()), p)


def _freed(values: np.ndarray, basis: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return C^(−1/2) of what was measured at each instant."""
    values, basis, seen = values.copy(), basis.copy(), np.isfinite(values)
    patterns, of = np.unique(seen, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        here, rows = np.flatnonzero(pattern), np.flatnonzero(of.ravel() == k)
        if len(here) < 2:
            continue
        block = np.ix_(rows, here)
        size, axes = np.linalg.eigh(C[rows[:, None, None], here[:, None], here])
        root = np.einsum("tij,tj,tkj->tik", axes, 1 / np.sqrt(np.clip(size, 1e-8, None)), axes)
        values[block] = np.einsum("tij,tj->ti", root, values[block])
        basis[block] = np.einsum("tij,tjk->tik", root, basis[block])
    return values, basis


def correlated_pairs(first: str, second: str, values: np.ndarray, basis: np.ndarray) -> Iterator[CorrelatedPair]:
    """Yield the correlated pairs of outputs, one for each lag."""
    both = np.isfinite(values).all(axis=1)
    (a, b), (qa, qb) = values[both].T, basis[both].transpose(1, 0, 2)
    n = len(a)
    left = np.array([n - float(np.sum(q**2)) for q in (qa, qb)])
    if n < tests.MIN_SAMPLES or left.min() <= 3 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return
    a, b = (x * np.sqrt(v / float(x @ x)) for x, v in zip((a, b), left, strict=True))
    lags = tests.lag_count(n)
    alike = 1 + 2 * float(tests.autocorrelation(a, lags) @ tests.autocorrelation(b, lags))
    for lag in range(-MAX_LAGS, MAX_LAGS + 1):
        if n - abs(lag) < tests.MIN_SAMPLES:
            continue
        later, earlier = slice(max(lag, 0), n + min(lag, 0)), slice(max(-lag, 0), n - max(lag, 0))
        mean, variance = _moments(qa[later], qb[earlier])
        if not variance > 1e-6 * n:
            continue
        z = (float(a[later] @ b[earlier]) - mean) / np.sqrt(variance * max(alike, 1.0))
        found = float(a[later] @ b[earlier]) / np.sqrt(left.prod())
        yield CorrelatedPair(first, second, lag, float(np.clip(found, -1, 1)), _p(z, float(left.min())))


def _moments(qa: np.ndarray, qb: np.ndarray) -> tuple[float, float]:
    """Return mean and variance of c = Σ a_t b_t = (a, b)ᵀ A (a, b) for residuals ~ N(0, I − QQᵀ)."""
    inner = (qa.T @ qb + qb.T @ qa) / 2
    return -float(np.sum(qa * qb)), float(len(qa) - np.sum(qa**2) - np.sum(qb**2) + 2 * np.sum(inner**2))


def _p(z: float, samples: float) -> float:
    """Return the two-sided p value of z = ρ √ν."""
    from scipy.stats import t as student

    rho = min(abs(z) / np.sqrt(samples), 1 - 1e-12)
    return float(2 * student.sf(rho * np.sqrt((samples - 1) / (1 - rho**2)), samples - 1))
