"""Whether the errors of a fitted mean are as large as those of simulated records that were fitted as well.

The size of an output's errors is T/E at the estimate, with T = Σ w²e² and E what a record has on average. Seen from any
θ, a record whose errors there are e, with the score s (minus the gradient of its criterion), has its estimate at θ + δ,
and to first order in δ

    δ = A⁻¹s,     T = Σ w²e² − 2 cᵀδ + δᵀGδ,     c = Σ w²ψe,   G = Σ w²ψψᵀ,
                  E = E(θ) exp(gᵀδ/E(θ)),         E(θ) = Σ w²(V(1 + 1/M) + R),   g = ∂E/∂θ.

p is from the rank of the measured record's T/E among those of simulated ones: fresh realizations at θ with measurement
noise. Without δ a fit that follows its record would look too small, and one that follows it into another level of
disturbances too small or too large.

T/E does not move to first order in θ, so θ need only be near the truth (Neyman's C(α)). Where the mean tells the level
of disturbances badly, its own estimate is not near enough: θ is then where mean and variance together fit best, as they
must if the declared levels are right.

Reference: J. Neyman, Optimal asymptotic tests of composite statistical hypotheses (1959).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.findings.ensemble import ErrorSize
from grisaille.estimation.uncertainty import inverse_information
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import step_to_minimum
from grisaille.estimators.simulated_pem.sandwich import weighted_slope
from grisaille.simulation.ensembles.moment_projection import ProjectionForm

FEWEST, MOST = 400, 1000
"""Simulated records."""
MAX_LOOSENESS = 0.1
"""Relative error of E from which on θ is looked for with variances."""
MIN_LEFT_VARIANCE = 0.25
"""Of the variance of T/E over records, what a fit must leave of it: where levels are estimated from variances, errors
are as large as the fit makes them."""
STEPS, NEAR = 8, 0.01
"""At most so many steps towards it, and the gain that ends them."""


@dataclass(frozen=True)
class ErrorSizeRecord:
    """What of one experiment (or M simulated ones) decides on the sizes of errors; q measured outputs."""

    score: np.ndarray
    """(…, n)"""
    squares: np.ndarray
    """Σ w²e² (…, q)"""
    cross: np.ndarray
    """c (…, q, n)"""


def error_sizes(
    criterion: MeanCriterion, value: MeanValue, free: np.ndarray, covariance: np.ndarray
) -> tuple[ErrorSize, ...]:
    """Return T/E over its median in simulated records, and twice its rank among them from the nearer end, of each
    output of each experiment whose noise is known and whose size was not fitted."""
    judged = [JudgedCase(criterion, value, number) for number in range(len(criterion.problem.cases))]
    if any(j.looseness(covariance) > MAX_LOOSENESS for j in judged) and not criterion.with_variance:
        value = criterion.renew(_fitted_with_variances(criterion, value))
        judged = [JudgedCase(criterion, value, number) for number in range(len(criterion.problem.cases))]
    bread, _ = inverse_information(value.curvature, free)
    own = [j.measured() for j in judged]
    # what the gradient holds beside the record: correction and priors
    constant = -value.gradient - sum(r.score for r in own)
    simulated = _independent([j.simulated() for j in judged])
    moved = [(sum(r.score for r in records) + constant) @ bread for records in (own, simulated)]
    found = []
    for j, mine, others in zip(judged, own, simulated, strict=True):
        one, many = j.ratios(mine, moved[0]), j.ratios(others, moved[1])
        left = many.var(axis=0) / np.maximum((others.squares / j.expected).var(axis=0), 1e-300)
        for k, sample in enumerate(j.case.samples):
            if np.isfinite(one[k]) and left[k] > MIN_LEFT_VARIANCE:
                sides = many[:, k] >= one[k], many[:, k] <= one[k]
                rank = min((1 + int(side.sum())) / (1 + len(many)) for side in sides)
                ratio = float(one[k] / max(np.median(many[:, k]), 1e-300))
                found.append(ErrorSize(sample.output, j.case.name, ratio, min(1.0, 2 * rank)))
    return tuple(found)


def _fitted_with_variances(criterion: MeanCriterion, value: MeanValue) -> MeanValue:
    """Return where mean and variance together fit best, with levels as declared; the point itself where noise is
    open.
    """
    if any(np.isnan(part.R).any() for part in value.parts):
        return value
    problem, both = criterion.problem, copy.copy(criterion)
    both.with_variance = True
    before, now = len(criterion.journal.failures), both.renew(value)
    for _ in range(STEPS):
        step, gain = step_to_minimum(both, now) if now.completed else (np.zeros(0), 0.0)
        if gain < NEAR:
            break
        xi = problem.inner(now.theta)
        trials = (both.at(problem.outer(xi + length * step)) for length in (1.0, 0.5, 0.25, 0.125))
        better = next((t for t in trials if t.completed and t.objective < now.objective), None)
        if better is None:
            break
        now = better
    del criterion.journal.failures[before:]
    return now if now.completed else value


def _independent(experiments: Sequence[ErrorSizeRecord]) -> list[ErrorSizeRecord]:
    """Return records that are independent: realizations of one number share their random numbers over experiments,
    records do not.
    """
    fields = [
        independent_records(list(arrays))
        for arrays in zip(*((r.score, r.squares, r.cross) for r in experiments), strict=True)
    ]
    return [ErrorSizeRecord(*of_one) for of_one in zip(*fields, strict=True)]


def independent_records(experiments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Shift arrays of realizations (M, …) so that those with common random numbers are not combined."""
    count = min(map(len, experiments))
    # an even shift keeps antithetic pairs side by side
    shifts = [2 * (k * count // len(experiments) // 2) for k in range(len(experiments))]
    return [np.roll(a[:count], shift, axis=0) for a, shift in zip(experiments, shifts, strict=True)]


class JudgedCase:
    """One experiment at one point: errors, slopes and expectations (times, q, …) of its measured outputs."""

    def __init__(self, criterion: MeanCriterion, value: MeanValue, number: int) -> None:
        self.criterion, self.value, self.number = criterion, value, number
        self.case: ExperimentTerm = criterion.problem.cases[number]
        self.n, self.shape = len(value.theta), (len(self.case.grid), len(self.case.outputs))
        more, count = 1 + 1 / criterion.realizations, (self.shape[0], len(self.case.samples))
        self.w2, self.e, E = np.zeros(count), np.zeros(count), np.zeros(count)
        self.psi, dE = np.zeros((*count, self.n)), np.zeros((*count, self.n))
        self.deviations = np.zeros(self.shape)
        """Of the measurement noise; zero where it is open."""
        for part in (p for p in value.parts if p.pattern.case == number):
            f, at = part.factor, np.ix_(part.pattern.rows, part.pattern.paired)
            self.e[at], self.psi[at] = part.e / f, part.psi / f[..., None]
            V, dV, dS = (np.einsum("tii...->ti...", a) for a in (part.V, part.dV, part.dS))
            E[at] = more * V / f**2 + part.R
            dE[at] = (more * dV + dS - dV) / f[..., None] ** 2
            self.deviations[np.ix_(part.pattern.rows, part.pattern.columns)] = np.sqrt(np.nan_to_num(part.R))
        for k, s in enumerate(self.case.samples):
            self.w2[s.rows, k] = s.weights**2
        self.expected, self.slope = np.einsum("tq,tq->q", self.w2, E), np.einsum("tq,tqn->qn", self.w2, dE)
        self.G = np.einsum("tq,tqn,tqm->qnm", self.w2, self.psi, self.psi, optimize=True)

    def looseness(self, covariance: np.ndarray) -> float:
        """Return relative standard error of E, at most; an unknown without error does not count."""
        known = np.where(np.isfinite(covariance), covariance, 0.0)
        variance = np.einsum("qn,nm,qm->q", self.slope, known, self.slope)
        there = np.isfinite(self.expected) & (self.expected > 0)
        return float(np.sqrt(np.max(variance[there] / self.expected[there] ** 2, initial=0.0)))

    def measured(self) -> ErrorSizeRecord:
        """Return the record at hand."""
        score = np.zeros(self.n)
        for part in (p for p in self.value.parts if p.pattern.case == self.number):
            score += np.einsum("tin,ti->n", part.psi, part.We)
            if self.criterion.with_variance:
                score += 0.5 * np.einsum("ti,tijn,tj->n", part.e, weighted_slope(part), part.e, optimize=True)
        squares = np.einsum("tq,tq->q", self.w2, self.e**2)
        return ErrorSizeRecord(score, squares, np.einsum("tq,tqn,tq->qn", self.w2, self.psi, self.e))

    def simulated(self) -> ErrorSizeRecord:
        """Return fresh realizations with noise."""
        runner, n, q = self.criterion.runners[self.number], self.n, len(self.case.samples)
        M, first = runner.options.realizations, runner.options.first
        count = min(max(M, FEWEST), MOST)
        at = self.value.predictions[self.number]
        theta = self.case.own(self.value.theta)
        v, _ = runner.renewed(count, first + M).projections(theta, self._forms(), at, noise=self.deviations)
        return ErrorSizeRecord(v[:, :n], v[:, n : n + q], v[:, n + q :].reshape(len(v), q, n))

    def _forms(self) -> list[ProjectionForm]:
        """Return score, Σ w²e² and c of records."""
        n, q, curved = self.n, len(self.case.samples), self.criterion.with_variance
        score, bent = np.zeros((*self.shape, n)), np.zeros((*self.shape, self.shape[1], n))
        for part in (p for p in self.value.parts if p.pattern.case == self.number):
            rows, columns = part.pattern.rows, part.pattern.columns
            score[np.ix_(rows, columns)] = part.factor[..., None] * np.einsum("tij,tjn->tin", part.W, part.psi)
            if curved:
                bent[np.ix_(rows, columns, columns)] = 0.5 * weighted_slope(part)
        squares, cross = np.zeros((*self.shape, self.shape[1], q)), np.zeros((*self.shape, q, n))
        for k, s in enumerate(self.case.samples):
            c = self.case.column(s.output)
            squares[:, c, c, k] = self.w2[:, k]
            cross[:, c, k] = self.w2[:, k, None] * self.psi[:, k]
        return [
            ProjectionForm(score, bent if curved else None, of_records=True),
            ProjectionForm(np.zeros((*self.shape, q)), squares, of_records=True),
            ProjectionForm(cross.reshape(*self.shape, q * n), of_records=True),
        ]

    def ratios(self, record: ErrorSizeRecord, moved: np.ndarray) -> np.ndarray:
        """Return T/E at the estimate (…, q); nan where the noise is open."""
        T = record.squares - 2 * np.einsum("...qn,...n->...q", record.cross, moved)
        T = T + np.einsum("...n,qnm,...m->...q", moved, self.G, moved)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.einsum("qn,...n->...q", self.slope, moved) / self.expected
            return np.asarray(np.maximum(T, 0.0) / self.expected * np.exp(-relative))
