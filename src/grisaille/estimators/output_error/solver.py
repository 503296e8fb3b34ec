"""The minimum of weighted squares, or of a robust loss, with levels of noise that settle along with the unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error import multiple_shooting, robust_losses
from grisaille.estimators.output_error.bounds import free_unknowns
from grisaille.estimators.output_error.coincident_switches import move_guess_apart
from grisaille.estimators.output_error.least_squares_minimum import Ending, LeastSquaresMinimum, Squares
from grisaille.estimators.output_error.level_steps import newton_levels
from grisaille.estimators.output_error.level_updates import levels_of, refuse_followed, rescale_levels
from grisaille.estimators.output_error.variable_projection import ProjectedSearch, linear_unknowns
from grisaille.optimization import damped_newton, nelder_mead, trust_region
from grisaille.optimization.convergence import OFFSET_TOLERANCE, ROUNDING_OFFSET, polish, relative_offset
from grisaille.optimization.search import LIMIT_STATUS

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

NOISE_ROUNDS, STAY = 100, 1e-6
"""Of levels and unknowns in turn, at most, and how much levels may still move then."""
STALL_GAIN = 1e-3
"""Of the log-likelihood, by another round of levels, where no search ends in a minimum with either."""
RAN_AWAY_STATUS = 1e5
"""Growth of an estimate over its first value from which on a projected search is tried again without projection."""


@dataclass(frozen=True)
class LeastSquaresSolver:
    """The search that the options of a method describe."""

    method: OutputError

    @property
    def is_robust(self) -> bool:
        """Return whether large residuals count less than their squares."""
        return self.method.loss != "linear"

    @property
    def is_multiple(self) -> bool:
        """Return whether records are cut into pieces."""
        return self.method.shooting == "multiple"

    def begin(self, problem: EstimationProblem, search: Squares) -> tuple[LeastSquaresMinimum, list[str]]:
        """Return the first minimum; leave a guess at which the order of events matters, and note it."""
        known = len(search.journal.failures)
        try:
            return self.solve(problem, search), []
        except EstimationError:
            moved = move_guess_apart(search)
            if not moved:
                raise
        del search.journal.failures[known:]
        return self.solve(problem, search), moved

    def solve(self, problem: EstimationProblem, search: Squares) -> LeastSquaresMinimum:
        """Minimise, updating noise levels until they stay."""
        if self.is_robust and problem.sigma:
            problem = problem.replace(sigma=levels_of(problem, search.first(), robust=True))
            search.restart(search.guess, problem)
        found = self.minimized(problem, search)
        if not found.problem.sigma and not found.problem.moving:
            search.criterion = search.journal.kept = found.problem
            return found
        return self.with_levels(found, search)

    def with_levels(self, found: LeastSquaresMinimum, search: Squares) -> LeastSquaresMinimum:
        """Return levels and unknowns in turn until both stay, from a minimum with the first levels on."""
        problem, outcome, evaluation, robust = found.problem, found.outcome, found.evaluation, self.is_robust
        has_priors = len(evaluation.residuals) > problem.count
        alone = len(problem.outputs) == 1 and not has_priors and not robust
        for _ in range(NOISE_ROUNDS):
            refuse_followed(problem, evaluation)
            sought, before, levels = problem, problem.sigma, levels_of(problem, evaluation, robust)
            moved = max([0.0, *(abs(levels[n] / before[n] - 1) for n in before)])
            problem, bent = problem.refrozen(evaluation.predictions, evaluation.theta)
            search.criterion = search.journal.kept = problem = problem.replace(sigma=levels)
            if (alone and before) or max(moved, bent) < (1e-6 if robust else 1e-10):
                evaluation = rescale_levels(problem, evaluation, before)
                break
            if not search.left:
                return LeastSquaresMinimum(
                    problem, replace(outcome, stopped_well=False, reason=LIMIT_STATUS, settled=False), evaluation
                )
            again = self.by_newton_levels(LeastSquaresMinimum(sought, outcome, evaluation), levels, search)
            if again is None:
                search.restart(evaluation.theta, problem)
                again = self.minimized(problem, search)
                is_stuck = not robust and relative_offset(search, again.evaluation) >= ROUNDING_OFFSET
                if is_stuck and before and found.whole - again.whole < STALL_GAIN:
                    return again  # no minimum with these levels: others will not help
            problem, outcome, evaluation = again.problem, again.outcome, again.evaluation
            found = again
        else:
            if max(moved, bent) > STAY:
                outcome = replace(outcome, settled=False, reason=f"{NOISE_ROUNDS} rounds were made")
        return LeastSquaresMinimum(problem, outcome, evaluation)

    def by_newton_levels(
        self, found: LeastSquaresMinimum, levels: Mapping[str, float], search: Squares
    ) -> LeastSquaresMinimum | None:
        """Return the minimum with the levels that Newton's step leads to; None where Gauss–Newton steps do not reach
        it.
        """
        if self.is_robust or self.is_multiple or found.problem.moving or not found.problem.sigma:
            return None
        at = found.evaluation
        problem = found.problem.replace(sigma=newton_levels(found.problem, at, levels, free_unknowns(search, at)))
        search.restart(at.theta, problem)
        near = polish(search, rescale_levels(problem, at, found.problem.sigma))
        if relative_offset(search, near) >= OFFSET_TOLERANCE:
            return None
        search.best, search.journal.kept = near, problem
        return LeastSquaresMinimum(problem, replace(found.outcome, evaluation=near), near)

    def minimized(self, problem: EstimationProblem, search: Squares) -> LeastSquaresMinimum:
        problem, outcome = self.minimize(problem, search)
        return LeastSquaresMinimum(problem, outcome, self.polished(search, outcome))

    def minimize(self, problem: EstimationProblem, search: Squares) -> tuple[EstimationProblem, Ending]:
        """Return the minimum with these levels, and the problem with what was frozen on the way."""
        if self.is_multiple:
            shooting = multiple_shooting.MultipleShooting(problem, self.method.pieces, search.journal)
            joined = multiple_shooting.solve(shooting, search, self.method.tolerance)
            search.best = joined.evaluation
            return shooting.problem, joined
        is_projected = self.method.projection and not self.is_robust
        linear = linear_unknowns(problem) if is_projected else np.zeros(0, dtype=bool)
        if linear.any() and not linear.all() and self.method.optimizer != "nelder-mead":
            apart = ProjectedSearch(
                problem, search.journal, search.most, search.most_steps, search.may_stall, linear=linear
            )
            apart.unknowns, first = search.unknowns, search.guess
            projected = self.optimize(apart, problem.count)
            search.unknowns, search.most_steps = apart.unknowns, apart.most_steps
            is_minimum = relative_offset(search, polish(search, projected.evaluation)) < OFFSET_TOLERANCE
            if is_minimum and not _ran_away(projected, first, search.unknowns):
                return problem, projected
            plain = self.optimize(search, problem.count)
            return problem, min(projected, plain, key=lambda o: o.evaluation.objective)
        return problem, self.optimize(search, problem.count)

    def optimize(self, search: Squares, count: int) -> Ending:
        if self.method.optimizer == "nelder-mead":
            return nelder_mead.minimize(search, tolerance=self.method.tolerance)
        if self.method.optimizer == "trust-region":
            has_priors = self.is_robust and len(search.first().residuals) > count
            loss = robust_losses.of_data(self.method.loss, count) if has_priors else self.method.loss
            if self.is_robust:
                return trust_region.minimize(search, self.method.tolerance, loss, self.method.loss_scale)
            found = trust_region.minimize(search, self.method.tolerance, may_crawl=False)
            if found.reason != trust_region.SLOW_STATUS:
                return found
            # in a narrow valley that bends, damping gets on where a region with the unknowns' own axes does not
            search.restart(found.evaluation.theta)
            other = damped_newton.minimize(search, damped_newton.MarquardtDamping(), tolerance=self.method.tolerance)
            return other if other.evaluation.objective <= found.evaluation.objective else found
        damping = (
            damped_newton.BacktrackingDamping()
            if self.method.optimizer == "gauss-newton"
            else damped_newton.MarquardtDamping()
        )
        return damped_newton.minimize(search, damping, tolerance=self.method.tolerance)

    def polished(self, search: Squares, outcome: Ending) -> Evaluation:
        is_plain = not self.is_robust and not self.is_multiple
        return polish(search, outcome.evaluation) if is_plain else outcome.evaluation


def _ran_away(outcome: Ending, first: np.ndarray, unknowns: Sequence[Unknown]) -> bool:
    """Return whether an estimate left the magnitude of where it began: a valley that falls towards infinity."""
    sizes = [u.size for u in unknowns]
    return bool((np.abs(outcome.evaluation.theta) > RAN_AWAY_STATUS * np.maximum(np.abs(first), sizes)).any())
