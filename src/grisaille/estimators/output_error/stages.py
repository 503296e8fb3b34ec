"""What follows the first minimum: finer steps, differences across jumps, other searches where none has ended well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from grisaille.estimation.problem import Problem
from grisaille.estimators.output_error.beside import go_beside, has_edges
from grisaille.estimators.output_error.bounds import free_unknowns
from grisaille.estimators.output_error.differences import has_jumps, steps_across_jumps
from grisaille.estimators.output_error.integration_error import integrate_finely, notes_of_pieces
from grisaille.estimators.output_error.robust_losses import counted
from grisaille.estimators.output_error.solved import Solved, Squares
from grisaille.estimators.output_error.solver import Solver
from grisaille.estimators.output_error.unfinished import is_minimum, keeping, try_other_searches, unconfirmed_steps
from grisaille.optimization.journal import Journal
from grisaille.optimization.search import Search

TOO_LONG = 3.0
"""Error estimate, in tolerances, from which on the frozen steps are shortened at the optimum; below, it may well be the
estimate that errs."""


@dataclass(frozen=True)
class Stages(Solver):
    """A search with everything that is checked and sought again where it ends."""

    def run(self, problem: Problem, search: Squares) -> tuple[Solved, list[str]]:
        """Return the minimum, and what is to be said about the way to it."""
        guess, is_plain = search.guess, not self.is_multiple and not self.is_robust
        found, moved = self.begin(problem, search)
        found, unconfirmed = self.on_finer_steps(found, search)
        if any(c.trial.structure.jumps.of_states or c.trial.flat.whens for c in problem.cases):
            found = keeping(search, found, partial(self.across_jumps, found, search)).solved
            if is_plain and has_edges(found):
                found = keeping(search, found, partial(go_beside, search, found, free_unknowns, self.solve)).solved
        if is_plain and self.method.optimizer == "trust-region" and search.left and not is_minimum(search, found):
            marquardt = Solver(replace(self.method, optimizer="levenberg-marquardt", projection=False))
            found = try_other_searches(search, found, guess, marquardt.solve, free_unknowns)
        found, felt = self.integrated_finely(found, search)
        return found, [*moved, *unconfirmed, *felt]

    def search_from(self, problem: Problem, journal: Journal) -> Squares:
        """A search that ends where it gains nothing, and where simulations have become far longer than at first."""
        search: Squares = Search(problem, journal, self.method.max_evaluations)
        if not self.is_multiple:
            search.may_stall, search.most_steps = self.is_robust or self.method.optimizer == "nelder-mead", 0
        return search

    def on_finer_steps(self, found: Solved, search: Squares) -> tuple[Solved, list[str]]:
        """Solve again where the steps chosen at the guess are too long at the optimum; what could not be confirmed."""
        for _ in range(4):
            if found.evaluation.discretisation <= TOO_LONG or not search.left:
                break
            kept = keeping(search, found, partial(self.refined, found, search))
            found = kept.solved
            if kept.reason:
                return found, [unconfirmed_steps(found, self.method.rtol, kept.reason)]
        return found, []

    def integrated_finely(self, found: Solved, search: Squares) -> tuple[Solved, list[str]]:
        """Solve again with steps that are short enough for the noise; what errors of integration do where none are."""
        if self.is_multiple:
            return found, notes_of_pieces(found.problem.begun, found.evaluation, search.moving(found.evaluation))
        loss = partial(counted, self.method.loss, self.method.loss_scale, found.problem.count)
        return integrate_finely(search, found, free_unknowns, self.solved_on, loss if self.is_robust else None)

    def solved_on(self, finer: Problem, found: Solved, search: Squares) -> Solved:
        search.restart(found.evaluation.theta, finer)
        return self.solve(finer, search)

    def refined(self, found: Solved, search: Squares) -> Solved:
        return self.solved_on(found.problem.refined(found.evaluation), found, search)

    def across_jumps(self, found: Solved, search: Squares) -> Solved:
        """Go on by differences where the derivatives of the pieces lack the share of a jump."""
        problem, evaluation = found.problem, found.evaluation
        if self.is_multiple or not evaluation.completed or not has_jumps(problem) or not search.left:
            return found
        steps = steps_across_jumps(problem, search.unknowns, evaluation, search.journal)
        if steps is None:
            return found
        differenced = problem.but(differences=steps)
        search.restart(evaluation.theta, differenced)
        return self.solve(differenced, search)
