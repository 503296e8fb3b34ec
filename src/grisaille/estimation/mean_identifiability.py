"""Whether the mean of the outputs moves with every unknown, decided before a search.

An unknown whose averaged sensitivity is no larger than its Monte Carlo error,

    Σ_k ψ̂_kᵀ W ψ̂_k  <  4 · Σ_k tr[W cov_m(∂ŷ_k)] / M,

although single realizations move with it, does not move the mean: correlations, and scales of disturbances that enter
linearly. Their variances tell them. Beside it, pairs that the mean can hardly tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.ensemble_sandwich import slope_weights
from grisaille.estimation.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimation.mean_problem import disturbance_parameters
from grisaille.estimation.uncertainty import correlation_of
from grisaille.estimation.unknowns import Unknown
from grisaille.model.flat import FlatModel

FEW = 64
"""Realizations that decide where the answer is clear."""
CLEAR = 4.0
NOTHING = 1e-10
"""Of what the variances hold about an unknown: as good as nothing."""
COLLINEAR = 0.99


def refuse_unmoved_means(criterion: MeanCriterion, theta: np.ndarray) -> None:
    """``EstimationError`` naming the unknowns that do not move the mean beyond its Monte Carlo error."""
    if criterion.with_variance or any(r.differences is not None for r in criterion.runners):
        return
    M = criterion.realizations
    few = criterion.with_runners(min(M, FEW)) if M > FEW else criterion
    unmoved = _unmoved(few, theta)
    if unmoved and few is not criterion:
        unmoved = _unmoved(criterion, theta)
    if unmoved:
        names = ", ".join(f"'{n}'" for n in unmoved)
        several = len(unmoved) > 1
        raise EstimationError(
            f"The mean of the outputs does not move with {names} beyond its Monte Carlo error ({M} realizations), "
            f"although single realizations do: {'they are' if several else 'it is'} not identifiable from the mean. "
            f"Use gr.SimulatedPEM(match='mean-variance'), which compares variances too; leave "
            f"{'them' if several else 'it'} out of estimate=; or, for an effect that is small but there, give more "
            f"realizations."
        )


def _unmoved(criterion: MeanCriterion, theta: np.ndarray) -> list[str]:
    value = criterion.at(theta)
    if not value.completed:
        return []
    n, M = len(theta), criterion.realizations
    floor, spread = np.zeros(n), np.zeros(n)
    for number, case in enumerate(criterion.problem.cases):
        values, starts = criterion.problem.values_for(case, theta)
        weights = slope_weights(value, number, case)
        _, energy = criterion.runners[number].projections(values, starts, [], value.predictions[number], weights)
        floor[list(case.unknowns)] += np.diag(energy) / (M * (M - 1))
    signal = np.zeros(n)
    for part in value.parts:
        signal += np.einsum("tin,tij,tjn->n", part.psi, part.W, part.psi, optimize=True)
        G = np.einsum("tij,tjkn->tikn", part.W, part.dV)
        spread += 0.5 * np.einsum("tikn,tkin->n", G, G)
    names = [u.name for u in criterion.problem.unknowns]
    lost = (signal < np.maximum(CLEAR * floor, NOTHING * spread)) & (floor + spread > 0)
    return [name for name, is_lost in zip(names, lost, strict=True) if is_lost]


def collinear_notes(
    flat: FlatModel, unknowns: Sequence[Unknown], covariance: np.ndarray, value: MeanValue, free: np.ndarray
) -> list[str]:
    """Pairs with a parameter of a disturbance that the mean hardly tells apart."""
    inside = disturbance_parameters(flat)
    correlation = correlation_of(covariance)
    notes = []
    for i, u in enumerate(unknowns):
        for j, other in enumerate(unknowns[:i]):
            belongs = any(v.kind == "scale" or v.target in inside for v in (u, other))
            if belongs and free[i] and free[j] and abs(correlation[i, j]) > COLLINEAR:
                notes.append(
                    f"NEARLY UNIDENTIFIABLE from the mean: {other.name} and {u.name} are correlated by "
                    f"{correlation[i, j]:+.4f}; fix one of them, or use match='mean-variance', which tells them apart."
                )
    return notes
