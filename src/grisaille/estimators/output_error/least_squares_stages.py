"""What follows the first minimum: finer steps, differences across jumps, other searches where none has ended well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.output_error.bounds import free_unknowns
from grisaille.estimators.output_error.difference_steps import has_jumps, steps_across_jumps
from grisaille.estimators.output_error.fallback_searches import (
    is_minimum,
    keep_if_stage_fails,
    try_other_searches,
    unconfirmed_steps,
)
from grisaille.estimators.output_error.integration_shift import integrate_finely, notes_of_pieces
from grisaille.estimators.output_error.kink_descent import lies_on_kinks, search_beside_kinks
from grisaille.estimators.output_error.least_squares_minimum import LeastSquaresMinimum, Squares
from grisaille.estimators.output_error.robust_losses import root_weights
from grisaille.estimators.output_error.solver import LeastSquaresSolver
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.search import Search

TOO_LONG = 3.0
"""Error estimate, in tolerances, from which on the frozen steps are shortened at the optimum; below, it may well be the
estimate that errs."""


@dataclass(frozen=True)
class LeastSquaresStages(LeastSquaresSolver):
    """A search with everything that is checked and sought again where it ends."""

    def run(self, problem: EstimationProblem, search: Squares) -> tuple[LeastSquaresMinimum, list[str]]:
        """Return the minimum, and notes on the search."""
        guess, is_plain = search.guess, not self.is_multiple and not self.is_robust
        found, moved = self.begin(problem, search)
        found, unconfirmed = self.on_finer_steps(found, search)
        if any(c.trial.structure.jumps.of_states or c.trial.flat.whens for c in problem.cases):
            found = keep_if_stage_fails(search, found, partial(self.across_jumps, found, search)).solved
            if is_plain and lies_on_kinks(found):
                found = keep_if_stage_fails(
                    search, found, partial(search_beside_kinks, search, found, free_unknowns, self.solve)
                ).solved
        if is_plain and self.method.optimizer == "trust-region" and search.left and not is_minimum(search, found):
            marquardt = LeastSquaresSolver(replace(self.method, optimizer="levenberg-marquardt", projection=False))
            found = try_other_searches(search, found, guess, marquardt.solve, free_unknowns)
        found, felt = self.integrated_finely(found, search)
        return found, [*moved, *unconfirmed, *felt]

    def search_from(self, problem: EstimationProblem, journal: SearchJournal) -> Squares:
        """Return a search that ends where it gains nothing, and where simulations have become far longer than at
        first.
        """
        search: Squares = Search(problem, journal, self.method.max_evaluations)
        if not self.is_multiple:
            search.may_stall, search.most_steps = self.is_robust or self.method.optimizer == "nelder-mead", 0
        return search

    def on_finer_steps(self, found: LeastSquaresMinimum, search: Squares) -> tuple[LeastSquaresMinimum, list[str]]:
        """Solve again where the steps chosen at the guess are too long at the optimum; what could not be confirmed."""
        for _ in range(4):
            if found.evaluation.discretisation <= TOO_LONG or not search.left:
                break
            kept = keep_if_stage_fails(search, found, partial(self.refined, found, search))
            found = kept.solved
            if kept.reason:
                return found, [unconfirmed_steps(found, self.method.rtol, kept.reason)]
        return found, []

    def integrated_finely(self, found: LeastSquaresMinimum, search: Squares) -> tuple[LeastSquaresMinimum, list[str]]:
        """Solve again with steps that are short enough for the noise; what errors of integration do where none are."""
        if self.is_multiple:
            return found, notes_of_pieces(
                found.problem.discretised_problem, found.evaluation, search.moving(found.evaluation)
            )
        loss = partial(root_weights, self.method.loss, self.method.loss_scale, found.problem.count)
        return integrate_finely(search, found, free_unknowns, self.solved_on, loss if self.is_robust else None)

    def solved_on(self, finer: EstimationProblem, found: LeastSquaresMinimum, search: Squares) -> LeastSquaresMinimum:
        search.restart(found.evaluation.theta, finer)
        return self.solve(finer, search)

    def refined(self, found: LeastSquaresMinimum, search: Squares) -> LeastSquaresMinimum:
        return self.solved_on(found.problem.refined(found.evaluation), found, search)

    def across_jumps(self, found: LeastSquaresMinimum, search: Squares) -> LeastSquaresMinimum:
        """Go on by differences where the derivatives of the pieces lack the share of a jump."""
        problem, evaluation = found.problem, found.evaluation
        if self.is_multiple or not evaluation.completed or not has_jumps(problem) or not search.left:
            return found
        steps = steps_across_jumps(problem, search.unknowns, evaluation, search.journal)
        if steps is None:
            return found
        differenced = problem.replace(differences=steps)
        search.restart(evaluation.theta, differenced)
        return self.solve(differenced, search)
