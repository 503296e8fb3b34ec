"""Levels of noise: where a search for them begins, and which of them are zero.

**Begin.** A level without a guess starts from its declared value or, for measurement noise, from half the scatter
between neighbouring samples; all such levels of one kind are then moved together over orders of magnitude to where the
likelihood is largest (``scan_levels``), so that a search does not begin where one kind of noise explains everything.

**End.** log L depends on σ², so σ = 0 is always stationary and log σ runs away where the maximum is there. At σ = 0 the
one-sided derivative decides:

    ∂(−log L)/∂(σ²) ≥ 0:  the level is zero        < 0:  a saddle; the search goes on from a positive value

A parameter with the lower bound 0 in which the likelihood is even (``scale=sigma``) is such a level too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.model.lowering.lowering import evaluate
from grisaille.optimization import scoring
from grisaille.optimization.search import Search
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

ZERO_LEVEL_COST = 1e-6
"""A level is reported as zero where that costs no more log-likelihood than this."""
MIN_SLOPE_AT_ZERO = 1e-7
"""A slope at zero, by the level's typical size, below which the likelihood is even there."""
ONE_SIDED = 1.3528
"""Half the 90 % quantile of χ²(1): the drop of log L at the one-sided 95 % limit."""
MAX_LEVEL_FACTOR = 1e6
"""Times the guess of a level, at most, at which it is asked whether anything moves with it."""
STEPS_TO_LIMIT = 12
LIKELIHOOD_ROUNDING = 1e-11
"""Of the likelihood, relative: less is rounding."""
LEVEL_DECADES = (1e-4, 1e-3, 1e-2, 1e-1, 1e1, 1e2, 1e3, 1e4)
SUSPICIOUS_SCALE_FACTOR = 30.0
"""Times its declared value, from which on a scale is suspected to stand for parameters that are wrong."""
NEAR_GAIN = 1e-3
"""Gain, relative to the criterion, at which parameters are near enough for the levels to be looked for again."""
LEVEL_FACTORS = (1.0, 0.3, 0.1)
"""What levels are multiplied with to find the order of magnitude."""


def level_guess(
    structure: Structure, data: Sequence[Experiment], unknown: Unknown, unknowns: Sequence[Unknown]
) -> Unknown:
    """Return a level without a guess with its declared value, or with half the scatter between neighbouring samples."""
    if unknown.kind not in ("scale", "noise") or np.isfinite(unknown.guess):
        return unknown
    flat = structure.model
    formula = flat.disturbances[unknown.target].scale if unknown.kind == "scale" else flat.outputs[unknown.target].noise
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and u.experiment is None}
    values = evaluate_parameters(flat, given)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    if formula is None:
        value = 1.0 if unknown.kind == "scale" else _scatter(data, unknown.target)
    else:
        try:
            value = evaluate([formula], known)[0]
        except KeyError:
            value = _scatter(data, unknown.target) if unknown.kind == "noise" else 1.0
    if value == 0:
        value = 1.0 if unknown.kind == "scale" else _scatter(data, unknown.target)
    if not (np.isfinite(value) and value > 0):
        raise EstimationError(
            f"'{unknown.name}' starts from {value:g}, but its logarithm is estimated: guess={{'{unknown.name}': …}}."
        )
    return replace(unknown, guess=float(np.clip(value, unknown.lower, unknown.upper)))


def _scatter(data: Sequence[Experiment], output: str) -> float:
    steps = [np.diff(e.measurements(output).values) for e in data if output in e.outputs]
    every = np.concatenate(steps) if steps else np.zeros(0)
    size = float(np.std(every)) if every.size else 0.0
    return 0.5 * size if size > 0 else 1.0


def scan_levels(
    search: Search[LikelihoodEvaluation], cases: Sequence[ExperimentTerm], open_levels: Sequence[int]
) -> np.ndarray:
    """Return θ with the levels that had no guess set, kind by kind, to the best order of magnitude.

    Measurement noise is tried from what neighbouring samples allow at most, down to a tenth of it: further down its
    likelihood is flat, and a search would take it for zero.
    """
    theta = search.guess
    lower, upper = search.bounds
    mine = {kind: [k for k in open_levels if search.unknowns[k].kind == kind] for kind in ("scale", "noise")}
    most = theta.copy()
    for k in mine["noise"]:
        most[k] = _scatter([c.experiment for c in cases], search.unknowns[k].target)
    best = search.evaluate(theta, sensitive=False, quietly=True).objective
    for kind, start, factors in (
        ("noise", most, LEVEL_FACTORS),
        ("scale", None, LEVEL_DECADES),
        ("noise", most, LEVEL_FACTORS),
    ):
        tried = [(best, theta)]
        for factor in factors if mine[kind] else ():
            trial = theta.copy()
            trial[mine[kind]] = np.clip(
                (theta if start is None else start)[mine[kind]] * factor, lower[mine[kind]], upper[mine[kind]]
            )
            tried.append((search.evaluate(trial, sensitive=False, quietly=True).objective, trial))
        best, theta = min(tried, key=lambda found: found[0])
    return theta


def search_near_levels(
    search: Search[LikelihoodEvaluation], cases: Sequence[ExperimentTerm], open_levels: Sequence[int]
) -> tuple[Unknown, ...]:
    """Let a search begin where its open levels, and what they hide, are of the right order.

    A scale that grows beyond ``SUSPICIOUS_SCALE_FACTOR`` makes up for parameters that are far from the data, and a
    search from there may
    end where noise explains everything. Then the others are brought nearer first, under the levels as they were
    declared, with which the filter leans on the model; levels are looked for again beside what was found. Where the
    filter has no derivatives there, the search begins as declared. Gives the unknowns with the levels that were found
    first.
    """
    declared = search.guess
    search.go_on_from(scan_levels(search, cases, open_levels))
    guessed = search.unknowns
    scales = [k for k in open_levels if search.unknowns[k].kind == "scale"]
    others = [k for k in range(len(search.unknowns)) if k not in open_levels]
    if others and max((search.guess[k] / declared[k] for k in scales), default=0.0) > SUSPICIOUS_SCALE_FACTOR:
        search.restart(declared)
        near = scoring.approach(search, open_levels, tolerance=NEAR_GAIN)
        search.restart(near.theta)
        search.restart(scan_levels(search, cases, open_levels))
        if not search.at(search.start).completed:
            search.restart(declared)
            return search.unknowns
    return guessed


@dataclass(frozen=True, eq=False)
class LevelsAtZero:
    """A point with levels put to zero."""

    evaluation: LikelihoodEvaluation
    zero: np.ndarray
    """Which unknowns."""
    saddle: np.ndarray
    """Levels that ended near zero although the likelihood rises from there."""
    rates: np.ndarray
    """∂(−log L)/∂(σ²) at zero; NaN elsewhere."""
    limits: np.ndarray
    """Where log L has fallen by ``ONE_SIDED``, the other unknowns held; NaN elsewhere, and where it does not."""

    def sentences(self, unknowns: Sequence[Unknown]) -> list[str]:
        notes = []
        for u, is_zero, limit in zip(unknowns, self.zero, self.limits, strict=True):
            if is_zero:
                said = f"; one-sided 95 % limit about {limit:.3g} with the others held" if np.isfinite(limit) else ""
                notes.append(f"zero: {u.name} is zero to all digits that the data have{said}.")
        return notes


def find_zeros(
    search: Search[LikelihoodEvaluation], evaluation: LikelihoodEvaluation, guessed: Sequence[Unknown]
) -> LevelsAtZero:
    """Return levels that are zero, each tested by the one-sided derivative there.

    guessed : the unknowns as the first search had them: one that went on from here is no measure of what is small
    """
    n = len(search.unknowns)
    zero, saddle, rates = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.full(n, np.nan)
    for k, unknown in enumerate(guessed):
        if unknown.lower != 0 or unknown.kind == "start":
            continue
        theta = evaluation.theta.copy()
        theta[k] = 0.0
        trial = search.evaluate(theta, quietly=True)
        if not trial.completed or trial.objective > evaluation.objective + ZERO_LEVEL_COST:
            continue
        if abs(trial.slope[k]) * unknown.size > MIN_SLOPE_AT_ZERO * (1 + abs(trial.objective)):
            continue  # not a level: an ordinary bound
        rates[k] = rate_at_zero(search, trial, k, max(float(evaluation.theta[k]), 1e-4 * unknown.size))
        if _is_dead(search, trial, k, float(rates[k]), unknown):
            rates[k] = np.nan
        elif rates[k] < 0 and rates[k] * unknown.size**2 < -1e-6:
            saddle[k] = True
        else:
            evaluation, zero[k] = trial, True
    limits = [
        limit_above_zero(search, evaluation, k, float(rates[k])) if zero[k] and rates[k] > 0 else np.nan
        for k in range(n)
    ]
    return LevelsAtZero(evaluation, zero, saddle, rates, np.array(limits))


def _is_dead(
    search: Search[LikelihoodEvaluation], at: LikelihoodEvaluation, k: int, rate: float, unknown: Unknown
) -> bool:
    """Return whether the likelihood does not depend on an unknown at all: it is then arbitrary, not zero.

    Asked at its guess and, since that may be next to nothing, where its derivative at zero says that it is seen.
    """
    rounding = LIKELIHOOD_ROUNDING * (1 + abs(at.objective))
    if abs(rate) * unknown.size**2 > rounding:
        return False
    guess = max(unknown.guess, unknown.size)
    tried = [guess, min(float(np.sqrt(ONE_SIDED / rate)), MAX_LEVEL_FACTOR * guess)] if rate > 0 else [guess]
    found = []
    for value in tried:
        theta = at.theta.copy()
        theta[k] = min(value, unknown.upper)
        found.append(search.evaluate(theta, sensitive=False, quietly=True))
    moved = [e.completed and abs(e.objective - at.objective) > rounding for e in found]
    return found[0].completed and not any(moved)


def limit_above_zero(search: Search[LikelihoodEvaluation], at: LikelihoodEvaluation, k: int, rate: float) -> float:
    """Return σ at which log L has fallen by ``ONE_SIDED``: the derivative at zero, then what evaluations show."""
    value = float(np.sqrt(ONE_SIDED / rate))
    for _ in range(STEPS_TO_LIMIT):
        theta = at.theta.copy()
        theta[k] = value
        found = search.evaluate(theta, sensitive=False, quietly=True)
        drop = found.objective - at.objective
        if not found.completed or not drop > 0:
            return np.nan
        if abs(drop / ONE_SIDED - 1) < 0.01:
            break
        value *= float(np.sqrt(np.clip(ONE_SIDED / drop, 0.1, 10.0)))
    return value


def rate_at_zero(search: Search[LikelihoodEvaluation], at: LikelihoodEvaluation, k: int, small: float) -> float:
    """Return ∂(−log L)/∂(σ²) at σ = 0, from the slope at a small σ."""
    theta = at.theta.copy()
    theta[k] = small
    found = search.evaluate(theta, quietly=True)
    return float(found.slope[k] / (2 * small)) if found.completed else np.nan
