"""Standard errors of filters whose criterion is not a likelihood: the sandwich, from the scores of parts of the record.

    C = H⁻¹ B H⁻¹,      B = Σ_j s_j s_jᵀ + Σ_{l ≤ L} (1 − l/(L + 1)) Σ_j (s_j s_{j−l}ᵀ + s_{j−l} s_jᵀ)

s_j is what a part of the record adds to the gradient: the gradient with all data up to its end less that up to its
beginning, so that every filter, any number of outputs and exact derivatives are served alike. Robust losses make H the
variance of nothing (it is that of squares); predictions over several samples have scores that are correlated, which the
products with L earlier ones contain. Reference: W. K. Newey, K. D. West, Econometrica 55 (1987) 703.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grisaille.estimation.likelihood import LikelihoodProblem, own_theta_and_steps

PARTS, FEWER = 100, 24
"""Of all records together, about; a part is at least one sample. Fewer for predictions over several, which are dear."""


def score_sandwich(problem: LikelihoodProblem, theta: np.ndarray, inverse: np.ndarray, horizon: int = 1) -> np.ndarray:
    """Return the covariance at θ; ``inverse``: H⁻¹ in the unknowns, zero or infinite where they are not determined."""
    known = np.isfinite(np.diag(inverse))
    bread = np.where(np.outer(known, known), inverse, 0.0)
    meat, parts, count = np.zeros_like(bread), 0, 0
    for scores, length in _scores(problem, theta, PARTS if horizon == 1 else FEWER):
        lags = min(1 + (horizon - 1) // length, len(scores) - 1)
        parts, count = parts + len(scores), count + len(scores) - lags
        meat += _summed(scores, lags)
    free = int((np.diag(bread) > 0).sum())
    # scores add up to zero, which takes from their products what n unknowns and L lags are worth
    meat = meat * parts / max(count - free, 1) + problem.prior(theta).believed
    found = _not_below(bread @ meat @ bread, bread)
    found[~known, ~known] = np.inf
    return np.asarray(found)


def _not_below(found: np.ndarray, bread: np.ndarray) -> np.ndarray:
    """Return the sandwich with no error below half of the curvature's, which then replaces it.

    What few samples tell, a start say, has its score in one part, and scores that add up to zero leave nothing of it.
    """
    least, own = np.diag(bread), np.diag(found)
    stretch = np.sqrt(np.where((own > 0) & (own < 0.25 * least), least / np.where(own > 0, own, 1.0), 1.0))
    stretched = found * np.outer(stretch, stretch)
    missing = (own <= 0) & (least > 0)
    stretched[missing, missing] = least[missing]
    return np.asarray(stretched)


def _scores(problem: LikelihoodProblem, theta: np.ndarray, parts: int) -> Iterator[tuple[np.ndarray, int]]:
    """Yield, for each experiment, scores (parts, unknowns) and how many samples a part has."""
    total = sum(len(c.grid) for c in problem.cases)
    for case in problem.discretised_problem.cases:
        length = -(-total // parts)
        ends = [*range(length, len(case.grid), length), len(case.grid)]
        sums = [np.zeros(len(case.unknowns))]
        for end in ends:
            known = [np.where(s.rows < end, s.values, np.nan) for s in case.samples]
            if not any(np.isfinite(values).any() for values in known):
                sums.append(sums[-1])
                continue
            found = case.with_values(iter(known)).runner.gradient(*own_theta_and_steps(case, theta))
            sums.append(sums[-1] if found.likelihood is None or found.failure else found.likelihood.gradient)
        scores = np.zeros((len(ends), len(theta)))
        scores[:, list(case.unknowns)] = np.diff(np.array(sums), axis=0)
        yield scores, length


def _summed(scores: np.ndarray, lags: int) -> np.ndarray:
    total = scores.T @ scores
    for lag in range(1, lags + 1):
        product = scores[lag:].T @ scores[:-lag]
        total = total + (1 - lag / (lags + 1)) * (product + product.T)
    return np.asarray(total)
