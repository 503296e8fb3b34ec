"""Whether the mean of the outputs depends on every unknown, decided before a search.

An unknown is suspected where its averaged sensitivity is hardly larger than its Monte Carlo error,

    Σ_k ψ̂_kᵀ W ψ̂_k  <  4 · Σ_k tr[W cov_m(∂ŷ_k)] / M,

although single realizations move with it. With few realizations that happens to effects that are there. So suspects are
tried on two independent halves A, B of at least 128 realizations: where the mean does not move, the projections

    x_j = Σ_k ψ̂_Aᵀ W ∂ŷ_j,     j in B,

have the mean zero, given A, which a t statistic judges (and the same with A and B exchanged). Unknowns with t below 3
are refused: correlations, scales of disturbances that enter linearly. Their variances tell them. Others get a note.
Beside it, pairs that the mean can hardly tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.uncertainty import correlation_of
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_problem import disturbance_parameters
from grisaille.estimators.simulated_pem.sandwich import slope_weights
from grisaille.estimators.simulated_pem.skipped_features import skipped_notes
from grisaille.model.flat import FlatModel
from grisaille.simulation.ensembles.moment_projection import ProjectionForm

TEST_REALIZATIONS = 64
"""Realizations that decide where the answer is clear."""
CLEAR_T_VALUE = 4.0
MIN_VARIANCE_INFORMATION = 1e-10
"""Of what the variances hold about an unknown: as good as nothing."""
HALF, SIGNIFICANT = 64, 3.0
"""Realizations in each half, at least, and the t above which a mean moves."""
MAX_COLLINEARITY = 0.99


def refuse_unmoved_means(criterion: MeanCriterion, theta: np.ndarray) -> list[str]:
    """Return notes on unknowns that hardly affect the mean; ``EstimationError`` naming those that do not affect it."""
    if criterion.with_variance or any(r.differences is not None for r in criterion.runners):
        return []
    M = criterion.realizations
    few = criterion.with_runners(min(M, TEST_REALIZATIONS)) if M > TEST_REALIZATIONS else criterion
    suspects = _suspects(few, theta)
    if suspects and few is not criterion:
        suspects = _suspects(criterion, theta)
    if not suspects:
        return []
    half = max(HALF, M // 2 - M // 2 % 2)
    moved = _moved(criterion, theta, half)
    names = [u.name for u in criterion.problem.unknowns]
    unmoved = [names[k] for k in suspects if not moved[k] > SIGNIFICANT]
    if unmoved:
        _refuse(unmoved, 2 * half, skipped_notes(criterion, theta))
    return [
        f"the mean hardly depends on {names[k]} at the guess: the Monte Carlo error of its sensitivity is "
        f"{100 * share:.0f} % with {M} realizations; give more of them."
        for k, share in suspects.items()
    ]


def _refuse(unmoved: Sequence[str], realizations: int, skipped: Sequence[str]) -> None:
    names = ", ".join(f"'{n}'" for n in unmoved)
    several = len(unmoved) > 1
    if skipped:
        raise EstimationError(
            f"The mean of the outputs does not depend on {names} beyond its Monte Carlo error ({realizations} "
            f"realizations) with these steps. In{skipped[0].removeprefix('discretisation: in')} Give "
            f"gr.SimulatedPEM(step=…), or make it wider."
        )
    raise EstimationError(
        f"The mean of the outputs does not depend on {names} beyond its Monte Carlo error ({realizations} "
        f"realizations), although single realizations do: {'they are' if several else 'it is'} not identifiable from "
        f"the mean. Use gr.SimulatedPEM(match='mean-variance'), which compares variances too; leave "
        f"{'them' if several else 'it'} out of estimate=; or, for an effect that is small but there, give more "
        f"realizations."
    )


def _suspects(criterion: MeanCriterion, theta: np.ndarray) -> dict[int, float]:
    """Return unknowns whose averaged sensitivity is hardly above its Monte Carlo error, with the share of that."""
    value = criterion.at(theta)
    if not value.completed:
        return {}
    n, M = len(theta), criterion.realizations
    floor, spread, signal = np.zeros(n), np.zeros(n), np.zeros(n)
    for number, case in enumerate(criterion.problem.cases):
        weights = slope_weights(value, number, case)
        _, energy = criterion.runners[number].projections(case.own(theta), [], value.predictions[number], weights)
        floor[list(case.unknowns)] += np.diag(energy) / (M * (M - 1))
    for part in value.parts:
        signal += np.einsum("tin,tij,tjn->n", part.psi, part.W, part.psi, optimize=True)
        G = np.einsum("tij,tjkn->tikn", part.W, part.dV)
        spread += 0.5 * np.einsum("tikn,tkin->n", G, G)
    lost = (signal < np.maximum(CLEAR_T_VALUE * floor, MIN_VARIANCE_INFORMATION * spread)) & (floor + spread > 0)
    return {int(k): float(np.sqrt(floor[k] / max(signal[k], 1e-300))) for k in np.flatnonzero(lost)}


def _moved(criterion: MeanCriterion, theta: np.ndarray, half: int) -> np.ndarray:
    """Return t of each unknown, the mean of both ways; zero where there is no effect to the rounding."""
    halves = [criterion.with_runners(half, first) for first in (0, half)]
    values = [h.at(theta) for h in halves]
    if not all(v.completed for v in values):
        return np.full(len(theta), np.inf)
    ways = [_student(values[i], halves[1 - i], values[1 - i]) for i in (0, 1)]
    return np.asarray(np.mean(ways, axis=0))


def _student(direction: MeanValue, tried: MeanCriterion, there: MeanValue) -> np.ndarray:
    """Return mean over its standard error of the projections of one half's sensitivities on the other's mean ones."""
    n = len(there.theta)
    mean, variance, own = np.zeros(n), np.zeros(n), np.zeros(n)
    for part, other in zip(direction.parts, there.parts, strict=True):
        mean += np.einsum("tin,tij,tjn->n", part.psi, part.W, other.psi, optimize=True)
        G = np.einsum("tij,tjkn->tikn", part.W, part.dV)
        own += 0.5 * np.einsum("tikn,tkin->n", G, G)
    for number, case in enumerate(tried.problem.cases):
        forms = [_form(direction, number, case, k) for k in case.unknowns]
        v, _ = tried.runners[number].projections(case.own(there.theta), forms, there.predictions[number])
        x = np.stack([v[:, i * n + k] for i, k in enumerate(case.unknowns)], axis=1)
        if tried.runners[number].options.antithetic:
            x = 0.5 * (x[::2] + x[1::2])
        variance[list(case.unknowns)] += x.var(axis=0, ddof=1) / len(x)
    is_there = np.abs(mean) > MIN_VARIANCE_INFORMATION * own
    return np.asarray(np.where(is_there, mean / np.sqrt(np.maximum(variance, 1e-300)), 0.0))


def _form(direction: MeanValue, number: int, case: ExperimentTerm, k: int) -> ProjectionForm:
    """Return the projection of sensitivities on Wψ of one unknown."""
    shape = (len(case.grid), len(case.outputs))
    along = np.zeros(shape)
    for part in (p for p in direction.parts if p.pattern.case == number):
        along[np.ix_(part.pattern.rows, part.pattern.columns)] = part.factor * np.einsum(
            "tij,tj->ti", part.W, part.psi[..., k]
        )
    return ProjectionForm(np.zeros((*shape, len(direction.theta))), slope_linear=along, columns=case.unknowns)


def collinear_notes(
    flat: FlatModel, unknowns: Sequence[Unknown], covariance: np.ndarray, value: MeanValue, free: np.ndarray
) -> list[str]:
    """Return pairs with a parameter of a disturbance that the mean hardly distinguishes."""
    inside = disturbance_parameters(flat)
    correlation = correlation_of(covariance)
    notes = []
    for i, u in enumerate(unknowns):
        for j, other in enumerate(unknowns[:i]):
            belongs = any(v.kind == "scale" or v.target in inside for v in (u, other))
            if belongs and free[i] and free[j] and abs(correlation[i, j]) > MAX_COLLINEARITY:
                notes.append(
                    f"NEARLY UNIDENTIFIABLE from the mean: {other.name} and {u.name} are correlated by "
                    f"{correlation[i, j]:+.4f}; fix one of them, or use match='mean-variance', which "
                    f"distinguishes them."
                )
    return notes
