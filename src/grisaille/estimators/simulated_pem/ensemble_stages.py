"""The minimum of a simulated criterion: whether there are derivatives, searches, finer steps, more realizations."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import describe_start
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimators.simulated_pem.alternating_weighting import ROUND_GAIN, alternate_weighting
from grisaille.estimators.simulated_pem.conclusion import SearchFinding, assess, without_spent_levels
from grisaille.estimators.simulated_pem.ensemble_integration_shift import MAX_ROUNDS, shorten_for_noise
from grisaille.estimators.simulated_pem.ensemble_size import MOST, are_enough, describe_choice, describe_size
from grisaille.estimators.simulated_pem.identifiability import refuse_unmoved_means
from grisaille.estimators.simulated_pem.initial_search import approach_by_means
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion
from grisaille.estimators.simulated_pem.mean_problem import difference_across_jumps
from grisaille.estimators.simulated_pem.mean_search import (
    MeanSearch,
    MeanSearchEnd,
    gauss_newton,
    grid_search,
    nelder_mead,
)
from grisaille.estimators.simulated_pem.misfit import SUSPECT_ACROSS_JUMPS, SUSPICIOUS_RATIO, largest_errors
from grisaille.estimators.simulated_pem.restarts import look_elsewhere
from grisaille.estimators.simulated_pem.stochastic_approximation import stochastic_approximation
from grisaille.optimization.search import LIMIT_STATUS

if TYPE_CHECKING:
    from grisaille.estimators.simulated_pem.simulated_pem import SimulatedPEM

DIFFERENCE_GAIN = 1e-3
"""Gain at which a search by differences ends: a thirtieth of a standard error."""
MAX_REFINEMENTS = 5
"""Searches, each with the steps that the end of the one before needs."""


@dataclass(frozen=True)
class EnsembleStages:
    """The search that the options of a method describe, with everything that is checked and sought again."""

    method: SimulatedPEM

    def run(self, search: MeanSearch, start: np.ndarray) -> SearchFinding:
        """Return the minimum from a start, with its errors and notes on the search."""
        criterion = search.criterion
        notes, search_as = self.accept(criterion, start)
        notes += refuse_unmoved_means(criterion, start)
        if criterion.with_variance and search_as == "gauss-newton":
            start = approach_by_means(search, criterion.at(start))
        found = self.solve(search, start, search_as)
        if search_as != "grid":
            found = self.solve_elsewhere(search, found, start, search_as)
        tried = [criterion.realizations]
        while (
            self.method.realizations == "auto" and not are_enough(found.sandwich, tried[-1]) and 2 * tried[-1] <= MOST
        ):
            if search.is_spent:
                break
            before = search.criterion
            try:
                search.renew(before.with_runners(2 * tried[-1]))
                found = self.solve(search, found.ending.value.theta, search_as)
            except GrisailleError as error:
                search.renew(before)
                found.notes.append(_unconfirmed(f"{2 * tried[-1]} realizations", error))
                break
            tried.append(2 * tried[-1])
        names = [u.name for u in criterion.problem.unknowns]
        if self.method.realizations == "auto":
            notes.append(describe_choice(found.sandwich, tried))
        elif found.spread is None:
            notes += describe_size(found.sandwich, tried[-1], names, self.method.correction)
        found.notes.extend(notes)
        found.notes.extend(self.places(found))
        return found

    def solve_elsewhere(
        self, search: MeanSearch, found: SearchFinding, guess: np.ndarray, search_as: str
    ) -> SearchFinding:
        """Search again from elsewhere where errors are large and the criterion is lower there; give the better one."""
        here, criterion = found.ending.value, search.criterion
        jumps = any(runner.differences is not None for runner in criterion.runners)
        if search.is_spent or largest_errors(criterion, here) < (SUSPECT_ACROSS_JUMPS if jumps else SUSPICIOUS_RATIO):
            return found
        start = look_elsewhere(search, here, guess, descend=search_as != "nelder-mead")
        if start is None:
            return found
        kept, before = copy.copy(criterion), criterion.comparable(here)
        search.renew(criterion)
        search.iterations = self.method.max_iterations
        try:
            again = self.solve(search, start.theta, search_as)
        except GrisailleError as error:
            search.renew(kept)
            found.notes.append(_unconfirmed("a search from elsewhere", error))
            return found
        after = search.criterion.comparable(again.ending.value)
        if not after < before:
            search.renew(kept)
            return found
        names = [u.name for u in criterion.problem.unknowns]
        left = ", ".join(f"{n} = {v:.4g}" for n, v in zip(names, here.theta, strict=True))
        again.notes.append(
            f"another minimum: the search first ended at {left}, where the criterion is {before:.4g}; one of "
            f"{start.points} other starts led here, where it is {after:.4g}. gr.multistart(…) tries more of them."
        )
        return again

    def places(self, found: SearchFinding) -> list[str]:
        """Return on which devices ensembles were simulated, if not on the processor as a matter of course."""
        if self.method.device == "cpu":
            return []
        told = dict.fromkeys(p.device for p in found.ending.value.predictions)
        return [f"ensembles were simulated on {place}." for place in told if place]

    def accept(self, criterion: MeanCriterion, start: np.ndarray) -> tuple[list[str], str]:
        """Return whether there are derivatives at the guess; how to search, and notes on it."""
        difference_across_jumps(criterion.problem, criterion.runners)
        first = criterion.at(start)
        if first.completed:
            criterion.update_levels(first)
            return [], self.method.search
        plain = criterion.at(start, sensitive=False)
        if not plain.completed:
            there = describe_start([u.starting_from(v) for u, v in zip(criterion.unknowns, start, strict=True)])
            raise EstimationError(f"The model cannot be simulated at {there}: {plain.failure} Give another by guess=.")
        criterion.journal.failures.clear()
        criterion.update_levels(plain)
        for case, runner in zip(criterion.problem.cases, criterion.runners, strict=True):
            sizes = [criterion.problem.unknowns[k].size for k in case.unknowns]
            runner.differences = np.array(sizes)
        note = f"searched without derivatives (Nelder–Mead), because there are none: {first.failure}"
        return [note], "grid" if self.method.search == "grid" else "nelder-mead"

    def solve(self, search: MeanSearch, start: np.ndarray, search_as: str) -> SearchFinding:
        """Minimise until Λ, noise formulas and steps stay as they are, and assess the minimum."""
        settled, left = None, MAX_ROUNDS
        felt: list[str] = []
        for _ in range(MAX_REFINEMENTS):
            try:
                ending, spread = self.settle(search, start, search_as)
            except GrisailleError as error:
                if settled is None:
                    raise
                (ending, spread), search.criterion = settled
                ending = replace(ending, is_minimum=False, reason=f"on finer steps the search failed: {error}")
                break
            settled = (ending, spread), copy.copy(search.criterion)
            try:
                changed = search.criterion.refine(ending.value.theta)
                if not changed and ending.is_minimum:
                    changed, felt = shorten_for_noise(search, ending.value, may_shorten=left > 0)
                    left -= changed
            except INDEPENDENT_OF_VALUES:
                raise  # no other values of the unknowns would help
            except GrisailleError as error:
                ending = replace(ending, is_minimum=False, reason=f"no steps are short enough there: {error}")
                break
            if not changed:
                break
            if search.is_spent:
                ending = replace(ending, is_minimum=False, reason=LIMIT_STATUS)
                break
            start = ending.value.theta
            search.renew(search.criterion)
        else:
            reason = (
                "steps that were short enough where a search began were too long where it ended, "
                f"{MAX_REFINEMENTS} times"
            )
            ending = MeanSearchEnd(search.criterion.at(ending.value.theta), False, reason)
        ending, zero = without_spent_levels(search.criterion, ending)
        found = assess(search, ending, zero, spread)
        found.notes.extend(felt)
        return found

    def settle(self, search: MeanSearch, start: np.ndarray, search_as: str) -> tuple[MeanSearchEnd, np.ndarray | None]:
        """Return the minimum for Λ and noise formulas that belong to it."""
        criterion, problem = search.criterion, search.criterion.problem
        has_priors = bool(problem.prior(start).residuals.size)
        alone = len(problem.outputs) == 1 and not has_priors and not criterion.with_variance
        rough = max(self.method.tolerance, ROUND_GAIN)
        is_final = alone or criterion.is_fixed or search_as in ("grid", "nelder-mead")
        ending, spread = self.minimize(search, start, search_as, self.method.tolerance if is_final else rough)
        if alone or search_as == "grid" or spread is not None:
            criterion.update_levels(ending.value)
            return replace(ending, value=criterion.renew(ending.value)), spread
        if search_as == "nelder-mead":
            return alternate_weighting(
                search, ending, lambda theta: self.minimize(search, theta, search_as, self.method.tolerance)[0]
            ), None
        settled = alternate_weighting(search, ending, lambda theta: self.newton(search, theta, rough))
        if is_final or not settled.is_minimum:
            return settled, None
        search.renew(criterion)
        return self.newton(search, settled.value.theta, self.method.tolerance), None

    def newton(self, search: MeanSearch, start: np.ndarray, tolerance: float) -> MeanSearchEnd:
        if any(runner.differences is not None for runner in search.criterion.runners):
            # differences scatter: the last digits of a minimum are not there to be found
            tolerance = max(tolerance, DIFFERENCE_GAIN)
        return gauss_newton(search, start, tolerance=tolerance)

    def minimize(
        self, search: MeanSearch, start: np.ndarray, search_as: str, tolerance: float
    ) -> tuple[MeanSearchEnd, np.ndarray | None]:
        """Return the end of a search, and the covariance that a stochastic one leaves."""
        if search_as == "grid":
            return grid_search(search, self.method.points), None
        if search_as == "nelder-mead":
            return nelder_mead(search, start, tolerance=tolerance), None
        if search_as == "stochastic":
            # a polish needs a start, not the last digit
            band = 3 * self.method.band if self.method.polish else self.method.band
            found = stochastic_approximation(search, start, batch=self.method.batch, tolerance=band)
            if not self.method.polish:
                value = search.criterion.at(found.theta)
                return MeanSearchEnd(value, found.has_settled and value.completed, found.reason), found.covariance
            start = found.theta
            search.renew(search.criterion)
        return self.newton(search, start, tolerance), None


def _unconfirmed(what: str, error: GrisailleError) -> str:
    """Return the note on a stage that failed after there was an answer."""
    return f"not confirmed: {what} failed ({str(error).rstrip('.')}); the estimates are those before it."
