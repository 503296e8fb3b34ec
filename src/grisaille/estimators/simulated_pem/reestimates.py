"""Estimates again from records that the fitted model makes: how far they lie from it, and whether intervals hold it.

A criterion with variances is minimised by estimates that have a bias of second order: records with few independent
stretches seldom hold the rare large values of a skewed output, and a variance is then taken for smaller than it is. For
records y_r simulated at the estimate θ̂, the gradient of each one's criterion is

    g_r(θ) = c(θ) − Σ ψᵀW e_r − ½ Σ e_rᵀ W dS W e_r,     e_r = y_r − ȳ(θ),

with the same means and covariances for all r. These are simulated at θ̂, a standard error to both sides along every
unknown, and, where there are few, at one corner of every pair. A quadratic through them is the gradient of each record
near θ̂, and its zero is that record's estimate; the standard error that it would have is interpolated between those at
the same points. The share of the intervals that hold θ̂ is what the intervals of the fit itself are worth.

Reference: B. Efron, R. J. Tibshirani, An Introduction to the Bootstrap (1993), chapter 10.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from grisaille.estimators.simulated_pem.error_sizes import JudgedCase, independent_records
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.sandwich import ensemble_sandwich, weighted_slope
from grisaille.optimization.journal import SearchJournal
from grisaille.simulation.ensembles.moment_projection import ProjectionForm

MIN_RECORDS = 200
"""Simulated records, at least."""
MAX_DISTANCE = 3.0
"""Standard errors that a record's estimate may be away: beyond, the quadratic says nothing."""
MAX_EXTRAPOLATION = 1.5
"""Standard errors up to which those that are stated elsewhere are extrapolated."""
MAX_ITERATIONS = 25
PAIRED, MOST = 4, 12
"""Unknowns up to which corners are simulated, and up to which anything is."""
MAX_COEFFICIENTS = 3e7
"""Coefficients that may be held at a time."""
BIASED, COVERED = 0.25, 0.87
"""Mean step in standard errors that is named, and share of the 95 % intervals below which a fit is marked: with 200
records of which nine tenths hold, one fit in ten is."""
NORMAL_QUANTILE = 1.96


@dataclass(frozen=True)
class Reestimates:
    """Estimates of simulated records, as steps of ξ away from the fit in standard errors, of the free unknowns."""

    steps: np.ndarray
    """(R, n)"""
    standardized: np.ndarray
    """Steps over the standard errors that a fit of that record would state, (R, n)."""
    records: int
    """How many were simulated; those without an estimate near the fit have no step."""
    index: np.ndarray
    """Which unknowns they are."""

    @property
    def bias(self) -> np.ndarray:
        """Mean step of each unknown, in standard errors; zero where no record has an estimate."""
        return np.asarray(self.steps.mean(axis=0)) if len(self.steps) else np.zeros(len(self.index))

    @property
    def covered(self) -> np.ndarray:
        """Share of the records whose 95 % interval would hold the fit, of each unknown."""
        held = np.abs(self.standardized) < NORMAL_QUANTILE
        return np.asarray(held.sum(axis=0) / max(self.records, 1))


def describe_reestimates(criterion: MeanCriterion, value: MeanValue, errors: np.ndarray, found: Reestimates) -> str:
    """Say which intervals would not hold the fit in simulated records, and how far their estimates lie off it.

    errors : standard errors in ξ; the sentence is empty where intervals hold
    """
    problem, bias, covered = criterion.problem, found.bias, found.covered
    names = [problem.unknowns[k].name for k in found.index]
    if not len(found.steps):
        return (
            "intervals: the model cannot be simulated a standard error away from these estimates, so that nothing says "
            "what the intervals are worth: standard errors and intervals are approximate"
        )
    if (covered > COVERED).all():
        return ""
    held = ", ".join(f"{100 * c:.0f} % of those of {n}" for n, c in zip(names, covered, strict=True) if c <= COVERED)
    moves, xi = [], problem.inner(value.theta)
    for k in (k for k in np.argsort(-np.abs(bias)) if abs(bias[k]) > BIASED):
        j, there = int(found.index[k]), xi.copy()
        there[j] += bias[k] * errors[j]
        change = 100 * (problem.outer(there)[j] - value.theta[j]) / abs(value.theta[j]) if value.theta[j] else np.nan
        moves.append(f"{names[k]} by {bias[k]:+.2g} standard errors ({change:+.2g} %)".replace("-", "−"))
    off = f"; their estimates lie off it on average, {', '.join(moves)}" if moves else ""
    return (
        f"intervals: in {found.records} records simulated with this fit the 95 % intervals hold it too seldom, "
        f"{held}{off}. A short record has few independent values to tell a variance by, and seldom the large ones of a "
        f"skewed output: standard errors and intervals are approximate. More or longer records help; more realizations "
        f"do not"
    )


def reestimate(
    criterion: MeanCriterion, value: MeanValue, free: np.ndarray, covariance: np.ndarray
) -> Reestimates | None:
    """Estimate simulated records; None where that is not done: too many unknowns or numbers, or no standard errors."""
    problem, index = criterion.problem, np.flatnonzero(free)
    slopes, n = problem.slopes(value.theta), len(index)
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))[index] / slopes[index]
    if not 0 < n <= MOST or not (np.isfinite(errors) & (errors > 0)).all():
        return None
    pairs = list(combinations(range(n), 2)) if n <= PAIRED else []
    design = np.array([np.zeros(n), *np.eye(n), *-np.eye(n), *(np.eye(n)[i] + np.eye(n)[j] for i, j in pairs)])
    largest = max(len(c.grid) * len(c.outputs) ** 2 for c in problem.cases)
    if largest * len(value.theta) * len(design) > MAX_COEFFICIENTS:
        return None
    count = max(criterion.realizations, MIN_RECORDS)
    values = [value, *_values(criterion, problem.inner(value.theta), index, design[1:] * errors)]
    if not all(v.completed for v in values):
        return Reestimates(np.zeros((0, n)), np.zeros((0, n)), count, index)
    gradients = _gradients(criterion, value, values, count)[:, :, index]
    scale = np.array([problem.slopes(v.theta)[index] for v in values]) * errors
    steps = quadratic_zeros(gradients * scale, n, pairs)
    stated = [_stated(criterion, v, free)[index] for v in values[: 1 + 2 * n]]
    return Reestimates(steps, steps / _errors_at(steps, np.log(stated / errors), n), len(gradients), index)


def _stated(criterion: MeanCriterion, value: MeanValue, free: np.ndarray) -> np.ndarray:
    """Return standard errors in ξ that a fit with this estimate would state."""
    covariance = ensemble_sandwich(criterion, value, free).covariance
    return np.asarray(np.sqrt(np.clip(np.diag(covariance), 0.0, None)) / criterion.problem.slopes(value.theta))


def _errors_at(steps: np.ndarray, logs: np.ndarray, n: int) -> np.ndarray:
    """Return errors at every record's estimate, quadratics in their logarithms (K, n) along each unknown."""
    here, ahead, behind = logs[0], logs[1 : 1 + n], logs[1 + n : 1 + 2 * n]
    d = np.clip(steps, -MAX_EXTRAPOLATION, MAX_EXTRAPOLATION)
    return np.asarray(np.exp(here + d @ (0.5 * (ahead - behind)) + d**2 @ (0.5 * (ahead + behind) - here)))


def _values(criterion: MeanCriterion, xi: np.ndarray, index: np.ndarray, moves: np.ndarray) -> Sequence[MeanValue]:
    lower, upper = criterion.problem.inner_bounds()
    found, apart = [], copy.copy(criterion)
    apart.journal = SearchJournal()  # no part of the search
    for move in moves:
        there = xi.copy()
        there[index] += move
        found.append(apart.at(criterion.problem.outer(np.clip(there, lower, upper))))
    return found


def _gradients(
    criterion: MeanCriterion, here: MeanValue, values: Sequence[MeanValue], count: int
) -> np.ndarray:  # fmt: skip
    """Return ∂J/∂θ of simulated records at every point, (R, K, n)."""
    constant = np.array([constant_part(criterion, here, value) for value in values])
    records = []
    for number, case in enumerate(criterion.problem.cases):
        forms = [projection_form(here, value, number, (len(case.grid), len(case.outputs))) for value in values]
        runner = criterion.runners[number]
        fresh = runner.renewed(count, runner.options.first + runner.options.realizations)
        noise = JudgedCase(criterion, here, number).deviations
        v, _ = fresh.projections(case.own(here.theta), forms, here.predictions[number], noise=noise)
        records.append(v)
    total = np.sum(independent_records(records), axis=0)
    return np.asarray(total.reshape(len(total), *constant.shape) + constant)


def constant_part(criterion: MeanCriterion, here: MeanValue, value: MeanValue) -> np.ndarray:
    """Return what the gradient at a point has whatever the record, as far as that is the mean at the fit."""
    share = 1.0 / criterion.realizations if criterion.corrected else 0.0
    total = criterion.problem.prior(value.theta).gradient
    for part, at in zip(value.parts, here.parts, strict=True):
        shift = part.e - at.e
        weight = part.W + share * part.W @ part.V @ part.W
        total = total + 0.5 * np.einsum("tij,tijn->n", weight, part.dS)
        total -= 0.5 * share * np.einsum("tij,tijn->n", part.W, part.dV)
        total -= np.einsum("tin,tij,tj->n", part.psi, part.W, shift, optimize=True)
        total -= 0.5 * np.einsum("ti,tijn,tj->n", shift, weighted_slope(part), shift, optimize=True)
    return np.asarray(total)


def projection_form(here: MeanValue, value: MeanValue, number: int, shape: tuple[int, int]) -> ProjectionForm:
    """Return what the gradient at a point has from the deviation of a record from the mean at the fit."""
    n = len(here.theta)
    linear, bent = np.zeros((*shape, n)), np.zeros((*shape, shape[1], n))
    for part, at in zip(value.parts, here.parts, strict=True):
        if part.pattern.case != number:
            continue
        rows, columns, WdSW = part.pattern.rows, part.pattern.columns, weighted_slope(part)
        leads = np.einsum("tij,tjn->tin", part.W, part.psi) + np.einsum("tijn,tj->tin", WdSW, part.e - at.e)
        linear[np.ix_(rows, columns)] = -leads
        bent[np.ix_(rows, columns, columns)] = -0.5 * WdSW
    return ProjectionForm(linear, bent, of_records=True)


def quadratic_zeros(g: np.ndarray, n: int, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return zeros of the quadratics through gradients (R, K, n) at 0, e_j, −e_j and e_i + e_j, of records that have
    one.
    """
    here, ahead, behind, corners = g[:, 0], g[:, 1 : 1 + n], g[:, 1 + n : 1 + 2 * n], g[:, 1 + 2 * n :]
    H = np.swapaxes(0.5 * (ahead - behind), 1, 2)  # (R, component, direction)
    T = np.zeros((len(g), n, n, n))
    for j in range(n):
        T[:, :, j, j] = ahead[:, j] + behind[:, j] - 2 * here
    for k, (i, j) in enumerate(pairs):
        T[:, :, i, j] = T[:, :, j, i] = corners[:, k] - ahead[:, i] - ahead[:, j] + here
    H = 0.5 * (H + np.swapaxes(H, 1, 2))
    expected = H.mean(axis=0)
    if np.linalg.eigvalsh(expected).min() <= 0:
        return np.zeros((0, n))
    found = [_zero(*one, expected) for one in zip(here, H, T, strict=True)]
    return np.array([d for d in found if d is not None]).reshape(-1, n)


def _zero(g: np.ndarray, H: np.ndarray, T: np.ndarray, expected: np.ndarray) -> np.ndarray | None:
    d = np.zeros(len(g))
    for _ in range(MAX_ITERATIONS):
        slope = H + np.einsum("nij,j->ni", T, d)
        if np.linalg.eigvalsh(0.5 * (slope + slope.T)).min() <= 0:
            slope = expected
        value = g + H @ d + 0.5 * np.einsum("nij,i,j->n", T, d, d)
        step = -np.linalg.solve(slope, value)
        step /= max(1.0, float(np.abs(step).max()))
        d = d + step
        if np.abs(d).max() > MAX_DISTANCE:
            return np.clip(d, -MAX_DISTANCE, MAX_DISTANCE)
        if np.abs(step).max() < 1e-3:
            return d
    return None
