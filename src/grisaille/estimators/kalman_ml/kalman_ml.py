"""Maximum likelihood by Kalman filtering: parameters, noise levels and starts of models with disturbances.

    maximise  log L(θ) = Σ_k log N(y_k; ŷ_{k|k−1}, S_k)  (+ log prior)

One-step predictions and their covariances come from the exact filter of a linear model, or from one of the filters for
nonlinear models (``filtering``). The covariance of the estimates is the inverse Hessian of −log L − log prior at the
optimum. Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (9), (31), (53).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import casadi as ca
import numpy as np

from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.bound_penalty import BoundPenalty, transformed
from grisaille.estimation.cases import Case, Ready, trial_of
from grisaille.estimation.cost import Cost, interpreted, usual_cost
from grisaille.estimation.counted import Score
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Reviewed, Verdict
from grisaille.estimation.exact_data import EXPLAINED, explained_exactly, find_endless_fall
from grisaille.estimation.levels import (
    Zeros,
    begin_near,
    find_zeros,
    level_guess,
    scan,
)
from grisaille.estimation.likelihood import Filtered, LikelihoodEvaluation, LikelihoodProblem, chosen
from grisaille.estimation.predictions.horizons import Horizon, last_used, told
from grisaille.estimation.problem import Problem
from grisaille.estimation.question import Question
from grisaille.estimation.requirements import bytes_of_filters
from grisaille.estimation.subject import STATIC, Subject
from grisaille.estimators.kalman_ml import filter_choices as choices
from grisaille.estimators.kalman_ml.filter_check import check_filter, fitted_filter
from grisaille.estimators.kalman_ml.report import (
    covariance_of,
    describe,
    discretisation_notes,
    edge_notes,
    failure_note,
    off_a_maximum,
    sentence,
)
from grisaille.estimators.kalman_ml.score_sandwich import score_sandwich
from grisaille.experiment.dating import clock_of
from grisaille.experiment.experiment import Experiment
from grisaille.filtering.exact.formulas import bends
from grisaille.filtering.horizon import HorizonRunner
from grisaille.filtering.methods import FilterMethod
from grisaille.filtering.runner import FilterOptions, FilterRunner
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.filtering.start import Carried, is_flat
from grisaille.filtering.steps import steps_of
from grisaille.model.classes import Model
from grisaille.optimization import scoring
from grisaille.optimization.convergence import NEAR
from grisaille.optimization.journal import Journal, Progress
from grisaille.optimization.search import Outcome, Search
from grisaille.structure.prepared import structure_of
from grisaille.structure.reduction import Structure
from grisaille.trial import Trial
from grisaille.trial.movement import KINDS, Kind
from grisaille.trial.refusals import refuse_few_instants, refuse_static, scheduled_trial
from grisaille.trial.unknown import Unknown

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.band_kinds import Bands

Likely = Search[LikelihoodEvaluation]
SAME = 1e-6
"""Log-likelihoods of the same steps, with matrix exponentials of other accuracy, that agree."""
OF_OUR_FILTERS = {
    "propagation": "linearize", "substeps": "auto", "solver": "rk4", "sigma": (1.0, 0.0, 3.0), "robust": None,
    "first_observation": "include", "horizon": 1,
}  # fmt: skip
"""Options that speak of the package's own filters, and what they are where nothing is said."""
BESIDE = 1e-3
"""Standard errors by which a search may move before steps between samples are chosen again."""
OFTEN = 1.5
"""Steps between samples, on average, that are worth a word."""
STIFF = 9
"""Doublings of a matrix exponential from which on a state settles a hundred times faster than samples come."""
MANY_STATES = 60
"""States from which on their covariance is worth a word: a gradient over 50 samples takes a tenth of a second, or most
of one where the model is not linear, and eight times as long with twice as many."""
WITHOUT = "gr.SimulatedPEM() or gr.OutputError()"
PER_STATE = 1e-8
"""Seconds of a gradient for each sample and cube of the number of states, at least: where the model is not linear it
takes some seven times as long."""
MINUTES = 30.0
"""Seconds of a search of ``FEWEST`` gradients from which on that is said beforehand."""
FEWEST = 40
HARDLY = 2e-3
"""The same of steps that were refined in other cells."""


@dataclass(frozen=True)
class KalmanML(Estimator):
    """Options of maximum likelihood by Kalman filtering.

    filter : ``"linear"``, the exact filter of models that are linear in their states; ``"extended"``, by linearisation
        along the way; ``"iterated"``, which linearises again at the updated state; ``"unscented"``, by sigma points;
        ``"auto"`` takes the exact one where it applies, the unscented one where the model jumps with a state, and the
        extended one elsewhere, unless the unscented one would move the estimates by 0.3 standard errors or more; or
        the options of a filter of your own, which derive from ``grisaille.filtering.FilterMethod``
    propagation : of nonlinear filters between samples: ``"linearize"``, exact for the model linearised on each substep;
        ``"moments"``, integrating the equations of mean and covariance with error control; ``"square-root"``, of the
        unscented filter, integrating the sigma points themselves
    solver : of the last two: ``"rk4"``, or ``"euler"`` for comparison with programs that take such steps
    substeps : steps of nonlinear filters between samples, or ``"auto"``: chosen at the guess and again at the optimum
    sigma : α, β, κ of the unscented filter's points
    initial_covariance : of the states before the first sample: ``"first-sample"`` (what process noise builds up over
        the first interval), ``"stationary"``, ``"diffuse"`` (nothing is known), ``{state: variance}`` with np.inf where
        nothing is known, or a matrix; disturbances start stationary
    first_observation : ``"include"`` it in the likelihood, or ``"condition"`` on it
    robust : None, or Huber's threshold c in standard deviations: larger innovations count linearly; ``("smooth", c)``
        goes over from squares to linear without a kink in the second derivative. The filter itself is not changed, and
        the criterion is then no likelihood
    horizon : predictions over so many samples, or over a duration such as ``"1 day"``, enter instead of those over one
        sample: a criterion for forecasting, which is a likelihood for 1 only
    bounds : kept by the ``"optimizer"``, or by ``"transform"``: a search in log((θ − a)/(b − θ)) with a penalty
    penalty : λ of that penalty, λ Σ (|a|/(θ − a) + |b|/(b − θ) − 1); with bounds="transform" only
    tolerance, max_evaluations : when to stop
    compiled : as in ``gr.simulate``

    Examples
    --------
    With the tank and the data of ``help(gr.fit)``:

    >>> gr.fit(Tank(), data, ["k", "q"], gr.KalmanML())["k"]
    0.5007 ± 0.0014
    """

    filter: Literal["auto", "linear", "extended", "iterated", "unscented"] | FilterMethod = "auto"
    propagation: Literal["linearize", "moments", "square-root"] = "linearize"
    substeps: int | Literal["auto"] = "auto"
    initial_covariance: Any = "first-sample"
    first_observation: Literal["include", "condition"] = "include"
    robust: Any = None
    horizon: int | str = 1
    bounds: Literal["optimizer", "transform"] = "optimizer"
    penalty: float = 1e-4
    tolerance: float = 1e-11
    max_evaluations: int = 500
    compiled: bool | None = None
    solver: Literal["rk4", "euler"] = "rk4"
    sigma: tuple[float, float, float] = (1.0, 0.0, 3.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "filter", choices.checked_filter(self.filter))
        choices.checked_steps(self.filter, self.propagation, self.solver, self.substeps, self.initial_covariance)
        choices.one_of("first_observation", self.first_observation, choices.FIRST)
        choices.one_of("bounds", self.bounds, choices.BOUNDS)
        object.__setattr__(self, "horizon", choices.checked_horizon(self.horizon))
        choices.whole_number("max_evaluations", self.max_evaluations)
        choices.positive("penalty", self.penalty, zero=True)
        choices.positive("tolerance", self.tolerance)
        object.__setattr__(self, "initial_covariance", choices.checked_covariance(self.initial_covariance))
        object.__setattr__(self, "sigma", choices.checked_sigma(self.sigma))
        object.__setattr__(self, "robust", choices.checked_robust(self.robust))
        if self.own_filter is not None:
            choices.refuse_beside_own(self.own_filter, vars(self), OF_OUR_FILTERS)
        if is_flat(self.initial_covariance):
            for name, value, plain in (
                ("robust", self.robust, None),
                ("first_observation", self.first_observation, "include"),
                ("horizon", self.horizon, 1),
            ):
                if value != plain:
                    raise EstimationError(
                        f"initial_covariance={self.initial_covariance!r} goes with {name}={plain!r} only, not "
                        f"{value!r}: give large variances instead, initial_covariance={{state: variance}}."
                    )

    @property
    def own_filter(self) -> FilterMethod | None:
        """The options of a filter that is not the package's own."""
        return None if isinstance(self.filter, str) else self.filter

    @property
    def options(self) -> dict[str, Any]:
        own = self.own_filter
        return super().options if own is None else {**super().options, "filter": own.data}

    has_own_likelihood: ClassVar[bool] = True
    has_states: ClassVar[bool] = True
    follows: ClassVar[bool] = True
    filters: ClassVar[bool] = True
    predicts_ahead: ClassVar[Literal["yes"]] = "yes"
    deviance: ClassVar[Literal["likelihood"]] = "likelihood"
    redraws: ClassVar[str] = "model"

    @classmethod
    def verdict(cls, subject: Subject) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC)
        if not subject.disturbances and not subject.levels:
            same = "refused: without disturbances its likelihood is that of output error"
            return Verdict(False, same, may_serve=True)
        if not subject.disturbances:
            first = subject.levels[0]
            return Verdict(True, f"chosen: the likelihood, without disturbances, in which '{first}' is an unknown")
        if subject.unscheduled:
            return Verdict(False, f"refused: {subject.unscheduled}, and filters follow events of time only")
        if subject.unfiltered:
            return Verdict(False, f"refused: {subject.unfiltered}")
        if subject.hidden:
            why = "has no linear effect where it is zero, so a linearised filter would not see it"
            return Verdict(False, f"refused: {subject.hidden} {why}")
        model, name = subject.stochastic, subject.flat.name
        if not model.nonlinear and model.varying:
            what = f"with coefficients that vary with {', '.join(model.varying)}"
            return Verdict(True, f"chosen: {name} is linear in its states, {what}")
        if not model.nonlinear and bends(ca.veccat(model.drift, model.noise), model):
            return Verdict(True, f"chosen: {name} is linear in its states, with formulas of inputs whose slope jumps")
        if not model.nonlinear:
            return Verdict(True, f"chosen: {name} is linear in its states, so the filter and its likelihood are exact")
        if model.jumps:
            first_jump = model.jumps[0]
            jumping = f"{first_jump.place} jumps with {first_jump.text}"
            return Verdict(True, f"chosen: the unscented filter, because {jumping}")
        return Verdict(True, f"chosen: the extended filter, because {model.nonlinear} is not linear")

    def about_shared_noise(self, estimate: Estimate, first: str, second: str) -> str:
        return (
            f"Declare in the model what they share: a disturbance in both outputs, or the covariance of their noise, "
            f'def noise_covariance(self): return {{("{first}", "{second}"): …}}. gr.OutputError(errors="robust") has '
            f"errors that take it into account, where no disturbance acts."
        )

    @property
    def tests_starts(self) -> bool:
        return self.is_likelihood

    @property
    def score(self) -> Score | None:
        return None if self.robust is None else partial(choices.huber_score, self.robust)

    @property
    def robust_way(self) -> str:
        return "gr.KalmanML(robust=3.0)" if self.robust is None and not is_flat(self.initial_covariance) else ""

    @property
    def predictions_are(self) -> str:
        return told(self.horizon)

    @property
    def has_sandwich(self) -> bool:
        return not self.is_likelihood

    @property
    def no_profiles(self) -> str:
        if self.is_likelihood:
            return ""
        return (
            "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: fit with "
            "robust=None, horizon=1, or use gr.bootstrap."
        )

    @property
    def not_a_likelihood(self) -> str:
        return "a robust loss" if self.robust is not None else f"horizon={self.horizon!r}"

    def predict_ahead(self, fit: Fitted, experiment: Any, horizon: Horizon) -> xr.Dataset:
        from grisaille.estimation.predictions.states import predictions

        return predictions(fit, experiment, horizon, self.case_of)

    def predict_with_bands(
        self, fit: Fitted, experiment: Any, horizon: Horizon | None, bands: Bands = "all"
    ) -> xr.Dataset:
        from grisaille.estimation.predictions.states import predictor
        from grisaille.estimation.predictions.whole_bands import ahead_with_bands

        ahead = np.inf if horizon is None else horizon
        if bands == "noise":
            return self.predict_ahead(fit, experiment, ahead)
        return ahead_with_bands(fit, experiment, ahead, predictor(fit, experiment, ahead, self.case_of))

    def states(self, fit: Fitted, experiment: Any, names: Any, level: float, bands: Bands | None = None) -> xr.Dataset:
        from grisaille.estimation.predictions.states import filtered_states

        return filtered_states(fit, experiment, names, level, self.case_of, bands)

    def led(self, fit: Fitted, experiment: Any, names: Sequence[str]) -> Mapping[str, xr.DataArray]:
        from grisaille.estimation.predictions.states import states_of_case

        case = self.case_of(fit.initial_model, experiment, fit.estimate.unknowns)
        found = states_of_case(case, fit.estimate.theta, list(names))
        return {n: found[n].sel(given="filtered", statistic="mean") for n in names}

    def continued(self, fit: Fitted, experiment: Any) -> KalmanML:
        """Beginning with mean and covariance of all states at the last instant of an experiment."""
        case = self.case_of(fit.initial_model, experiment, fit.estimate.unknowns)
        found = case.runner.states(*chosen(case, fit.estimate.theta))
        known = Carried.of(found.x_filt[-1], found.P_filt[-1], found.open_filtered[-1])
        return replace(self, initial_covariance=known)

    def states_at(self, problem: Problem, theta: np.ndarray) -> dict[str, xr.Dataset]:
        from grisaille.estimation.predictions.states import states_of_case

        return {c.name: states_of_case(c, theta) for c in problem.begun.cases}

    @property
    def is_likelihood(self) -> bool:
        """Robust losses and predictions over several samples are not likelihoods."""
        return self.robust is None and self.horizon == 1

    @property
    def bound_penalty(self) -> BoundPenalty:
        return BoundPenalty(self.penalty if self.bounds == "transform" else 0.0)

    def further_unknowns(self, structure: Structure, data: Sequence[Any], wanted: Sequence[str]) -> list[str]:
        """Noise levels that the model leaves open are estimated too."""
        measured = dict.fromkeys(o for e in data for o in e.outputs)
        said = {name.partition("@")[0] for name in wanted}
        still = [f"noise({o})" for o in measured if structure.model.outputs[o].noise is None]
        return [*wanted, *(n for n in still if n not in said)]

    def bytes_needed(self, question: Question) -> float:
        """Records are filtered one after the other, each with derivatives by the unknowns that move it."""
        return bytes_of_filters(question)

    def pose(self, question: Question) -> LikelihoodProblem:
        """The problem of a model and its data."""
        structure, data, unknowns = question.structure, question.data, question.unknowns
        open_levels = [k for k, u in enumerate(unknowns) if u.kind in ("scale", "noise") and not np.isfinite(u.guess)]
        guessed = [level_guess(structure, data, u, unknowns) if k in open_levels else u for k, u in enumerate(unknowns)]
        cases = [self._case(e, *trial) for e, trial in zip(data, question.trials, strict=True)]
        guess = np.array([u.guess for u in guessed])
        prepared = [c.runner.prepare(c.own(guess)) for c in cases]
        known = question.steps or (None,) * len(cases)
        stepped = [
            replace(c, discretisation=steps) if steps else _discretised(c, guess)
            for c, steps in zip(cases, known, strict=True)
        ]
        if prepared[0].levels:
            guessed = _searched_by_logarithm(prepared[0], guessed)
        if self.bounds == "transform":
            guessed = transformed(guessed)
        return LikelihoodProblem(guessed, stepped, self.bound_penalty, open_levels)

    def case_of(
        self, model: Model, experiment: Any, unknowns: Sequence[Unknown], kinds: Sequence[Kind] = KINDS
    ) -> Case:
        """One experiment with its filter; ``kinds`` of unknowns move it."""
        return self._case(experiment, *trial_of(model, experiment, unknowns, kinds))

    def _case(self, experiment: Any, trial: Trial, mine: tuple[int, ...]) -> Filtered:
        refuse_static(trial, "a filter")
        trial = scheduled_trial(trial, "a filter") if trial.flat.whens else trial
        refuse_few_instants(trial, "a filter")
        runner: FilterRunner = (
            FilterRunner(trial, self._filter_options())
            if self.horizon == 1
            else HorizonRunner(
                trial, self._filter_options(), last_used(self.horizon, trial.times, clock_of(experiment))
            )
        )
        return Case(experiment, trial, Ready(runner), trial.data.outputs, mine)

    def _filter_options(self) -> FilterOptions:
        return FilterOptions(
            filter=self.filter if isinstance(self.filter, str) else "auto", own=self.own_filter,
            propagation=self.propagation, substeps=self.substeps,
            initial_covariance=self.initial_covariance, condition=self.first_observation == "condition",
            robust=choices.signed_threshold(self.robust), compiled=self.compiled, sigma=SigmaPoints(*self.sigma),
            solver=self.solver,
        )  # fmt: skip

    def level_guesses(
        self, model: Model, experiments: Any, estimate: Iterable[object] | None = None
    ) -> dict[str, float]:
        """Sane starts of all noise levels that are estimated, by name: what a fit without ``guess=`` begins with.

        Each kind, ``scale(…)`` and ``noise(…)``, is moved together over orders of magnitude to the largest likelihood.
        """
        from grisaille.estimators.fitting import build_problem

        problem = build_problem(model, experiments, estimate, self)
        assert isinstance(problem, LikelihoodProblem)
        theta = scan(Search(problem), problem.cases, problem.open_levels)
        return {u.name: float(v) for u, v in zip(problem.unknowns, theta, strict=True) if u.kind in ("scale", "noise")}

    def beforehand(self, model: Model, experiments: Sequence[Experiment]) -> str:
        """That the covariance of many states makes every evaluation long."""
        structure, samples = structure_of(model), sum(len(e.time) for e in experiments if e.time is not None)
        states = structure.system.nx
        each = PER_STATE * samples * states**3
        if states < MANY_STATES or FEWEST * each < MINUTES:
            return ""
        return (
            f"gr.KalmanML carries the covariance of all {states} states of {structure.model.name} through {samples} "
            "samples, whose cost grows with the cube of their number: one evaluation with derivatives takes about "
            f"{each:.1g} s where the model is linear and several times that where it is not, and a fit takes {FEWEST} "
            f"of them or more. {WITHOUT} carry no covariance of states."
        )

    def cost(self, problem: Problem) -> Cost:
        """Hessians by differences of gradients, twice, take most evaluations; steps make each of them long."""
        steps = [s for c in problem.begun.cases if (s := steps_of(c.discretisation)).counts]
        counts = np.concatenate([s.counts for s in steps]) if steps else np.ones(1)
        causes, faster = interpreted(self.compiled, "KalmanML") if steps else ([], [])
        if counts.mean() > OFTEN:
            causes.append(f"{counts.mean():.2g} steps between samples on average, {counts.max()} at most")
        states = max(c.trial.structure.system.nx for c in problem.cases)
        if states >= MANY_STATES:
            causes.append(f"the covariance of {states} states, whose cost grows with the cube of their number")
            faster.append(f"{WITHOUT}, which carry no covariance of states")
        if self.own_filter is not None and problem.cases[0].runner.filter.derivatives is None:
            causes.append(f"derivatives by differences, {2 * len(problem.unknowns)} passes of the filter for each")
        if self.filter == "unscented":
            faster.append("the extended filter, gr.KalmanML(filter='extended'), where the model is smooth")
        if any(s.doublings > STIFF for s in steps):
            faster.append("algebraic equations instead of der(…) for states that settle between two samples at once")
        return usual_cost(problem, 20 + 7 * len(problem.unknowns), causes, faster)

    def estimate(self, problem: Problem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin, problem = time.perf_counter(), problem.of(LikelihoodProblem).begun
        search = Search(problem, Journal.of(progress), self.max_evaluations)
        search.find_endless = partial(find_endless_fall, problem)
        guessed = search.unknowns
        if problem.open_levels:
            guessed = begin_near(search, problem.cases, problem.open_levels)
            if any(a.guess != b.guess for a, b in zip(guessed, search.unknowns, strict=True)):
                search.journal.kept = problem = self._stepped_at(problem, search.guess)
                search.restart(search.guess, problem)
        start = search.guess
        found = self._searched(problem, search, guessed)
        full = _with_all_steps(problem)
        is_exact = bool(found.search.endless or explained_exactly(found.problem, found.polished.evaluation))
        if not found.is_converged and full is not None and search.left and not is_exact:
            # steps that were taken away where the search began may be missed on its way: once more with all of them
            again = Search(full, search.journal, search.most)
            again.go_on_from(start)
            if again.evaluate(start, quietly=True).completed:
                other = self._searched(full, again, guessed)
                found = other if other.is_converged or other.objective < found.objective else found
        search.journal.kept = found.problem
        return self._conclude(
            found.problem, found.search, guessed, found.outcome, found.polished, found.free, found.zeros,
            time.perf_counter() - begin,
        )  # fmt: skip

    def _searched(self, problem: LikelihoodProblem, search: Likely, guessed: Sequence[Unknown]) -> _Found:
        """Search from the guess, with steps that are chosen again where it ends."""
        before, stepped_at = None, search.guess
        for rounds_left in (3, 2, 1, 0):
            try:
                outcome = scoring.minimize(search, tolerance=self.tolerance)
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
            again = self._gone_on(problem, search, zeros, restart, outcome.evaluation.objective)
            if again is None:
                break
            stepped_at = restart
            search.journal.kept = problem = again
            search.restart(restart, problem)
        free = scoring.free_unknowns(search, _inside(search.guess, zeros.evaluation, zeros.zero)) & ~zeros.zero
        return _Found(problem, search, outcome, _polish(search, zeros.evaluation, free, zeros.zero), free, zeros)

    def review(
        self, problem: Problem, estimate: Estimate, progress: Progress | None = None, *, may_change: bool = True
    ) -> Reviewed:
        """Compare the filter with another one; ``filter="auto"`` then takes the unscented one where that is felt."""
        check = None if EXPLAINED in estimate.extra else check_filter(problem.of(LikelihoodProblem), estimate)
        if check is None:
            return Reviewed(self, estimate)
        is_extended = self.filter == "auto" and fitted_filter(estimate.cases) == "extended"
        if may_change and is_extended and check.is_noted and not check.other_is_blind:
            found = self._by_unscented(problem.of(LikelihoodProblem), estimate, progress)
            if found is not None:
                names = [u.name for u in estimate.unknowns]
                because = f"because {check.described(names)}"
                note = f"filter: the unscented one was taken, {because}."
                found = replace(found, estimate=replace(found.estimate, notes=(*found.estimate.notes, note)))
                return replace(found, reason=f"chosen: the unscented filter, {because}")
        return Reviewed(self, replace(estimate, approximation=check))

    def _by_unscented(self, problem: LikelihoodProblem, before: Estimate, progress: Progress | None) -> Reviewed | None:
        """The fit by the unscented filter, from where the extended one ended; None where it has no maximum there."""
        method, begin = replace(self, filter="unscented"), time.perf_counter()
        try:
            cases = [method._case(c.experiment, c.trial, c.unknowns) for c in problem.cases]
            other = LikelihoodProblem(problem.unknowns, cases, self.bound_penalty)
            other.with_guess(np.where(before.theta == 0, problem.guess, before.theta))
            other = other.but(cases=tuple(_discretised(c, other.guess) for c in cases))
            found = method.estimate(other, _journal_after(progress))
        except (EstimationError, np.linalg.LinAlgError):
            return None
        if before.converged and not (found.converged and _determines_as_much(before, found)):
            return None
        seconds = before.seconds + time.perf_counter() - begin
        found = replace(found, evaluations=before.evaluations + found.evaluations, seconds=seconds)
        return Reviewed(method, replace(found, approximation=check_filter(other, found)))

    def _gone_on(
        self, problem: LikelihoodProblem, search: Likely, zeros: Zeros, restart: np.ndarray, objective: float
    ) -> LikelihoodProblem | None:
        """The problem to search again from a point, where there is a reason to, and a likelihood there.

        A level ended on a saddle, or the steps of nonlinear filters, chosen again so that the guess does not matter,
        are others. Steps with which the filter breaks down at the optimum are not taken.
        """
        if zeros.saddle.any():
            return problem if search.evaluate(restart, sensitive=False, quietly=True).completed else None
        if self.substeps != "auto":
            return None
        renewed = self._stepped_at(problem, restart)
        pairs = [
            (steps_of(old.discretisation), steps_of(new.discretisation))
            for old, new in zip(problem.cases, renewed.cases, strict=True)
        ]
        if all(a.key == b.key for a, b in pairs):
            return None
        found = renewed.evaluate(restart, sensitive=False)
        search.journal.count(found, quietly=True)
        same = HARDLY if any(b.is_uneven for _, b in pairs) else SAME
        are_others = any(a.common != b.common for a, b in pairs)
        return renewed if found.completed and (are_others or abs(found.objective - objective) > same) else None

    def _stepped_at(self, problem: LikelihoodProblem, theta: np.ndarray) -> LikelihoodProblem:
        """With steps that suit these values, where they are not given."""
        if self.substeps != "auto":
            return problem
        return problem.but(cases=tuple(_rediscretised(c, theta) for c in problem.cases))

    def _conclude(
        self,
        problem: LikelihoodProblem,
        search: Likely,
        guessed: Sequence[Unknown],
        outcome: Outcome[LikelihoodEvaluation],
        polished: scoring.Polished[LikelihoodEvaluation],
        free: np.ndarray,
        zeros: Zeros,
        seconds: float,
    ) -> Estimate:
        evaluation = polished.evaluation
        refusal = problem.refusal(evaluation.theta)
        if refusal:
            raise EstimationError(f"{refusal} {_where(problem.unknowns, evaluation.theta)}")
        exactly = search.endless or explained_exactly(problem, evaluation)
        converged = is_near(polished) and not exactly
        limits = {
            f"limit({u.name})": float(limit)
            for u, limit in zip(problem.unknowns, zeros.limits, strict=True)
            if np.isfinite(limit)
        }
        covariance, journal = covariance_of(search, polished), search.journal
        if not self.is_likelihood:
            reach = max(c.runner.reach for c in problem.cases)
            covariance = score_sandwich(problem, evaluation.theta, covariance, reach)
        notes = describe(search, evaluation, covariance, free, zeros) + edge_notes(problem, polished)
        if not polished.is_minimum:
            notes = off_a_maximum(problem, notes)
        notes += discretisation_notes(problem, search, evaluation)
        if journal.failures:
            notes.append(failure_note(journal.failures))
        notes += self._conventions(problem, evaluation)
        return Estimate(
            unknowns=tuple(guessed),
            theta=evaluation.theta,
            covariance=covariance,
            free=free,
            noise={},
            log_likelihood=evaluation.log_likelihood,
            is_likelihood=self.is_likelihood,
            count=problem.count,
            objective=evaluation.objective,
            evaluation=evaluation,
            cases=problem.cases,
            converged=converged,
            status=f"NOT converged: {exactly}"
            if exactly
            else sentence(converged, outcome, polished, journal.evaluations),
            notes=tuple(notes),
            trace=tuple(journal.trace),
            evaluations=journal.evaluations,
            failures=tuple(journal.failures),
            seconds=seconds,
            offset=float(np.sqrt(polished.decrement)),
            extra={
                **({"penalty": evaluation.penalty} if self.bounds == "transform" else {}),
                **({EXPLAINED: 1.0} if exactly else {}),
                **limits,
            },
        )

    def _conventions(self, problem: LikelihoodProblem, evaluation: LikelihoodEvaluation) -> list[str]:
        """What makes the criterion something other than a likelihood, and what differences stand for."""
        notes = []
        if self.own_filter is not None and problem.cases[0].runner.filter.derivatives is None:
            notes.append(
                f"derivatives: the filter {type(self.own_filter).__name__} has none, so the gradient is made of "
                f"central differences, two passes over the record for each unknown."
            )
        if self.robust is not None:
            kind, c = ("smoothly, ", self.robust[1]) if isinstance(self.robust, tuple) else ("", self.robust)
            notes.append(
                f"robust: innovations beyond {c:g} standard deviations count {kind}linearly; standard errors are those "
                f"of the sandwich.{_smaller_levels(self.robust)}"
            )
        if self.horizon != 1:
            notes.append(
                f"horizon: predictions {told(self.horizon)} were fitted; their errors are not independent, so "
                f"this is no likelihood and standard errors are those of the sandwich."
            )
        if self.bounds == "transform":
            notes.append(
                f"penalty: bounds are kept by a penalty of {evaluation.penalty:.3g}, not in the log-likelihood."
            )
        return notes


def _determines_as_much(before: Estimate, after: Estimate) -> bool:
    """Whether a fit determines every unknown that the one before it did."""
    known, still = (np.isfinite(np.diag(e.covariance)) for e in (before, after))
    return bool((still | ~known).all())


def _journal_after(progress: Progress | None) -> Journal:
    """A new journal that reports to whom the one before did."""
    before = Journal.of(progress)
    return Journal(before.report, before.watch)


@dataclass(frozen=True, eq=False)
class _Found:
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


def is_beside(evaluation: LikelihoodEvaluation, theta: np.ndarray) -> bool:
    """Tell whether a point is so close to other values that steps chosen there are those chosen here."""
    away = evaluation.theta - theta
    return bool(away @ evaluation.curvature @ away < BESIDE**2)


def is_near(polished: scoring.Polished[LikelihoodEvaluation]) -> bool:
    """Tell whether a point is a maximum of the likelihood, near enough to count as converged."""
    return polished.is_minimum and polished.decrement < NEAR**2


def _with_all_steps(problem: LikelihoodProblem) -> LikelihoodProblem | None:
    """The same with the most steps of a cell in every cell; None where all have them."""
    steps = [steps_of(c.discretisation) for c in problem.cases]
    if not any(s.is_uneven for s in steps):
        return None
    cases = zip(problem.cases, steps, strict=True)
    return problem.but(cases=tuple(replace(c, discretisation=c.discretisation and s.everywhere()) for c, s in cases))


def _discretised(case: Case, theta: np.ndarray) -> Case:
    """With steps that suit these values; raises where there are none."""
    known, own = case.discretisation, case.own(theta)
    return replace(case, discretisation=case.runner.discretise(own, known))


def _rediscretised(case: Case, theta: np.ndarray) -> Case:
    """The same, or the case as it is where no steps suit."""
    try:
        return _discretised(case, theta)
    except EstimationError:
        return case


def _smaller_levels(robust: Any) -> str:
    """What linear counting makes of the levels of normal noise: s times their size, with E ψ(e/s) e/s = 1."""
    e = np.linspace(-10, 10, 4001)
    density = np.exp(-(e**2) / 2) / np.sum(np.exp(-(e**2) / 2))
    c, size = robust[1] if isinstance(robust, tuple) else robust, 1.0
    for _ in range(50):
        r = e / size
        weight = 1 / np.sqrt(1 + (r / c) ** 2) if isinstance(robust, tuple) else c / np.maximum(np.abs(r), c)
        size *= float(np.sqrt(np.sum(weight * r**2 * density)))
    return f" Levels of normal noise come out at about {size:.2g} of their size." if size < 0.99 else ""


def _where(unknowns: Sequence[Unknown], theta: np.ndarray) -> str:
    """Where the search had ended."""
    found = ", ".join(f"{u.name} = {v:.4g}" for u, v in zip(unknowns, theta, strict=True))
    return f"(The search ended at {found}.)"


def _searched_by_logarithm(model: StochasticModel, unknowns: Sequence[Unknown]) -> list[Unknown]:
    """Parameters that are nothing but noise levels (``scale=sigma``) are searched on a log scale too."""
    return [
        replace(u, logarithmic=True)
        if u.kind == "parameter" and u.target in model.levels and u.lower == 0 and u.guess > 0 and not u.logarithmic
        else u
        for u in unknowns
    ]


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
