"""Covariance of estimates from an ensemble: what the data leave open, and what a finite ensemble adds.

    C = A⁻¹ (B + B_M) A⁻¹,     A = Σ ψᵀWψ (+ ½ Σ tr(W dS W dS)) + priors − Monte Carlo share

A record differs from the mean as one realization does, so the covariance B of the criterion's gradient over records is
that over realizations, with measurement noise added,

    B = cov_m[ Σ_k ψᵀW d_m (+ ½ d_mᵀ W dS W d_m) ] + noise + priors,         d_m = ŷ_m − ȳ.

B_M is the variance of the gradient over ensembles, from the influence of each realization on it, slopes included and
summed over experiments, which share their random numbers:

    B_M = cov_m[ Σ_k ψᵀW d_m − (∂ŷ_m − ψ)ᵀW e + … ] / M.

Where variances are matched, d_m in B is of fresh realizations, divided by the root of c = Σ_m dᵀWd / Σ tr(WV): those
that S was made of can lie only so far out in it, and fresh ones lie c times as far out as S says, because S⁻¹ of a
finite ensemble is too large; the estimate has already made up for that. What of A comes from the Monte Carlo error of
ψ̂ is taken off again. The errors need be neither white nor normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.uncertainty import inverse_information, without_undetermined
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue, PatternTerm
from grisaille.simulation.ensembles.moment_projection import ProjectionForm

MAX_REMOVED_SHARE = 0.5
"""Of a diagonal entry of A, the share that Monte Carlo error may have and be taken off."""
MIN_RECORDS = 200
"""Fresh realizations, at least, that stand for records where variances are matched."""


@dataclass(frozen=True)
class Sandwich:
    """A covariance in two parts."""

    covariance: np.ndarray
    data: np.ndarray
    """What records differ by."""
    monte_carlo: np.ndarray
    """What ensembles of this size differ by."""
    correction: np.ndarray
    """How far the correction for finite M moves each unknown."""
    slope_noise: np.ndarray
    """Share of each diagonal entry of A that is Monte Carlo error."""
    uncertainty: np.ndarray
    """Of each standard error, its own relative standard deviation from so few realizations."""

    @property
    def shares(self) -> np.ndarray:
        """Of each variance, what is due to the finite ensemble; zero where a bound decided."""
        total = np.diag(self.covariance)
        safe = np.where(np.isfinite(total) & (total > 0), total, np.inf)
        return np.asarray(np.diag(self.monte_carlo) / safe)

    @property
    def correction_errors(self) -> np.ndarray:
        """Return the correction in units of standard errors."""
        total = np.diag(self.data)
        safe = np.where(np.isfinite(total) & (total > 0), total, np.inf)
        return np.asarray(np.abs(self.correction) / np.sqrt(safe))


def ensemble_sandwich(criterion: MeanCriterion, value: MeanValue, free: np.ndarray) -> Sandwich:
    """Return both parts at a point, from one more pass over the realizations."""
    n, M = len(value.theta), criterion.realizations
    middle = sum((_noise_part(p, value, criterion) for p in value.parts), np.zeros((n, n)))
    floor, scores, all_pulls = np.zeros((n, n)), [], []
    for number, case in enumerate(criterion.problem.cases):
        told, pulls, energy = _projections(criterion, value, number)
        middle = middle + np.cov(told, rowvar=False).reshape(n, n)
        scores.append(told)
        all_pulls.append(pulls)
        # what Σ ψ̂ᵀWψ̂ has from the Monte Carlo error of ψ̂ alone
        floor[np.ix_(case.unknowns, case.unknowns)] += energy / (M * (M - 1))
    prior = criterion.problem.prior(value.theta)
    middle, curvature = middle + prior.believed, value.curvature + prior.correction
    inner = _of_ensembles(all_pulls) / M
    noise = np.diag(floor) / np.maximum(np.diag(curvature), 1e-300)
    cleaned = curvature - floor if (noise < MAX_REMOVED_SHARE).all() else curvature
    if np.linalg.eigvalsh(_scaled(cleaned)).min() <= 0:
        cleaned = curvature if np.linalg.eigvalsh(_scaled(curvature)).min() > 0 else value.curvature
    bread, undetermined = inverse_information(cleaned, free)
    data, own = bread @ middle @ bread, bread @ inner @ bread
    return Sandwich(
        without_undetermined(data + own, undetermined), without_undetermined(data, undetermined), own,
        bread @ _correction_slope(criterion, value), noise, _uncertainty([s @ bread for s in scores], data),
    )  # fmt: skip


def _of_ensembles(pulls: list[np.ndarray]) -> np.ndarray:
    """Return covariance of the realizations' influence over all experiments, which share their random numbers."""
    n, count = pulls[0].shape[1], min(map(len, pulls))
    if all(len(p) == count for p in pulls):
        return np.asarray(np.cov(sum(pulls), rowvar=False).reshape(n, n))
    # realizations that failed in one experiment have no partner: at most this much
    deviations = sum(np.sqrt(np.clip(p.var(axis=0, ddof=1), 0.0, None)) for p in pulls)
    return np.asarray(np.diag(deviations**2))


def _uncertainty(effects: list[np.ndarray], data: np.ndarray) -> np.ndarray:
    """Return relative standard deviation of each standard error: half that of a variance from M values with their
    kurtosis.
    """
    total = np.zeros(len(data))
    for x in effects:
        squares = (x - x.mean(axis=0)) ** 2
        total += squares.var(axis=0) / len(x)
    variance = np.diag(data)
    safe = np.where(np.isfinite(variance) & (variance > 0), variance, np.inf)
    return np.asarray(0.5 * np.sqrt(total) / safe)


def _scaled(H: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    return np.asarray(H / np.outer(size, size))


def _projections(criterion: MeanCriterion, value: MeanValue, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for realizations of one experiment, the score of each as a record without noise (M, n); its influence on
    the gradient (M, n); and the energy of the deviations of sensitivities.
    """
    case = criterion.problem.cases[number]
    n, shape = len(value.theta), (len(case.grid), len(case.outputs))
    score, pull = np.zeros((*shape, n)), np.zeros((*shape, n))
    turn = np.zeros(shape)
    bent = (np.zeros((*shape, shape[1], n)), np.zeros((*shape, shape[1], n)), np.zeros((*shape, shape[1])))
    for part in (p for p in value.parts if p.pattern.case == number):
        rows, columns = part.pattern.rows, part.pattern.columns
        at, pairs = np.ix_(rows, columns), np.ix_(rows, columns, columns)
        f, We = part.factor, part.We
        score[at] = f[..., None] * np.einsum("tij,tjn->tin", part.W, part.psi)
        pull[at], turn[at] = score[at], -f * We
        if criterion.with_variance:
            WdSW = weighted_slope(part)
            bent[0][pairs] = 0.5 * WdSW
            bent[1][pairs] = _influence(part, WdSW)
            bent[2][pairs] = part.W - We[:, :, None] * We[:, None, :]
            pull[at] += np.einsum("tijn,tj->tin", WdSW, part.e)
    curved = criterion.with_variance
    influence = ProjectionForm(pull, bent[1] if curved else None, turn, bent[2] if curved else None, case.unknowns)
    theta = case.own(value.theta)
    weights, at_value = slope_weights(value, number, case), value.predictions[number]
    runner = criterion.runners[number]
    if not curved:
        v, energy = runner.projections(theta, [ProjectionForm(score), influence], at_value, weights)
        return v[:, :n], v[:, n:], energy
    pulls, energy = runner.projections(theta, [influence], at_value, weights)
    M, first = runner.options.realizations, runner.options.first
    size = ProjectionForm(np.zeros((*shape, 1)), weights[..., None])
    forms = [ProjectionForm(score), ProjectionForm(np.zeros_like(score), bent[0]), size]
    v, _ = runner.renewed(max(M, MIN_RECORDS), first + M).projections(theta, forms, at_value)
    expected = sum(float(np.sum(p.W * p.V)) for p in value.parts if p.pattern.case == number)
    c = max(1.0, float(v[:, 2 * n].mean()) / max(expected * (1 + 1 / M), 1e-300))
    return v[:, :n] / np.sqrt(c) + v[:, n : 2 * n] / c, pulls, energy


def weighted_slope(part: PatternTerm) -> np.ndarray:
    """Return W dS W, (T, q, q, n)."""
    return np.asarray(np.einsum("tij,tjkn,tkl->tiln", part.W, part.dS, part.W, optimize=True))


def _influence(part: PatternTerm, WdSW: np.ndarray) -> np.ndarray:
    """Return what multiplies d dᵀ in the influence of a realization on the gradient."""
    We = part.We
    Wpsi = np.einsum("tij,tjn->tin", part.W, part.psi)
    mixed = np.einsum("ti,tjn->tijn", We, Wpsi)
    turned = np.einsum("tijn,tj,tk->tikn", WdSW, part.e, We, optimize=True)
    return np.asarray(
        0.5 * (mixed + np.swapaxes(mixed, 1, 2)) + 0.5 * (turned + np.swapaxes(turned, 1, 2)) - 0.5 * WdSW
    )


def slope_weights(value: MeanValue, number: int, case: ExperimentTerm) -> np.ndarray:
    """Return W on the grid of one experiment, (times, outputs, outputs)."""
    weights = np.zeros((len(case.grid), len(case.outputs), len(case.outputs)))
    for part in (p for p in value.parts if p.pattern.case == number):
        pairs = np.ix_(part.pattern.rows, part.pattern.columns, part.pattern.columns)
        weights[pairs] = part.factor[:, :, None] * part.W * part.factor[:, None, :]
    return weights


def _noise_part(part: PatternTerm, value: MeanValue, criterion: MeanCriterion) -> np.ndarray:
    """Return covariance of the score from measurement noise alone."""
    R = np.where(np.isnan(part.R), _left_over(criterion, value, part), part.R)
    lead = part.factor[..., None] * np.einsum("tij,tjn->tin", part.W, part.psi)
    total = np.einsum("tin,ti,tim->nm", lead, R, lead, optimize=True)
    if criterion.with_variance:
        Q = 0.5 * weighted_slope(part)
        QR = Q * R[:, None, :, None]
        spread = 4 * part.V + 2 * R[:, :, None] * np.eye(R.shape[1])
        total = total + np.einsum("tijn,tkjm,tki->nm", QR, Q, spread, optimize=True)
    return np.asarray(total)


def _left_over(criterion: MeanCriterion, value: MeanValue, part: PatternTerm) -> np.ndarray:
    """Return, for each output, the part of its errors beyond the spread of the ensemble: an estimate of open
    measurement noise.
    """
    problem = criterion.problem
    found = []
    for output in part.pattern.outputs:
        mine = problem.output_of == problem.outputs.index(output)
        w2 = problem.weights[mine] ** 2
        excess = float(np.sum(w2 * (value.errors[mine] ** 2 - value.spread[mine])) / np.sum(w2))
        found.append(max(excess, 0.0))
    w = problem.weights[part.pattern.samples]
    return np.asarray(np.array(found) / w**2)


def _correction_slope(criterion: MeanCriterion, value: MeanValue) -> np.ndarray:
    """Return ½ Σ tr(W dV)/M, by which the correction changes the gradient."""
    M, n = criterion.realizations, len(value.theta)
    total = np.zeros(n)
    for part in value.parts:
        total += 0.5 / M * np.einsum("tij,tijn->n", part.W, part.dV)
        if criterion.with_variance:
            total -= 0.5 / M * np.einsum("tij,tijn->n", part.W @ part.V @ part.W, part.dS)
    return total
