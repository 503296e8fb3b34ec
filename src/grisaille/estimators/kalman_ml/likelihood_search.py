"""The maximum of a filter's likelihood, with steps that are chosen again where a search ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.noise_levels import LevelsAtZero, find_zeros, search_near_levels
from grisaille.estimation.residuals.exact_data import explained_exactly, find_unbounded_likelihood
from grisaille.estimators.kalman_ml.likelihood_posing import discretised
from grisaille.filtering.filter_steps import steps_of
from grisaille.optimization import scoring
from grisaille.optimization.convergence import ROUNDING_OFFSET
from grisaille.optimization.search import Search, SearchOutcome

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML

Likely = Search[LikelihoodEvaluation]
SETTLED_MOVE = 1e-3
"""Standard errors by which a search may move before steps between samples are chosen again."""
LOG_LIKELIHOOD_TOLERANCE = 1e-6
"""Log-likelihoods of the same steps, with matrix exponentials of other accuracy, that agree."""
REFINED_STEP_TOLERANCE = 2e-3
"""The same of steps that were refined in other cells."""


@dataclass(frozen=True, eq=False)
class LikelihoodOptimum:
    """The end of a search, with the steps that it had there."""

    problem: LikelihoodProblem
    search: Likely
    outcome: SearchOutcome[LikelihoodEvaluation]
    polished: scoring.PolishedMinimum[LikelihoodEvaluation]
    free: np.ndarray
    zeros: LevelsAtZero

    @property
    def is_converged(self) -> bool:
        return is_near(self.polished)

    @property
    def objective(self) -> float:
        return self.polished.evaluation.objective


@dataclass(frozen=True)
class LikelihoodSearch:
    """The search that the options of a method describe."""

    method: KalmanML

    def run(self, problem: LikelihoodProblem, search: Likely) -> tuple[LikelihoodOptimum, Sequence[Unknown]]:
        """Return where the search ended, and the unknowns with the guesses that it began at."""
        search.find_endless = partial(find_unbounded_likelihood, problem)
        guessed = search.unknowns
        if problem.open_levels:
            guessed = search_near_levels(search, problem.cases, problem.open_levels)
            if any(a.guess != b.guess for a, b in zip(guessed, search.unknowns, strict=True)):
                search.journal.kept = problem = self.stepped_at(problem, search.guess)
                search.restart(search.guess, problem)
        start = search.guess
        found = self.searched(problem, search, guessed)
        full = _with_all_steps(problem)
        is_exact = bool(found.search.endless or explained_exactly(found.problem, found.polished.evaluation))
        if not found.is_converged and full is not None and search.left and not is_exact:
            # steps that were taken away where the search began may be missed on its way: once more with all of them
            again = Search(full, search.journal, search.most)
            again.go_on_from(start)
            if again.evaluate(start, quietly=True).completed:
                other = self.searched(full, again, guessed)
                found = other if other.is_converged or other.objective < found.objective else found
        search.journal.kept = found.problem
        return found, guessed

    def searched(self, problem: LikelihoodProblem, search: Likely, guessed: Sequence[Unknown]) -> LikelihoodOptimum:
        """Search from the guess, with steps that are chosen again where it ends."""
        before, stepped_at = None, search.guess
        for rounds_left in (3, 2, 1, 0):
            try:
                outcome = scoring.minimize(search, tolerance=self.method.tolerance)
                zeros = find_zeros(search, outcome.evaluation, guessed)
            except (GrisailleError, np.linalg.LinAlgError):
                if before is None:
                    raise
                problem, outcome, zeros = before  # on other steps there is no maximum
                search.journal.kept = problem
                search.restart(outcome.evaluation.theta, problem)
                break
            before = problem, outcome, zeros
            if search.endless or explained_exactly(problem, outcome.evaluation):
                break  # finer steps would only let levels become smaller
            restart = np.where(zeros.saddle, 0.1 * search.guess, outcome.evaluation.theta)
            if not rounds_left or not search.left:
                break
            if not zeros.saddle.any() and is_beside(outcome.evaluation, stepped_at):
                break  # steps that were chosen there serve here
            again = self.gone_on(problem, search, zeros, restart, outcome.evaluation.objective)
            if again is None:
                break
            stepped_at = restart
            search.journal.kept = problem = again
            search.restart(restart, problem)
        free = scoring.free_unknowns(search, _inside(search.guess, zeros.evaluation, zeros.zero)) & ~zeros.zero
        return LikelihoodOptimum(
            problem, search, outcome, _polish(search, zeros.evaluation, free, zeros.zero), free, zeros
        )

    def gone_on(
        self, problem: LikelihoodProblem, search: Likely, zeros: LevelsAtZero, restart: np.ndarray, objective: float
    ) -> LikelihoodProblem | None:
        """Return the problem from which to search again at a point, where there is a reason to and a likelihood there.

        A level ended on a saddle, or the steps of nonlinear filters, chosen again so that the guess does not matter,
        are others. Steps with which the filter breaks down at the optimum are not taken.
        """
        if zeros.saddle.any():
            return problem if search.evaluate(restart, sensitive=False, quietly=True).completed else None
        if self.method.substeps != "auto":
            return None
        renewed = self.stepped_at(problem, restart)
        pairs = [
            (steps_of(old.discretisation), steps_of(new.discretisation))
            for old, new in zip(problem.cases, renewed.cases, strict=True)
        ]
        if all(a.key == b.key for a, b in pairs):
            return None
        found = renewed.evaluate(restart, sensitive=False)
        search.journal.count(found, quietly=True)
        same = REFINED_STEP_TOLERANCE if any(b.is_uneven for _, b in pairs) else LOG_LIKELIHOOD_TOLERANCE
        are_others = any(a.common != b.common for a, b in pairs)
        return renewed if found.completed and (are_others or abs(found.objective - objective) > same) else None

    def stepped_at(self, problem: LikelihoodProblem, theta: np.ndarray) -> LikelihoodProblem:
        """Return the problem with steps that suit these values, where steps are not given."""
        if self.method.substeps != "auto":
            return problem
        return problem.replace(cases=tuple(_rediscretised(c, theta) for c in problem.cases))


def is_beside(evaluation: LikelihoodEvaluation, theta: np.ndarray) -> bool:
    """Tell whether a point is so close to other values that steps chosen there are those chosen here."""
    away = evaluation.theta - theta
    return bool(away @ evaluation.curvature @ away < SETTLED_MOVE**2)


def is_near(polished: scoring.PolishedMinimum[LikelihoodEvaluation]) -> bool:
    """Tell whether a point is a maximum of the likelihood, near enough to count as converged."""
    return polished.is_minimum and polished.decrement < ROUNDING_OFFSET**2


def _with_all_steps(problem: LikelihoodProblem) -> LikelihoodProblem | None:
    """Return the same with the most steps of a cell in every cell; None where all have them."""
    steps = [steps_of(c.discretisation) for c in problem.cases]
    if not any(s.is_uneven for s in steps):
        return None
    cases = zip(problem.cases, steps, strict=True)
    return problem.replace(
        cases=tuple(replace(c, discretisation=c.discretisation and s.everywhere()) for c, s in cases)
    )


def _rediscretised(case: ExperimentTerm, theta: np.ndarray) -> ExperimentTerm:
    """Return the same, or the case as it is where no steps suit."""
    try:
        return discretised(case, theta)
    except EstimationError:
        return case


def _inside(guess: np.ndarray, evaluation: LikelihoodEvaluation, zero: np.ndarray) -> LikelihoodEvaluation:
    """Return the same with levels at zero where their logarithm exists, for tests of bounds only."""
    return replace(evaluation, theta=np.where(zero, guess, evaluation.theta))


def _polish(
    search: Likely, evaluation: LikelihoodEvaluation, free: np.ndarray, zero: np.ndarray
) -> scoring.PolishedMinimum[LikelihoodEvaluation]:
    """Apply Newton's method in the remaining unknowns; those at zero stay, on a linear scale."""
    search.unknowns = tuple(
        replace(u, logarithmic=False, logit=False) if z else u for u, z in zip(search.unknowns, zero, strict=True)
    )
    return scoring.polish(search, evaluation, free)
