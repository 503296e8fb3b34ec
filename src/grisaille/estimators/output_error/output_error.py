"""Output error: weighted nonlinear least squares between measured and simulated outputs; disturbances are at zero.

    minimise  ½ Σ_i ρ( (w_i (y_i − ŷ_i(θ)) / σ_i)² )

Where noise levels are unknown and there are several (or priors), σ is estimated by iteration: minimise, set each σ² to
the mean square of its errors, repeat until they stay, which is the joint maximum of θ and σ. At the end σ² = SSE/ν,
with the degrees of freedom that unknowns have left to each output (``determination/freedom``), is what is reported and
what standard errors are made of. Formulas of σ that move with the prediction are renewed in the same way as σ. With a
robust loss ρ, unknown σ come from the middle of the residuals and count from the first search on.
Reference: L. Ljung, System Identification (1999), chapter 7.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.cases import Case, build_case
from grisaille.estimation.cost import MANY, Cost, interpreted, usual_cost
from grisaille.estimation.counted import Score
from grisaille.estimation.determination.freedom import settled_levels
from grisaille.estimation.determination.words import describe_determination
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Verdict
from grisaille.estimation.noise import noise_levels, refuse_noise_alone
from grisaille.estimation.problem import Evaluation, Problem
from grisaille.estimation.question import Question
from grisaille.estimation.subject import Subject
from grisaille.estimation.uncertainty import gauss_newton_covariance, without_undetermined
from grisaille.estimation.warm_start import state_courses
from grisaille.estimators.output_error import multiple_shooting, own_value, robust_losses
from grisaille.estimators.output_error.beside import go_beside, has_edges
from grisaille.estimators.output_error.coincident_switches import move_guess_apart
from grisaille.estimators.output_error.differences import caution, crossings_at, has_jumps, steps_across_jumps
from grisaille.estimators.output_error.errors import MARK, Errors, Reckoned, Residuals, reckon
from grisaille.estimators.output_error.event_order import order_notes
from grisaille.estimators.output_error.freedom import freedom_of
from grisaille.estimators.output_error.held_disturbances import shifted_means
from grisaille.estimators.output_error.integration_error import integrate_finely, notes_of_pieces
from grisaille.estimators.output_error.level_steps import newton_levels
from grisaille.estimators.output_error.solved import Ending, Solved, Squares
from grisaille.estimators.output_error.unfinished import is_minimum, keeping, try_other_searches, unconfirmed_steps
from grisaille.estimators.output_error.variable_projection import ProjectedSearch, linear_unknowns
from grisaille.model.flat import FlatModel
from grisaille.optimization import nelder_mead, newton, trust_region
from grisaille.optimization.convergence import NEAR, OFFSET, OFFSET_OF_DIFFERENCES, polish, relative_offset
from grisaille.optimization.journal import Journal, Progress
from grisaille.optimization.search import LIMIT, Search, arrived
from grisaille.simulation.discretisation import Steps
from grisaille.simulation.runner import COARSE, Prediction
from grisaille.structure.starts.problem import nominal_of
from grisaille.trial.refusals import refuse_events
from grisaille.trial.unknown import Unknown

OPTIMIZERS = ("trust-region", "gauss-newton", "levenberg-marquardt", "nelder-mead")
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
NOISE_ROUNDS, STAY = 100, 1e-6
"""Of levels and unknowns in turn, at most, and how much levels may still move then."""
TOO_LONG = 3.0
"""Error estimate, in tolerances, from which on the frozen steps are shortened at the optimum; below, it may well be the
estimate that errs."""
RUNAWAY = 1e6
"""Growth of sensitivities along a record from which on single shooting is not believed, where a change of an unknown by
one part in as many also moves an output over its whole range (a body that begins to slide grows, but stays tame)."""
FOLLOWED = 1e-3
"""Degrees of freedom that are left to an output which the unknowns follow exactly."""
SAME = 1e-4
"""Relative difference up to which the covariance of pieces is that of their Jacobian."""
STALL_GAIN = 1e-3
"""Of the log-likelihood, by another round of levels, where no search ends in a minimum with either."""
OFTEN, ROUGH = 2.0, 1e-5
"""Steps for each sample that are worth a word, and the tolerance of a first look."""
RAN_AWAY = 1e5
"""Growth of an estimate over its first value from which on a projected search is tried again without projection."""


@dataclass(frozen=True)
class OutputError(Estimator):
    """Options of output-error estimation.

    optimizer : how the minimum is sought
    loss, loss_scale : robust losses of SciPy's trust region, and where they set in (in standard deviations)
    shooting, pieces : ``"multiple"`` cuts each record into pieces, for models that run away from a wrong start
    projection : solve for unknowns that enter the outputs linearly instead of searching them
    errors : ``"plain"``, for residuals that are independent of each other; ``"robust"``, with their correlation over
        time and between outputs, and with the degrees of freedom that the record leaves to tell it
    covariance : of plain errors: ``"gauss-newton"``, or ``"sandwich"`` where variances are not as assumed
    rtol : tolerance from which the frozen steps are chosen
    tolerance, max_evaluations : when to stop
    compiled : as in ``gr.simulate``

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> gr.fit(Tank(), data, ["k", "q"], gr.OutputError(loss="huber"))["k"]
    0.5012 ± 0.0012
    """

    optimizer: Literal["trust-region", "gauss-newton", "levenberg-marquardt", "nelder-mead"] = "trust-region"
    loss: str = "linear"
    loss_scale: float = 1.0
    shooting: Literal["single", "multiple"] = "single"
    pieces: int = 10
    projection: bool = True
    errors: Errors = "plain"
    covariance: Literal["gauss-newton", "sandwich"] = "gauss-newton"
    rtol: float = 1e-7
    tolerance: float = 1e-12
    max_evaluations: int = 4000
    compiled: bool | None = None

    estimates_levels: ClassVar[bool] = False
    deviance: ClassVar[Literal["squares"]] = "squares"
    redraws: ClassVar[str] = "noise"

    @classmethod
    def verdict(cls, subject: Subject) -> Verdict:
        if subject.is_static:
            return Verdict(True, "chosen: the model is static, rows are compared with its formulas")
        if subject.disturbances:
            names = ", ".join(subject.disturbances)
            return Verdict(False, f"refused: it would hold the disturbances {names} at zero")
        if subject.levels:
            return Verdict(False, f"refused: it does not estimate '{subject.levels[0]}' by name")
        name = subject.flat.name
        return Verdict(True, f"chosen: {name} has no disturbances, so its simulation is its best prediction")

    def __post_init__(self) -> None:
        _choose("optimizer", self.optimizer, OPTIMIZERS)
        _choose("loss", self.loss, LOSSES)
        _choose("shooting", self.shooting, ("single", "multiple"))
        _choose("covariance", self.covariance, ("gauss-newton", "sandwich"))
        _choose("errors", self.errors, ("plain", "robust"))
        if self.errors == "robust" and self.covariance == "sandwich":
            raise EstimationError("errors='robust' is a sandwich already: leave covariance='sandwich' out.")
        if self.errors == "robust" and self.shooting == "multiple":
            raise EstimationError(
                "errors='robust' needs shooting='single': fit with shooting='multiple', then again from there, "
                "guess=fit, with gr.OutputError(errors='robust')."
            )
        if self.shooting == "multiple" and self.loss != "linear":
            raise EstimationError("shooting='multiple' minimises squares: use loss='linear'.")
        if self.loss != "linear" and self.optimizer != "trust-region":
            raise EstimationError(f"loss={self.loss!r} needs optimizer='trust-region'.")

    def cost(self, problem: Problem) -> Cost:
        n, steps = len(problem.unknowns), [c.discretisation for c in problem.begun.cases]
        is_implicit = any(isinstance(s, Steps) and s.method == "implicit" for s in steps)
        causes, faster = interpreted(self.compiled, "OutputError")
        spans = zip(problem.begun.cases, steps, strict=True)
        equal = [np.ptp(c.trial.times) / s.step for c, s in spans if isinstance(s, Steps) and s.step]
        samples = sum(len(c.trial.times) for c in problem.cases)
        if sum(equal) > max(OFTEN * samples, MANY):
            causes.append(f"{sum(equal):.2g} steps with derivatives")
            if self.rtol < ROUGH:
                faster.append(f"a larger tolerance for a first look, gr.OutputError(rtol={ROUGH:g})")
        if is_implicit:
            causes.append("implicit steps")
        if self.optimizer == "nelder-mead":
            faster.append("derivatives, gr.OutputError(optimizer='gauss-newton')")
        return usual_cost(problem, 100 * n if self.optimizer == "nelder-mead" else 20, causes, faster)

    def pose(self, question: Question) -> Problem:
        """Simulations compared with the data, in units of the noise."""
        noise = noise_levels(question.structure.model, question.outputs)
        if self.shooting == "multiple":
            for trial, _ in question.trials:
                refuse_events(trial, "shooting='multiple', whose pieces begin with unknown discrete variables,")
        cases = [
            build_case(e, *trial, noise, self.rtol, self.compiled)
            for e, trial in zip(question.data, question.trials, strict=True)
        ]
        problem = Problem(question.unknowns, cases, noise)
        if question.guess is not None and self.shooting == "multiple":
            problem.courses = state_courses(question.guess, question.data)
        return problem

    def remarks(self, flat: FlatModel) -> list[str]:
        if not flat.disturbances:
            return []
        return [
            f"output error holds the disturbances {', '.join(flat.disturbances)} at zero; method=gr.SimulatedPEM() "
            f"takes them into account."
        ]

    def ways_out(self, disturbed: bool) -> list[str]:
        ways = ["gr.OutputError(shooting='multiple')"] if self.shooting == "single" else []
        return ways + (["method=gr.KalmanML(), for what disturbances do"] if disturbed else [])

    @property
    def has_sandwich(self) -> bool:
        return self.covariance == "sandwich" or self.errors == "robust"

    @property
    def is_likelihood(self) -> bool:
        return self.loss == "linear"

    @property
    def levels_told(self) -> dict[Literal["scale", "noise"], str]:
        return {"scale": "no", "noise": "without being named, where the model leaves it open"}

    @property
    def no_parametric(self) -> str:
        if self.errors != "robust":
            return self.no_bootstrap
        return (
            "kind='parametric' draws independent noise, which errors='robust' does not take residuals for: use "
            "gr.bootstrap(fit, kind='residual'), whose blocks keep their correlation."
        )

    @property
    def no_profiles(self) -> str:
        if self.errors == "robust":
            return (
                "Profiles, confidence regions and likelihood ratios take residuals to be independent, which "
                "errors='robust' does not: fit.intervals() has the robust errors, fit.with_errors('plain') the others."
            )
        if self.is_likelihood:
            return ""
        return (
            "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: fit with "
            "loss='linear', or use gr.bootstrap."
        )

    @property
    def not_a_likelihood(self) -> str:
        return "a robust loss"

    def valued(self, problem: Problem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        evaluation = own_value.across_jumps(problem, evaluation)
        if self.loss != "linear":
            return own_value.robust(problem, evaluation, self.loss, self.loss_scale), np.nan
        log_likelihood = _log_likelihood(problem, evaluation)
        if problem.sigma:
            return own_value.profiled(problem, evaluation, log_likelihood), log_likelihood
        return evaluation, log_likelihood

    def comparable(self, estimate: Estimate) -> float:
        """−log L − log prior; for robust losses Σ (½ C² ρ((w e / σC)²) + log σ), with known σ left out."""
        if estimate.is_likelihood:
            return super().comparable(estimate)
        beyond, data = estimate.evaluation.residuals[estimate.count :], estimate.evaluation.residuals[: estimate.count]
        value = robust_losses.LOSSES[self.loss].value((data / self.loss_scale) ** 2)
        levels = [np.full(len(s.values), estimate.noise.get(s.output, 1.0)) for c in estimate.cases for s in c.samples]
        loss = 0.5 * self.loss_scale**2 * float(np.sum(value))
        return 0.5 * float(beyond @ beyond) + loss + float(np.sum(np.log(np.concatenate(levels))))

    def estimate(self, problem: Problem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin = time.perf_counter()
        refuse_noise_alone(problem.noise, problem.unknowns, problem.cases[0].trial.structure)
        problem = problem if self.shooting == "multiple" else problem.begun
        search = self._search(problem, Journal.of(progress))
        guess, is_plain = search.guess, self.shooting == "single" and self.loss == "linear"
        found, moved = self._begin(problem, search)
        found, unconfirmed = self._on_finer_steps(found, search)
        if any(c.trial.structure.jumps.of_states or c.trial.flat.whens for c in problem.cases):
            found = keeping(search, found, partial(self._across_jumps, found, search)).solved
            if is_plain and has_edges(found):
                found = keeping(search, found, partial(go_beside, search, found, _free, self._solve)).solved
        if is_plain and self.optimizer == "trust-region" and search.left and not is_minimum(search, found):
            marquardt = replace(self, optimizer="levenberg-marquardt", projection=False)
            found = try_other_searches(search, found, guess, marquardt._solve, _free)
        found, felt = self._integrated_finely(found, search)
        return self._conclude(found, search, [*moved, *unconfirmed, *felt], time.perf_counter() - begin)

    def _begin(self, problem: Problem, search: Squares) -> tuple[Solved, list[str]]:
        """The first minimum; a guess at which the order of events matters is left, and that is said."""
        known = len(search.journal.failures)
        try:
            return self._solve(problem, search), []
        except EstimationError:
            moved = move_guess_apart(search)
            if not moved:
                raise
        del search.journal.failures[known:]
        return self._solve(problem, search), moved

    def _search(self, problem: Problem, journal: Journal) -> Squares:
        """A search that ends where it gains nothing, and where simulations have become far longer than at first."""
        search: Squares = Search(problem, journal, self.max_evaluations)
        if self.shooting == "single":
            search.may_stall, search.most_steps = self.loss != "linear" or self.optimizer == "nelder-mead", 0
        return search

    def _on_finer_steps(self, found: Solved, search: Squares) -> tuple[Solved, list[str]]:
        """Solve again where the steps chosen at the guess are too long at the optimum; what could not be confirmed."""
        for _ in range(4):
            if found.evaluation.discretisation <= TOO_LONG or not search.left:
                break
            kept = keeping(search, found, partial(self._refined, found, search))
            found = kept.solved
            if kept.reason:
                return found, [unconfirmed_steps(found, self.rtol, kept.reason)]
        return found, []

    def _integrated_finely(self, found: Solved, search: Squares) -> tuple[Solved, list[str]]:
        """Solve again with steps that are short enough for the noise; what errors of integration do where none are."""
        if self.shooting == "multiple":
            return found, notes_of_pieces(found.problem.begun, found.evaluation, search.moving(found.evaluation))
        return integrate_finely(search, found, _free, self._solved_on)

    def _solved_on(self, finer: Problem, found: Solved, search: Squares) -> Solved:
        search.restart(found.evaluation.theta, finer)
        return self._solve(finer, search)

    def _refined(self, found: Solved, search: Squares) -> Solved:
        return self._solved_on(found.problem.refined(found.evaluation), found, search)

    def _across_jumps(self, found: Solved, search: Squares) -> Solved:
        """Go on by differences where the derivatives of the pieces lack the share of a jump."""
        problem, evaluation = found.problem, found.evaluation
        if self.shooting == "multiple" or not evaluation.completed or not has_jumps(problem) or not search.left:
            return found
        steps = steps_across_jumps(problem, search.unknowns, evaluation, search.journal)
        if steps is None:
            return found
        differenced = problem.but(differences=steps)
        search.restart(evaluation.theta, differenced)
        return self._solve(differenced, search)

    def _solve(self, problem: Problem, search: Squares) -> Solved:
        """Minimise, updating noise levels until they stay."""
        robust = self.loss != "linear"
        if robust and problem.sigma:
            problem = problem.but(sigma=_levels(problem, search.first(), robust))
            search.restart(search.guess, problem)
        found = self._minimized(problem, search)
        if not found.problem.sigma and not found.problem.moving:
            search.criterion = search.journal.kept = found.problem
            return found
        return self._with_levels(found, search)

    def _with_levels(self, found: Solved, search: Squares) -> Solved:
        """Levels and unknowns in turn until both stay, from a minimum with the first levels on."""
        problem, outcome, evaluation, robust = found.problem, found.outcome, found.evaluation, self.loss != "linear"
        has_priors = len(evaluation.residuals) > problem.count
        alone = len(problem.outputs) == 1 and not has_priors and not robust
        for _ in range(NOISE_ROUNDS):
            _refuse_followed(problem, evaluation)
            sought, before, levels = problem, problem.sigma, _levels(problem, evaluation, robust)
            moved = max([0.0, *(abs(levels[n] / before[n] - 1) for n in before)])
            problem, bent = problem.refrozen(evaluation.predictions, evaluation.theta)
            search.criterion = search.journal.kept = problem = problem.but(sigma=levels)
            if (alone and before) or max(moved, bent) < (1e-6 if robust else 1e-10):
                evaluation = _rescaled(problem, evaluation, before)
                break
            if not search.left:
                return Solved(problem, replace(outcome, stopped_well=False, reason=LIMIT, settled=False), evaluation)
            again = self._by_newton_levels(Solved(sought, outcome, evaluation), levels, search)
            if again is None:
                search.restart(evaluation.theta, problem)
                again = self._minimized(problem, search)
                is_stuck = not robust and relative_offset(search, again.evaluation) >= NEAR
                if is_stuck and before and found.whole - again.whole < STALL_GAIN:
                    return again  # no minimum with these levels: others will not help
            problem, outcome, evaluation = again.problem, again.outcome, again.evaluation
            found = again
        else:
            if max(moved, bent) > STAY:
                outcome = replace(outcome, settled=False, reason=f"{NOISE_ROUNDS} rounds were made")
        return Solved(problem, outcome, evaluation)

    def _by_newton_levels(self, found: Solved, levels: Mapping[str, float], search: Squares) -> Solved | None:
        """The minimum with the levels that Newton's step leads to; None where Gauss–Newton steps do not reach it."""
        if self.loss != "linear" or self.shooting == "multiple" or found.problem.moving or not found.problem.sigma:
            return None
        at = found.evaluation
        problem = found.problem.but(sigma=newton_levels(found.problem, at, levels, _free(search, at)))
        search.restart(at.theta, problem)
        near = polish(search, _rescaled(problem, at, found.problem.sigma))
        if relative_offset(search, near) >= OFFSET:
            return None
        search.best, search.journal.kept = near, problem
        return Solved(problem, replace(found.outcome, evaluation=near), near)

    def _minimized(self, problem: Problem, search: Squares) -> Solved:
        problem, outcome = self._minimize(problem, search)
        return Solved(problem, outcome, self._polished(search, outcome))

    def _minimize(self, problem: Problem, search: Squares) -> tuple[Problem, Ending]:
        """The minimum with these levels, and the problem with what was frozen on the way."""
        if self.shooting == "multiple":
            shooting = multiple_shooting.MultipleShooting(problem, self.pieces, search.journal)
            joined = multiple_shooting.solve(shooting, search, self.tolerance)
            search.best = joined.evaluation
            return shooting.problem, joined
        linear = linear_unknowns(problem) if self.projection and self.loss == "linear" else np.zeros(0, dtype=bool)
        if linear.any() and not linear.all() and self.optimizer != "nelder-mead":
            apart = ProjectedSearch(
                problem, search.journal, search.most, search.most_steps, search.may_stall, linear=linear
            )
            apart.unknowns, first = search.unknowns, search.guess
            projected = self._optimize(apart, problem.count)
            search.unknowns, search.most_steps = apart.unknowns, apart.most_steps
            is_minimum = relative_offset(search, polish(search, projected.evaluation)) < OFFSET
            if is_minimum and not _ran_away(projected, first, search.unknowns):
                return problem, projected
            plain = self._optimize(search, problem.count)
            return problem, min(projected, plain, key=lambda o: o.evaluation.objective)
        return problem, self._optimize(search, problem.count)

    def _optimize(self, search: Squares, count: int) -> Ending:
        if self.optimizer == "nelder-mead":
            return nelder_mead.minimize(search, tolerance=self.tolerance)
        if self.optimizer == "trust-region":
            has_priors = self.loss != "linear" and len(search.first().residuals) > count
            loss = robust_losses.of_data(self.loss, count) if has_priors else self.loss
            if self.loss != "linear":
                return trust_region.minimize(search, self.tolerance, loss, self.loss_scale)
            found = trust_region.minimize(search, self.tolerance, may_crawl=False)
            if found.reason != trust_region.CRAWLS:
                return found
            # in a narrow valley that bends, damping gets on where a region with the unknowns' own axes does not
            search.restart(found.evaluation.theta)
            other = newton.minimize(search, newton.Marquardt(), tolerance=self.tolerance)
            return other if other.evaluation.objective <= found.evaluation.objective else found
        damping = newton.Shortened() if self.optimizer == "gauss-newton" else newton.Marquardt()
        return newton.minimize(search, damping, tolerance=self.tolerance)

    def _polished(self, search: Squares, outcome: Ending) -> Evaluation:
        plain = self.loss == "linear" and self.shooting == "single"
        return polish(search, outcome.evaluation) if plain else outcome.evaluation

    def _conclude(self, solved: Solved, search: Squares, unconfirmed: list[str], seconds: float) -> Estimate:
        problem, outcome, evaluation, journal = solved.problem, solved.outcome, solved.evaluation, search.journal
        evaluation, free = self._on_bounds(search, evaluation)
        seen = search.moving(evaluation)
        told = free & seen
        offset = relative_offset(search, evaluation) if self.loss == "linear" else 0.0
        runaway = _growth_note(problem, search, evaluation) if self.shooting == "single" else []
        enough = NEAR if problem.differences is None else OFFSET_OF_DIFFERENCES
        is_there = offset < enough or outcome.edge is not None
        converged = (is_there if self.loss == "linear" else outcome.stopped_well) and not runaway
        converged = converged and evaluation.discretisation < COARSE and outcome.joins and outcome.settled
        unmoved = _unmoved(search, seen)
        converged = converged and not unmoved
        found, sought = evaluation, problem
        if problem.sigma and self.loss == "linear":
            problem = problem.but(sigma=_settled(problem, evaluation, told))
            evaluation = _rescaled(problem, evaluation, sought.sigma)
        reckoned = self._reckon(search.unknowns, evaluation, problem.cases, problem.count, told)
        covariance = without_undetermined(reckoned.covariance, free & ~seen)
        # what the data determine is told by the curvature, also where correlation leaves no errors
        curved = covariance
        if self.errors == "robust":
            curved = without_undetermined(gauss_newton_covariance(evaluation.curved, told), free & ~seen)
        notes = describe_determination(
            search.unknowns, evaluation.theta, evaluation.curved, curved, free, _same_as(search, found), ~seen,
        )  # fmt: skip
        flat, careful = problem.cases[0].trial.flat, ""
        notes += [_following(n) for n in sorted(problem.moving)]
        notes += runaway + (_correlation_notes(problem) if flat.noise_covariance else [])
        if flat.disturbances:
            careful = next(iter(shifted := shifted_means(problem, evaluation, curved)), "")
            notes += shifted[1:]
        if self.shooting == "single" and flat.whens:
            notes += order_notes(problem, evaluation, covariance)
        if problem.differences is not None or (self.shooting == "multiple" and has_jumps(problem)):
            crossed = crossings_at(problem, evaluation.theta)
            careful = caution(crossed, differenced=problem.differences is not None)
        if journal.failures:
            notes.append(f"{len(journal.failures)} simulations failed on the way; the last: {journal.failures[-1]}")
        notes += unconfirmed
        if evaluation.discretisation > TOO_LONG and not unconfirmed:
            notes.append(
                f"discretisation: the frozen steps miss the tolerance by a factor {evaluation.discretisation:.1f}; use "
                f"a smaller rtol in gr.OutputError."
            )
        return Estimate(
            unknowns=search.unknowns,
            theta=evaluation.theta,
            covariance=covariance,
            free=free,
            noise={n: float(s) for n, s in problem.sigma.items()},
            log_likelihood=_log_likelihood(problem, evaluation) if self.is_likelihood else np.nan,
            is_likelihood=self.is_likelihood,
            count=problem.count,
            objective=self._objective(problem, evaluation),
            evaluation=evaluation,
            cases=problem.cases,
            converged=converged,
            status=f"NOT converged: {runaway[0] if runaway else unmoved}"
            if runaway or unmoved
            else _sentence(converged, outcome, evaluation, offset, journal.evaluations),
            notes=(*reckoned.notes, *notes),
            trace=tuple(journal.trace),
            evaluations=journal.evaluations,
            failures=tuple(journal.failures),
            seconds=seconds,
            offset=offset,
            caution=careful,
            robust=reckoned.robust,
        )

    def _on_bounds(self, search: Squares, evaluation: Evaluation) -> tuple[Evaluation, np.ndarray]:
        """The point with unknowns that a bound holds on it, not beside it, and which unknowns are free."""
        free = _free(search, evaluation)
        lower, upper = search.bounds
        nearer = np.where(evaluation.theta - lower <= upper - evaluation.theta, lower, upper)
        theta = np.where(free, evaluation.theta, nearer)
        if self.shooting == "multiple" or np.array_equal(theta, evaluation.theta):
            return evaluation, free
        moved = search.evaluate(theta, quietly=True)
        return (moved, _free(search, moved)) if moved.completed else (evaluation, free)

    def _objective(self, problem: Problem, evaluation: Evaluation) -> float:
        """What was minimised, at the levels of noise that are reported."""
        if self.loss == "linear":
            return evaluation.objective
        value = robust_losses.of_data(self.loss, problem.count)((evaluation.residuals / self.loss_scale) ** 2)[0]
        return 0.5 * self.loss_scale**2 * float(np.sum(value))

    def _reckon(
        self, unknowns: Sequence[Unknown], evaluation: Evaluation, cases: Sequence[Case], count: int, told: np.ndarray
    ) -> Reckoned:
        names = [u.name for u in unknowns]
        left = Residuals(evaluation, cases, count, told, names, self.loss, self.loss_scale, self.covariance)
        return reckon(left, self.errors)

    @property
    def tests_starts(self) -> bool:
        return self.loss == "linear" and self.shooting == "single" and self.optimizer != "nelder-mead"

    @property
    def score(self) -> Score | None:
        return None if self.loss == "linear" else partial(robust_losses.score, self.loss, self.loss_scale)

    @property
    def robust_way(self) -> str:
        return 'gr.OutputError(loss="soft_l1")' if self.loss == "linear" else ""

    def about_correlation(self, estimate: Estimate) -> str:
        offered = "fit.with_errors('robust'), or gr.OutputError(errors='robust'), takes the correlation into account"
        if self.shooting == "multiple":
            offered = "gr.fit(…, method=gr.OutputError(errors='robust'), guess=fit) takes the correlation into account"
        plain = np.sqrt(np.clip(np.diag(estimate.covariance), 0.0, None))
        usable = (plain > 0) & np.isfinite(plain)
        if not usable.any():
            return f"{offered}."
        names = [u.name for u in estimate.unknowns]
        left = Residuals(
            estimate.evaluation,
            estimate.cases,
            estimate.count,
            usable,
            names,
            self.loss,
            self.loss_scale,
            "gauss-newton",
        )
        found = reckon(left, "robust", calibrated=False).covariance
        factor = np.where(usable, np.sqrt(np.clip(np.diag(found), 0.0, None)) / np.where(usable, plain, 1.0), 0.0)
        worst = int(np.argmax(factor))
        if not np.isfinite(factor[worst]):
            return f"Here they say nothing: the correlation reaches as far as the record. {offered}."
        small = f"They are off by a factor of about {factor[worst]:.2g} ({names[worst]})" if factor[worst] > 1.1 else (
            "Here they are hardly smaller for it"
        )  # fmt: skip
        return f"{small}; {offered}."

    def reckoned(self, estimate: Estimate) -> Estimate:
        """The same estimate with errors of the kind that this method has."""
        evaluation, free = estimate.evaluation, estimate.free
        seen = np.abs(evaluation.jacobian).max(axis=0, initial=0.0) > 0
        found = self._reckon(estimate.unknowns, evaluation, estimate.cases, estimate.count, free & seen)
        return replace(
            estimate,
            covariance=without_undetermined(found.covariance, free & ~seen),
            notes=(*found.notes, *(n for n in estimate.notes if not n.startswith(MARK))),
            robust=found.robust,
        )


def _unmoved(search: Squares, seen: np.ndarray) -> str:
    """What is said where no unknown moves anything that was measured: there was nothing to search."""
    if seen.any() or not len(seen):
        return ""
    names = [u.name for u in search.unknowns]
    several = f"none of the unknowns {', '.join(names[:6])}{', …' if len(names) > 6 else ''}"
    which = several if len(names) > 1 else f"'{names[0]}' does not"
    moves = "moves" if len(names) > 1 else "move"
    return (
        f"{which} {moves} any measured output where the search stands, so that these data tell nothing from there. "
        f"Give other values by guess=, data in which the inputs excite the model, or measure what depends on them"
    )


def _refuse_followed(problem: Problem, evaluation: Evaluation) -> None:
    """Refuse open noise of an output that the unknowns can follow exactly: the likelihood has no maximum."""
    if len(problem.outputs) == 1 or not evaluation.completed:
        return
    told = np.abs(evaluation.jacobian).max(axis=0, initial=0.0) > 0
    freedom = freedom_of(problem, evaluation, told)
    for name, (_, count) in _squares(problem, evaluation).items():
        if freedom.left(name) < FOLLOWED:
            raise EstimationError(
                f"The unknowns can follow the {count} sample{'' if count == 1 else 's'} of '{name}' exactly, so that "
                f"its noise, which is open, would be zero and its weight infinite: say how large it is, "
                f"gr.Output(…, noise=0.1), or give more samples."
            )


def _settled(problem: Problem, evaluation: Evaluation, told: np.ndarray) -> dict[str, float]:
    """√(SSE/ν) of each output with unknown noise."""
    freedom = freedom_of(problem, evaluation, told)
    return settled_levels(freedom, {n: s for n, (s, _) in _squares(problem, evaluation).items()}, problem.sigma)


def _rescaled(problem: Problem, evaluation: Evaluation, before: Mapping[str, float]) -> Evaluation:
    """The same point after the unknown noise levels have changed: residuals and their Jacobian scale with them."""
    factor = np.ones(len(evaluation.residuals))
    for k, name in enumerate(problem.outputs):
        if name in before:
            factor[: problem.count][problem.output_of == k] = before[name] / problem.sigma[name]
    renewed = replace(
        evaluation, residuals=evaluation.residuals * factor, jacobian=evaluation.jacobian * factor[:, None]
    )
    if evaluation.covariance is None:
        return renewed
    told = np.diag(evaluation.covariance) > 0
    wider = evaluation.covariance / np.mean(factor[: problem.count] ** 2)
    plain, other = (gauss_newton_covariance(e.jacobian, told) for e in (evaluation, renewed))
    if np.allclose(plain, evaluation.covariance, rtol=SAME, atol=0.0):
        wider = other
    return replace(renewed, covariance=wider)


def _growth_note(problem: Problem, search: Squares, evaluation: Evaluation) -> list[str]:
    """Sensitivities that explode along the record: single shooting cannot be trusted there."""
    notes = []
    for case, prediction in zip(problem.cases, evaluation.predictions, strict=False):
        if prediction.sy.size and case.grid.size > 10:
            size = np.abs(prediction.sy).max(axis=(1, 2))
            early = size[1 : max(len(size) // 10, 2)].max()
            if early > 0 and size[-1] > RUNAWAY * early and _leverage(search.unknowns, case, prediction) > RUNAWAY:
                notes.append(
                    f"unstable: in '{case.name}' the sensitivities grow {size[-1] / early:.0e}-fold along the record, "
                    f"so small errors run away; use gr.OutputError(shooting='multiple')."
                )
    return notes


def _following(output: str) -> str:
    """That weights follow the estimates, and what is not made use of."""
    return (
        f"noise of {output}: its formula follows the estimates, and weights were renewed until they stay (iteratively "
        f"reweighted least squares). What the size of the residuals tells of the unknowns is not used; gr.KalmanML() "
        f"maximises the likelihood."
    )


def _correlation_notes(problem: Problem) -> list[str]:
    """Declared covariances between measured outputs, which least squares does not use."""
    declared = problem.cases[0].trial.flat.noise_covariance
    return [
        f"correlated noise: output error takes the noise of {a} and {b} to be independent; the declared covariance is "
        f"not used, and standard errors do not account for it: fit.with_errors('robust') does."
        for a, b in declared
        if a in problem.outputs and b in problem.outputs
    ]


def _leverage(unknowns: Sequence[Unknown], case: Case, prediction: Prediction) -> float:
    """Largest change of an output at the end, in its measured range, by a change of an unknown of its own size."""
    variables = case.trial.flat.variables
    mine = [unknowns[k] for k in case.unknowns]
    # a start of zero says nothing about its size; its variable does
    sizes = np.array([max(u.size, nominal_of(variables.get(u.target))) if u.kind == "start" else u.size for u in mine])
    ranges = np.array([np.ptp(s.values) if len(s.values) > 1 else 0.0 for s in case.samples])
    columns = [case.column(s.output) for s in case.samples]
    moved = (np.abs(prediction.sy[-1, columns]) * sizes).max(axis=1)
    return float((moved / np.where(ranges > 0, ranges, 1.0)).max())


def _same_as(search: Squares, evaluation: Evaluation) -> Callable[[np.ndarray], bool]:
    """Whether other values have the sum of squares of an evaluation, up to the accuracy of simulations."""

    def same(theta: np.ndarray) -> bool:
        there = search.evaluate(theta, sensitive=False, quietly=True)
        return abs(there.objective - evaluation.objective) < 1e-3 * (1 + abs(evaluation.objective))

    return same


def _ran_away(outcome: Ending, first: np.ndarray, unknowns: Sequence[Unknown]) -> bool:
    """Whether an estimate left the magnitude of where it began: a valley that falls towards infinity."""
    sizes = [u.size for u in unknowns]
    return bool((np.abs(outcome.evaluation.theta) > RAN_AWAY * np.maximum(np.abs(first), sizes)).any())


def _choose(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise EstimationError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")


def _free(search: Squares, evaluation: Evaluation) -> np.ndarray:
    """False for unknowns that a bound holds."""
    lower, upper = search.bounds
    span = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    bend = np.sum(evaluation.jacobian**2, axis=0)
    # bounds may be far apart: near is also what is small against the standard error that an unknown alone would have
    near = np.minimum(1e-9 * span, np.divide(1e-3, np.sqrt(bend), out=np.full(len(bend), np.inf), where=bend > 0))
    descent = -(evaluation.jacobian.T @ evaluation.residuals)
    low = (evaluation.theta <= lower + near) & (descent <= 0)
    high = (evaluation.theta >= upper - near) & (descent >= 0)
    return np.asarray(~(low | high))


def _levels(problem: Problem, evaluation: Evaluation, robust: bool = False) -> dict[str, float]:
    """σ of each output while θ is sought: the mean square of its weighted errors, or the robust level of them."""
    if robust:
        return own_value.robust_levels(problem, evaluation)
    return {n: float(np.sqrt(max(s / n_of, 1e-300))) for n, (s, n_of) in _squares(problem, evaluation).items()}


def _squares(problem: Problem, evaluation: Evaluation) -> dict[str, tuple[float, int]]:
    """Sum of squares of the weighted errors of each output with unknown noise, and how many there are."""
    found = {}
    for name in problem.sigma:
        mine = problem.output_of == problem.outputs.index(name)
        errors = problem.weights[mine] * evaluation.errors[mine]
        found[name] = float(errors @ errors), len(errors)
    return found


def _log_likelihood(problem: Problem, evaluation: Evaluation) -> float:
    """log p(y | θ, σ), constants included; unknown σ at its maximum-likelihood value RSS/N."""
    total = 0.0
    deviations = np.concatenate(
        [
            problem.deviations(c, s.output, s.rows, p, evaluation.theta)
            for c, p in zip(problem.cases, evaluation.predictions, strict=True)
            for s in c.samples
        ]
    )
    for k, name in enumerate(problem.outputs):
        mine = problem.output_of == k
        n = int(mine.sum())
        weights = problem.weights[mine]
        if not n:
            continue
        log_weights = float(np.sum(np.log(weights[weights > 0])))
        if problem.noise[name].known:
            sigma = deviations[mine]
            r = weights * evaluation.errors[mine] / sigma
            total += float(-0.5 * r @ r - np.sum(np.log(sigma)) - 0.5 * n * np.log(2 * np.pi)) + log_weights
        else:
            variance = max(float(np.mean((weights * evaluation.errors[mine]) ** 2)), 1e-300)
            total += -0.5 * n * (np.log(2 * np.pi * variance) + 1) + log_weights
    return total


def _sentence(converged: bool, outcome: Ending, evaluation: Evaluation, offset: float, evaluations: int) -> str:
    if converged:
        return f"converged: {arrived(outcome, offset)}, {evaluations} evaluations"
    if not outcome.settled:
        return (
            f"NOT converged after {evaluations} evaluations: {outcome.reason} while noise levels still move. Try a "
            f"larger max_evaluations"
        )
    if not outcome.joins:
        return f"NOT converged after {evaluations} evaluations: {outcome.reason}. Try more pieces, or another guess"
    if offset < NEAR and evaluation.discretisation >= COARSE:
        return (
            f"NOT converged: the minimum was reached in {evaluations} evaluations, but simulations miss their "
            f"tolerance there by a factor {evaluation.discretisation:.2g}. Use a smaller rtol in gr.OutputError"
        )
    return (
        f"NOT converged after {evaluations} evaluations: {outcome.reason}; the point is {offset:.2g} standard errors "
        f"from a minimum. Try another guess, gr.multistart, or a larger max_evaluations"
    )
