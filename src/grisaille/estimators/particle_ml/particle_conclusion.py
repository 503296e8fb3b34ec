"""From the maximum of an estimated likelihood to an estimate with its standard errors and its Monte Carlo errors."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.determination.descriptions import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.uncertainty import root_of
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem, RepeatedLikelihood
from grisaille.estimators.particle_ml.particle_search import ParticleOptimum, SurfaceSearch
from grisaille.optimization.journal import SearchJournal

if TYPE_CHECKING:
    from grisaille.estimators.particle_ml.particle_ml import ParticleML
    from grisaille.estimators.particle_ml.starting_points import StartingPoint

MAX_STEP_CHOICES = 3
"""Times that steps are chosen and a maximum is sought with them."""
MAX_SPREAD = 2.0
"""Standard deviation of one estimate of log L from which on more particles are advised."""


def conclude(
    method: ParticleML, problem: ParticleProblem, start: StartingPoint, journal: SearchJournal, begin: float
) -> Estimate:
    """Return the estimate that a search from a point ends at."""
    problem, search, found = _searched(method, problem, start, journal)
    theta = search.outer(found.xi)
    slopes = search.slopes(theta)
    repeated = problem.repeated(theta, method.repetitions, first=search.used + 1000)
    journal.add(method.repetitions)
    covariance = (found.root @ found.root.T) * np.outer(slopes, slopes)
    low, high = search.bounds
    free = (theta > low) & (theta < high)
    covariance[~free], covariance[:, ~free] = 0.0, 0.0
    evaluation = problem.evaluate(theta, sensitive=False)
    if not evaluation.completed:
        raise EstimationError(f"The likelihood cannot be estimated where the search ended: {evaluation.failure}")
    information = np.zeros_like(covariance)
    inside = np.ix_(free, free)
    information[inside] = np.linalg.pinv(covariance[inside])
    objective = -repeated.log_likelihood + problem.prior(theta).value
    evaluation = replace(
        evaluation, slope=np.zeros(len(theta)), curvature=information, log_likelihood=repeated.log_likelihood,
        value=objective,
    )  # fmt: skip
    shares = np.sqrt(np.maximum(np.diag(found.monte_carlo * np.outer(slopes, slopes)), 0.0))
    notes = [
        *describe_determination(problem.unknowns, theta, root_of(information), covariance, free),
        *_monte_carlo_notes(method, problem, repeated, shares, covariance, start),
    ]
    return Estimate(
        unknowns=problem.unknowns,
        theta=theta,
        covariance=covariance,
        free=free,
        noise={},
        log_likelihood=repeated.log_likelihood,
        is_likelihood=True,
        count=problem.count,
        objective=objective,
        evaluation=evaluation,
        cases=problem.discretised_problem.cases,
        converged=found.is_settled,
        status=_status(found, journal),
        notes=tuple(notes),
        trace=tuple(journal.trace),
        evaluations=journal.evaluations,
        failures=tuple(journal.failures),
        seconds=time.perf_counter() - begin,
        details={"log_likelihood_error": repeated.error, "log_likelihood_spread": repeated.spread},
    )


def _searched(
    method: ParticleML, problem: ParticleProblem, start: StartingPoint, journal: SearchJournal
) -> tuple[ParticleProblem, SurfaceSearch, ParticleOptimum]:
    """Return the end of a search, with steps and proposals that are chosen again where it ends."""
    theta, root = start.theta, start.root
    for _ in range(MAX_STEP_CHOICES):
        search = SurfaceSearch(problem, journal, method.max_evaluations)
        xi = search.inner(theta)
        noise = problem.repeated(theta, 6).spread
        journal.add(6)
        begin = search.probed_root(xi) if root is None else root
        found = search.run(xi, begin, noise if np.isfinite(noise) else 1.0)
        theta, root = search.outer(found.xi), found.root
        again = problem.rediscretised(theta) if method.substeps == "auto" else None
        if again is None or search.left <= 0:
            break
        problem = again
    return problem, search, found


def _status(found: ParticleOptimum, journal: SearchJournal) -> str:
    if found.is_settled:
        return f"converged: {found.reason}, {found.rounds} rounds, {journal.evaluations} evaluations"
    return f"NOT converged: {found.reason or 'the maximum still moves'}, {journal.evaluations} evaluations"


def _monte_carlo_notes(
    method: ParticleML, problem: ParticleProblem, repeated: RepeatedLikelihood, shares: np.ndarray,
    covariance: np.ndarray, start: StartingPoint,
) -> list[str]:  # fmt: skip
    """Return what random numbers leave open."""
    steps = "; ".join(dict.fromkeys(str(c.discretisation) for c in problem.discretised_problem.cases))
    notes = [
        f"Monte Carlo: log L = {repeated.log_likelihood:.2f} ± {repeated.error:.2g} from "
        f"{len(repeated.values)} estimates, one of which has a standard deviation of {repeated.spread:.2g}; {steps}; "
        f"begun at {start.source}."
    ]
    with np.errstate(all="ignore"):
        relative = shares / np.sqrt(np.diag(covariance))
    seen = [k for k in range(len(shares)) if np.isfinite(relative[k])]
    if seen:
        k = max(seen, key=lambda k: relative[k])
        notes.append(
            f"Monte Carlo: random numbers move {problem.unknowns[k].name} by {relative[k]:.2g} of its standard error, "
            f"and the others by less." if len(seen) > 1 else
            f"Monte Carlo: random numbers move {problem.unknowns[k].name} by {relative[k]:.2g} of its standard error."
        )  # fmt: skip
    if repeated.spread > MAX_SPREAD:
        more = int(method.particles * (repeated.spread / MAX_SPREAD) ** 2)
        notes.append(
            f"Monte Carlo: estimates of log L scatter by {repeated.spread:.2g}; with {more} particles they would by "
            f"{MAX_SPREAD:g}."
        )
    return notes
