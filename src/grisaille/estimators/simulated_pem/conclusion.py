"""From the minimum of a simulated criterion to an ``Estimate``: levels that are zero, errors, a diagnosis in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.findings.ensemble import EnsembleResult
from grisaille.estimation.interruption import interrupted_status
from grisaille.estimation.problem import Evaluation
from grisaille.estimation.uncertainty import root_of, without_undetermined
from grisaille.estimators.simulated_pem.error_sizes import error_sizes
from grisaille.estimators.simulated_pem.identifiability import collinear_notes
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion, MeanValue
from grisaille.estimators.simulated_pem.mean_search import (
    BestPoint,
    MeanSearch,
    MeanSearchEnd,
    free_unknowns,
    seen_unknowns,
)
from grisaille.estimators.simulated_pem.misfit import unexplained_errors
from grisaille.estimators.simulated_pem.reestimates import describe_reestimates, reestimate
from grisaille.estimators.simulated_pem.sandwich import Sandwich, ensemble_sandwich
from grisaille.estimators.simulated_pem.skipped_features import skipped_notes, without_dead
from grisaille.simulation.runner import Prediction

ZERO_LEVEL_COST = 1e-6
"""A level is reported as zero where that costs no more of the criterion than this."""


@dataclass
class SearchFinding:
    """The end of a search with its errors."""

    ending: MeanSearchEnd
    sandwich: Sandwich
    free: np.ndarray
    zero: np.ndarray
    """Levels that are zero."""
    unseen: np.ndarray
    """Unknowns that nothing moves with."""
    spread: np.ndarray | None
    """Covariance from the randomness of a stochastic search, in place of that of the ensemble."""
    notes: list[str] = field(default_factory=list)

    @property
    def covariance(self) -> np.ndarray:
        found = self.sandwich.covariance if self.spread is None else self.sandwich.data + self.spread
        return without_undetermined(found, self.unseen)


def without_spent_levels(criterion: MeanCriterion, ending: MeanSearchEnd) -> tuple[MeanSearchEnd, np.ndarray]:
    """Set levels whose logarithm would diverge to zero, where the criterion does not become worse."""
    zero = np.zeros(len(ending.value.theta), dtype=bool)
    value = ending.value
    for k, unknown in enumerate(criterion.problem.unknowns):
        if unknown.kind not in ("scale", "noise") or unknown.lower > 0 or not criterion.with_variance:
            continue
        theta = value.theta.copy()
        theta[k], before = 0.0, len(criterion.journal.failures)
        trial = criterion.at(theta)
        del criterion.journal.failures[before:]
        if trial.completed and trial.objective <= value.objective + ZERO_LEVEL_COST:
            value, zero[k] = trial, True
    return replace(ending, value=value), zero


def assess(search: MeanSearch, ending: MeanSearchEnd, zero: np.ndarray, spread: np.ndarray | None) -> SearchFinding:
    """Return standard errors of a minimum."""
    criterion = search.criterion
    free = free_unknowns(criterion, ending.value) & ~zero
    unseen = free & ~seen_unknowns(search, ending.value)
    sandwich = ensemble_sandwich(criterion, ending.value, free & ~unseen)
    return SearchFinding(ending, sandwich, free, zero, unseen, spread)


def conclude(search: MeanSearch, found: SearchFinding, seconds: float) -> Estimate:
    """Return the estimate with its diagnosis."""
    criterion, problem, value = search.criterion, search.criterion.problem, found.ending.value
    named = [u.name for u, z in zip(problem.unknowns, found.zero, strict=True) if z]
    notes = [f"zero: {name} is zero to all digits that the data have." for name in named]
    root = root_of(value.curvature)
    told = describe_determination(
        problem.unknowns, value.theta, root, found.covariance, found.free | found.zero, None, found.unseen
    )
    told = [n for n in told if not any(n.startswith(f"dead: no output depends on {name};") for name in named)]
    notes += without_dead(told, skipped_notes(criterion, value.theta))
    if not criterion.with_variance:
        flat = criterion.problem.cases[0].trial.flat
        notes += collinear_notes(flat, problem.unknowns, found.covariance, value, found.free)
    failed = sum(p.failed_realizations for p in value.predictions)
    if failed:
        notes.append(f"{failed} realizations became infinite at the estimate and were left out of the means.")
    journal = criterion.journal
    if journal.failures:
        notes.append(f"{len(journal.failures)} ensembles failed on the way; the last: {journal.failures[-1]}")
    ending = found.ending
    if ending.is_minimum:
        status = f"converged: {ending.reason}, {journal.evaluations} ensembles"
    else:
        status = (
            f"NOT converged after {journal.evaluations} ensembles: {ending.reason}. Try another guess or wider bounds"
        )
    caution = _caution(criterion)
    bias, covered = dict[str, float](), dict[str, float]()
    if criterion.with_variance and not caution:
        caution, bias, covered = _checked_by_records(criterion, value, found)
    ensemble = EnsembleResult(
        criterion.realizations, float(found.sandwich.shares.max(initial=0.0)),
        float(found.sandwich.correction_errors.max(initial=0.0)),
        error_sizes(criterion, value, found.free, found.covariance), unexplained_errors(criterion, value), bias,
        covered,
    )  # fmt: skip
    verdict = _Verdict(ending.is_minimum, status, (*notes, *found.notes), caution)
    return _estimate(criterion, value, found.covariance, found.free, verdict, ensemble, seconds)


def _checked_by_records(
    criterion: MeanCriterion, value: MeanValue, found: SearchFinding
) -> tuple[str, dict[str, float], dict[str, float]]:
    """Return what records simulated with the fit say about its intervals: a sentence where they fail, bias and
    coverage.
    """
    if found.zero.any():  # a level of zero has no logarithm to take steps in
        return "", {}, {}
    again = reestimate(criterion, value, found.free & ~found.unseen, found.covariance)
    if again is None:
        return "", {}, {}
    errors = np.sqrt(np.clip(np.diag(found.covariance), 0.0, None)) / criterion.problem.slopes(value.theta)
    names = [criterion.problem.unknowns[k].name for k in again.index]
    if not len(again.steps):
        return describe_reestimates(criterion, value, errors, again), {}, {}
    bias, covered = (dict(zip(names, map(float, of), strict=True)) for of in (again.bias, again.covered))
    return describe_reestimates(criterion, value, errors, again), bias, covered


def conclude_interrupted(reached: BestPoint) -> Estimate:
    """Return what an interrupted search reached: no errors, which would take another pass over the ensemble."""
    value, criterion, journal = reached.value, reached.criterion, reached.criterion.journal
    n = len(value.theta)
    covariance, free = np.diag(np.full(n, np.inf)), np.ones(n, dtype=bool)
    ensemble, status = EnsembleResult(criterion.realizations), interrupted_status(journal)
    return _estimate(criterion, value, covariance, free, _Verdict(False, status), ensemble, journal.seconds)


def _caution(criterion: MeanCriterion) -> str:
    """Caution that standard errors rest on differences where paths jump with their states, or at events."""
    trials = [case.trial for case in criterion.problem.cases]
    jumps = [jump.text for trial in trials for jump in trial.structure.jumps.of_states]
    events = [when.clauses[0].text for trial in trials for when in trial.flat.whens]
    several = ""
    if jumps:
        why = f"jumps: the equations jump with '{jumps[0]}', and paths that cross it have no derivative there"
    elif events:
        why = f"jumps: paths change at events, gr.when({events[0]}), whose number depends on the unknowns"
        several = (
            ", and speak of this minimum alone; there may be one for each number: gr.multistart(…) looks for others"
        )
    else:
        return ""
    said = "Derivatives of the mean were taken by differences: standard errors and intervals are approximate"
    return f"{why}. {said}{several}"


class _Verdict(NamedTuple):
    """What is said about the end of a search."""

    converged: bool
    status: str
    notes: tuple[str, ...] = ()
    caution: str = ""


def _estimate(
    criterion: MeanCriterion,
    value: MeanValue,
    covariance: np.ndarray,
    free: np.ndarray,
    verdict: _Verdict,
    ensemble: EnsembleResult,
    seconds: float,
) -> Estimate:
    problem, journal = criterion.problem, criterion.journal
    predictions = tuple(Prediction(p.mean, p.mean_slopes) for p in value.predictions)
    return Estimate(
        unknowns=problem.unknowns,
        theta=value.theta,
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=float("nan"),
        is_likelihood=False,
        count=problem.count,
        objective=value.objective,
        evaluation=Evaluation(value.theta, value.residuals, value.jacobian, value.errors, predictions),
        cases=problem.cases,
        converged=verdict.converged,
        status=verdict.status,
        notes=verdict.notes,
        caution=verdict.caution or _caution(criterion),
        trace=tuple(journal.trace),
        evaluations=journal.evaluations,
        failures=tuple(journal.failures),
        seconds=seconds,
        ensemble=ensemble,
        compared=criterion.comparable(value),
    )
