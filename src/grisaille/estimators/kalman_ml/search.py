"""The maximum of a filter's likelihood, with steps that are chosen again where a search ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.cases import Case
from grisaille.estimation.levels import Zeros, begin_near, find_zeros
from grisaille.estimation.likelihood import LikelihoodEvaluation, LikelihoodProblem
from grisaille.estimation.residuals.exact_data import explained_exactly, find_endless_fall
from grisaille.estimators.kalman_ml.posing import discretised
from grisaille.filtering.steps import FilterSteps
from grisaille.optimization import scoring
from grisaille.optimization.convergence import NEAR
from grisaille.optimization.search import Outcome, Search
from grisaille.trial.unknown import Unknown

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML

Likely = Search[LikelihoodEvaluation]
SAME = 1e-6
"""Log-likelihoods of the same steps, with matrix exponentials of other accuracy, that agree."""
HARDLY = 2e-3
"""The same of steps that were refined in other cells."""


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search ended, with the steps that it had there."""

    problem: LikelihoodProblem
    search: Likely
    outcome: Outcome[LikelihoodEvaluation]
    polished: scoring.Polished[LikelihoodEvaluation]
    free: np.ndarray
    zeros: Zeros

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

    def run(self, problem: LikelihoodProblem, search: Likely) -> tuple[Found, Sequence[Unknown]]:
        """Return where the search ended, and the unknowns with the guesses that it began at."""
        search.find_endless = partial(find_endless_fall, problem)
        guessed = search.unknowns
        if problem.open_levels:
            guessed = begin_near(search, problem.cases, problem.open_levels)
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

    def searched(self, problem: LikelihoodProblem, search: Likely, guessed: Sequence[Unknown]) -> Found:
        """Search from the guess, with steps that are chosen again where it ends."""
        before = None
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
            again = self.gone_on(problem, search, zeros, restart, outcome.evaluation.objective)
            if again is None:
                break
            search.journal.kept = problem = again
            search.restart(restart, problem)
        free = scoring.free_unknowns(search, _inside(search.guess, zeros.evaluation, zeros.zero)) & ~zeros.zero
        return Found(problem, search, outcome, _polish(search, zeros.evaluation, free, zeros.zero), free, zeros)

    def gone_on(
        self, problem: LikelihoodProblem, search: Likely, zeros: Zeros, restart: np.ndarray, objective: float
    ) -> LikelihoodProblem | None:
        """The problem to search again from a point, where there is a reason to, and a likelihood there.

        A level ended on a saddle, or the steps of nonlinear filters, chosen again so that the guess does not matter,
        are others. Steps with which the filter breaks down at the optimum are not taken.
        """
        if zeros.saddle.any():
            return problem if search.evaluate(restart, sensitive=False, quietly=True).completed else None
        if self.method.substeps != "auto":
            return None
        renewed = self.stepped_at(problem, restart)
        pairs = [
            (a, b)
            for old, new in zip(problem.cases, renewed.cases, strict=True)
            if isinstance(a := old.discretisation, FilterSteps) and isinstance(b := new.discretisation, FilterSteps)
        ]
        if all(a.key == b.key for a, b in pairs):
            return None
        found = renewed.evaluate(restart, sensitive=False)
        search.journal.count(found, quietly=True)
        same = HARDLY if any(b.finer for _, b in pairs) else SAME
        are_others = any(a.substeps != b.substeps for a, b in pairs)
        return renewed if found.completed and (are_others or abs(found.objective - objective) > same) else None

    def stepped_at(self, problem: LikelihoodProblem, theta: np.ndarray) -> LikelihoodProblem:
        """With steps that suit these values, where they are not given."""
        if self.method.substeps != "auto":
            return problem
        return problem.but(cases=tuple(_rediscretised(c, theta) for c in problem.cases))


def is_near(polished: scoring.Polished[LikelihoodEvaluation]) -> bool:
    """Tell whether a point is a maximum of the likelihood, near enough to count as converged."""
    return polished.is_minimum and polished.decrement < NEAR**2


def _with_all_steps(problem: LikelihoodProblem) -> LikelihoodProblem | None:
    """The same with the most steps of a cell in every cell; None where all have them."""
    steps = [c.discretisation for c in problem.cases]
    if not any(isinstance(s, FilterSteps) and s.finer for s in steps):
        return None
    return problem.but(
        cases=tuple(
            replace(c, discretisation=s.everywhere()) if isinstance(s, FilterSteps) else c
            for c, s in zip(problem.cases, steps, strict=True)
        )
    )


def _rediscretised(case: Case, theta: np.ndarray) -> Case:
    """The same, or the case as it is where no steps suit."""
    try:
        return discretised(case, theta)
    except EstimationError:
        return case


def _inside(guess: np.ndarray, evaluation: LikelihoodEvaluation, zero: np.ndarray) -> LikelihoodEvaluation:
    """The same with levels at zero where their logarithm exists, for tests of bounds only."""
    return replace(evaluation, theta=np.where(zero, guess, evaluation.theta))


def _polish(
    search: Likely, evaluation: LikelihoodEvaluation, free: np.ndarray, zero: np.ndarray
) -> scoring.Polished[LikelihoodEvaluation]:
    """Newton's method in the unknowns that are left; those at zero stay, on a linear scale."""
    search.unknowns = tuple(
        replace(u, logarithmic=False, logit=False) if z else u for u, z in zip(search.unknowns, zero, strict=True)
    )
    return scoring.polish(search, evaluation, free)
