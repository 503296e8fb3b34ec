"""From a model and data to a problem, its solution, or (``gr.evaluate``) the criterion at given values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from grisaille import interrupts
from grisaille.bound_experiment.shared_refusals import refuse_always
from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.criterion_value import CriterionValue, evaluate_criterion
from grisaille.estimation.curves.vectors import spread_over_elements
from grisaille.estimation.determination.prior_information import prior_note
from grisaille.estimation.effort.cost import LONG_SEARCH_SECONDS, duration_note
from grisaille.estimation.effort.fit_memory import require_fit
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, ReviewedEstimate
from grisaille.estimation.experiment_terms import unknown_starts
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_refusals import refuse_laws, refuse_unknown_covariances
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimation.residuals.explanation import with_explanation
from grisaille.estimation.unknowns import (
    marked_names,
    parameter_guesses,
    refuse_strangers,
    resolve_unknowns,
    wanted_names,
)
from grisaille.estimators.choice import Candidate, find_candidates
from grisaille.estimators.dead_time_scan import (
    begin_at_dead_times,
    dead_times,
    refuse_open_dead_times,
    settled_at_corner,
)
from grisaille.estimators.declared_starts import unmet_start_notes, with_tested_starts
from grisaille.estimators.kinks import estimate_between_kinks
from grisaille.estimators.vanishing_unknowns import with_vanished_at_bounds
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.times.time_units import refuse_mixed_units
from grisaille.model.classes import Model
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.laws.law import Law

F = TypeVar("F", bound=Fitted)
STAGE_FAILURES = (GrisailleError, np.linalg.LinAlgError, ArithmeticError)
"""Of stages after a search, which must not take its answer with them."""


def fit_problem(
    model: Model,
    problem: EstimationProblem,
    method: Estimator,
    why: Mapping[str, str],
    report: Progress | None = None,
    *,
    kind: type[F],
    may_change: bool = True,
    tests_starts: bool = False,
) -> F:
    """Solve a problem that is already posed.

    kind : of fit that the answer is
    may_change : whether the method may take another variant of itself where the one asked for does not suit
    tests_starts : whether it is also tested that records begin where they were declared to
    """
    asked, journal, flat = problem.unknowns, SearchJournal.of(report), structure_of(model).model
    delayed = dead_times(problem) if any(c.trial.structure.system.delays for c in problem.cases) else []
    begun = begin_at_dead_times(problem, delayed) if delayed else []
    try:
        found = estimate_between_kinks(problem, method, journal)
        if delayed:
            corners = partial(settled_at_corner, problem, delayed, method, found, journal)
            found = _keeping(found, "the search beside the corners of the criterion", corners)
        bounds = partial(with_vanished_at_bounds, problem, method, found, journal)
        found = _keeping(found, "the search on the bounds of unknowns that vanish", bounds)
    except np.linalg.LinAlgError as error:
        raise EstimationError(
            f"The search came to where the criterion has no curvature that numbers can hold ({error}). Where a level "
            f"of noise is estimated from data that the model explains exactly (simulated without noise, a sensor that "
            f"hangs), there is none to find: declare the noise, or leave such data out. Else scale the units."
        ) from error
    except KeyboardInterrupt:
        interrupts.acknowledge()
        reached = method.interrupted(problem, journal)
        if reached is None:
            raise
        found, tests_starts = reached, False
    else:
        reviewed = _reviewed(method, problem, found, journal, may_change)
        method, found = reviewed.method, reviewed.estimate
        why = {**why, type(method).__name__: reviewed.reason} if reviewed.reason else why
    asked = tuple(replace(u, logarithmic=v.logarithmic) for u, v in zip(asked, found.unknowns, strict=True))
    if tests_starts and not delayed:
        found = with_tested_starts(model, problem, method, replace(found, unknowns=asked))
    found = replace(found, unknowns=asked)
    explained = partial(with_explanation, found, method, disturbed=bool(flat.disturbances))
    found = _keeping(found, "the comparison of the residuals with the noise", explained)
    data = [c.experiment for c in problem.cases]
    remarks = _remarks(model, data)
    try:
        believed = prior_note(found.unknowns, found.theta, found.evaluation.information, found.free)
    except STAGE_FAILURES as error:
        believed = [f"not confirmed: what the data add to the priors could not be computed ({error})."]
    believed = [*unmet_start_notes(problem, found.theta), *believed]
    took = (
        [duration_note(method.effort.cost(problem), found.evaluations, found.seconds)]
        if found.seconds >= LONG_SEARCH_SECONDS
        else []
    )
    found = replace(found, notes=(*found.notes, *believed, *begun, *method.advice.remarks(flat), *remarks, *took))
    if problem.transcription:
        found = replace(found, transcription=problem.transcription)
        name = type(method).__name__
        why = {**why, name: f"{why.get(name, 'given')}: {problem.transcription}"}
    return kind(model, data, method, found, why)


def _remarks(model: Model, data: Sequence[Experiment]) -> list[str]:
    """Return remarks on the data, alone and beside the model; what holds for all experiments appears once."""
    said: dict[str, list[str]] = {}
    for experiment in data:
        for note in dict.fromkeys((*experiment._remarks_beside(model), *experiment.check(model))):
            said.setdefault(note, []).append(str(experiment.name))
    return [note if len(names) == len(data) else f"{', '.join(names)}: {note}" for note, names in said.items()]


def _reviewed(
    method: Estimator, problem: EstimationProblem, found: Estimate, journal: SearchJournal, may_change: bool
) -> ReviewedEstimate:
    """Return the result of a method's check of its own fit; an interruption does not lose the estimate."""
    try:
        return method.review(problem, found, journal, may_change=may_change)
    except (KeyboardInterrupt, *STAGE_FAILURES) as error:
        interrupts.acknowledge()
        why = "INTERRUPTED" if isinstance(error, KeyboardInterrupt) else f"approximation: {error}"
        return ReviewedEstimate(
            method, replace(found, notes=(*found.notes, f"{why} before the approximation was checked."))
        )


def _keeping(found: Estimate, stage: str, step: Callable[[], Estimate]) -> Estimate:
    """Return what a stage after the search makes of an estimate; the estimate itself, with a note, where the stage
    fails.
    """
    try:
        return step()
    except STAGE_FAILURES as error:
        note = f"not confirmed: {stage} failed ({str(error).rstrip('.')}); the estimates are those before it."
        return replace(found, notes=(*found.notes, note))


@checked
def evaluate(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    method: Estimator | str = "auto",
    parameters: Mapping[str, float] | Fitted | pd.DataFrame | None = None,
    estimate: Iterable[object] | None = None,
) -> CriterionValue:
    """Return the criterion at given values, its gradient, residuals and states; nothing is estimated.

    Parameters
    ----------
    model, experiments, method : as in ``gr.fit``
    parameters : values by name, a ``Fit``, or the table of one; the model's own values otherwise
    estimate : what the gradient is taken by beside ``parameters``; where neither is given, what declares bounds or a
        prior, which may be nothing

    Returns
    -------
    ``objective``, ``log_likelihood`` (NaN where the criterion is not one), ``gradient`` by name, ``residuals``,
    ``predictions`` by experiment, and ``states`` where the method estimates them.

    Examples
    --------
    With the tank, the data and the fit of ``help(gr.fit)``:

    >>> here = gr.evaluate(Tank(), data, parameters=fit)
    >>> there = gr.evaluate(Tank(), data, parameters={"k": 0.4, "q": 2.0})
    >>> here.log_likelihood > there.log_likelihood, sorted(there.gradient)
    (True, ['k', 'q'])
    """
    given = spread_over_elements(structure_of(model).model, _given_values(parameters), "parameters")
    data = checked_experiments(model, experiments)
    beside = () if estimate is None else estimate
    names: list[object] = list(dict.fromkeys([*given, *beside])) or list(marked_names(structure_of(model)))
    candidates = find_candidates(method, model, data, names)
    problem, chosen, _ = pose_first(candidates, model, data, names, given, bounds={}, searched=False)
    point = problem.evaluate(problem.guess)
    if not point.completed:
        raise EstimationError(f"The model cannot be simulated at the given parameters: {point.failure}")
    refusal = problem.refusal(problem.guess)
    if refusal:
        raise EstimationError(refusal)
    point, likelihood = chosen.density.at(problem, point)
    likelihood = likelihood if chosen.is_likelihood else float("nan")
    asked = [u.name for u in problem.unknowns]
    values = dict(zip(asked, problem.guess.tolist(), strict=True))
    again = partial(build_problem, model, data, asked, chosen, guess=values, bounds={}, searched=False)
    return evaluate_criterion(problem, point, likelihood, point.gradient, chosen, again)


def _given_values(parameters: Any) -> dict[str, float]:
    """Return values by name; of a fit or its table those of its unknowns, without noise that follows from residuals."""
    if isinstance(parameters, Fitted):
        return dict(zip(parameters.names, parameters.estimate.theta.tolist(), strict=True))
    if hasattr(parameters, "columns"):
        if "estimate" not in parameters.columns:
            raise EstimationError(
                f"parameters= is a table with the columns {', '.join(map(str, parameters.columns))}: a fit's own has "
                f"'estimate', by name. Give a dict, a Fit, or fit.parameters."
            )
        rows = parameters[parameters["status"] != "noise"] if "status" in parameters.columns else parameters
        return {str(name): float(value) for name, value in rows["estimate"].items()}
    if parameters is not None and not isinstance(parameters, Mapping):
        raise EstimationError(
            f"parameters= is {type(parameters).__name__}; give values by name, a fit, or the table of one."
        )
    return dict(parameters or {})


def build_problem(
    model: Model,
    experiments: Experiment | Sequence[Experiment],
    estimate: Iterable[object] | None,
    method: Estimator,
    *,
    guess: Mapping[str, float] | Fitted | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Any = None,
    local: Iterable[str] = (),
    searched: bool = True,
) -> EstimationProblem:
    """Return the problem of a model and its data, as the method poses it.

    searched : whether its minimum is; a criterion that is only evaluated need not have unknowns, and levels may be zero
    """
    return pose(model, checked_experiments(model, experiments), estimate, method, guess, searched=searched,
                bounds=bounds, priors=priors, local=local)  # fmt: skip


def pose_first(
    candidates: Sequence[Candidate],
    model: Model,
    data: Sequence[Experiment],
    estimate: Iterable[object] | None,
    guess: Mapping[str, float] | Fitted | None = None,
    **options: Any,
) -> tuple[EstimationProblem, Estimator, dict[str, str]]:
    """Pose the problem by the first estimator that takes it; return it with the estimator, and why it is that one.

    Where none does, the error is that of the first, with what the others said where that is something else.
    """
    refused: dict[str, str] = {}
    first: EstimationError | None = None
    for candidate in candidates:
        try:
            problem = pose(model, data, estimate, candidate.method, guess, **options)
        except EstimationError as error:
            first = first or error
            refused[type(candidate.method).__name__] = str(error)
        else:
            taken = candidate.instead_of(refused)
            return problem, taken.method, taken.why
    assert first is not None
    if len(set(refused.values())) == 1:
        raise first
    told = " ".join(f"gr.{name}() says: {text}" for name, text in refused.items())
    raise EstimationError(f"No method takes {structure_of(model).model.name} with these data. {told}") from first


def accepting_method(
    candidates: Sequence[Candidate], model: Model, data: Sequence[Experiment], *asked: Any, **options: Any
) -> tuple[Estimator, dict[str, str]]:
    """Return the first estimator that takes the problem, and why it is that one; a single candidate is not tried."""
    if len(candidates) == 1:
        return candidates[0].method, candidates[0].why
    return pose_first(candidates, model, data, *asked, **options)[1:]


def pose(
    model: Model,
    data: Sequence[Experiment],
    estimate: Iterable[object] | None,
    method: Estimator,
    guess: Mapping[str, float] | Fitted | None = None,
    *,
    searched: bool = True,
    **options: Any,
) -> EstimationProblem:
    """Return the problem of experiments that have been checked; ``options`` as in ``gr.fit``."""
    structure, before = structure_of(model), None
    given: dict[str, float] = {}
    if isinstance(guess, Fitted):
        given, before = dict(guess.beginning if searched else guess.estimates), guess
    elif guess:
        given = spread_over_elements(structure.model, guess, "guess")
    unknowns = find_unknowns(model, data, estimate, guess=given, method=method, searched=searched, **options)
    if given and before is None:
        refuse_strangers(unknowns, given, "guess")
    unknowns = parameter_guesses(structure.model, unknowns)
    if structure.depends_on_values:
        guessed = {**data[0].constants, **{u.target: u.guess for u in unknowns if u.kind == "parameter"}}
        structure = structure_of(model, evaluate_parameters(structure.model, guessed).values)
    question = FitRequest(model, structure, data, unknowns, before).with_starts()
    points = question.points()
    if searched and structure.system.delays:
        refuse_open_dead_times([p.trial for p in points], unknowns)
    refuse_always(points)
    levels = [u.name for u in unknowns if u.kind in ("scale", "noise")]
    if levels and not method.names_levels(question):
        raise EstimationError(
            f"gr.{type(method).__name__} does not estimate '{levels[0]}': use gr.KalmanML(). Open measurement noise "
            f"(noise=None) is estimated without being named."
        )
    require_fit(method, question)
    method.refuse_measurements(question)
    refuse_laws(method, question)
    refuse_unknown_covariances(method, question)
    problem = method.pose(question)
    _refuse_too_few(problem)
    return problem


def _refuse_too_few(problem: EstimationProblem) -> None:
    """Refuse fewer measurements and priors than unknowns; as many, where the size of noise is open too.

    With open noise, measurements that the unknowns can follow exactly make σ = 0 the most likely, whatever priors say.
    """
    levels = [u.name for u in problem.unknowns if u.kind in ("scale", "noise")]
    n, count = len(problem.unknowns) - min(len(levels), 1), problem.count
    believed = len(problem.prior(problem.guess).residuals)
    if not problem.unknowns or count > n or (count + believed >= n and not problem.sigma and not levels):
        return
    said = f"{count} measurement{'' if count == 1 else 's'} cannot determine {n} unknown{'' if n == 1 else 's'}"
    if problem.sigma or levels:
        output = next(iter(problem.sigma), levels[0][6:-1] if levels else "")
        raise EstimationError(
            f"{said} and the size of the noise; give more data or fewer unknowns, or say how large the noise of "
            f"'{output}' is: gr.Output(…, noise=0.1)."
        )
    raise EstimationError(f"{said}; give more data, priors={{…}}, or fewer unknowns.")


def find_unknowns(
    model: Model,
    data: Sequence[Experiment],
    estimate: Iterable[object] | None,
    *,
    priors: Any = None,
    method: Estimator | str | None = None,
    searched: bool = True,
    **options: Any,
) -> tuple[Unknown, ...]:
    """Return what is estimated, in order, with what the method adds; guesses are NaN where none was given."""
    if any(e.start for e in data):
        estimate, priors = _with_unknown_starts(structure_of(model), data, estimate, priors)
    structure = structure_of(model)
    names = wanted_names(structure, estimate, may_be_empty=not searched)
    if isinstance(method, Estimator):  # "auto" is chosen later, and adds what the one chosen does
        names = method.further_unknowns(structure, data, names)
    return resolve_unknowns(structure, data, names, priors=priors, searched=searched, **options)


def _with_unknown_starts(
    structure: Structure,
    data: Sequence[Experiment],
    estimate: Iterable[object] | None,
    priors: Mapping[str, Law] | None,
) -> tuple[Iterable[object] | None, Any]:
    """Add starts that an experiment declares unknown to the unknowns, with the prior it gives.

    Without ``estimate`` they stand beside the parameters that declare bounds or a prior, which may be none.
    """
    found = {
        f"start({n})@{e.name}" if len(data) > 1 else f"start({n})": v
        for e in data
        for n, v in unknown_starts(e).items()
    }
    if not found:
        return estimate, priors
    if isinstance(estimate, str):
        return estimate, priors
    listed: list[object] = list(marked_names(structure) if estimate is None else estimate)
    said = {str(getattr(e, "path", e)) for e in listed}
    extra = [n for n in found if n not in said and n.partition("@")[0] not in said and "start(*)" not in said]
    beliefs = {n: v for n, v in found.items() if v is not None}
    return [*listed, *extra], {**beliefs, **priors} if isinstance(priors, Mapping) else (priors or beliefs)


def checked_experiments(model: Model, experiments: Any) -> list[Experiment]:
    """Return the experiments, named, each with what the model needs."""
    data = named_experiments(experiments)
    for experiment in data:
        experiment.check(model)
    return data


def named_experiments(experiments: Any) -> list[Experiment]:
    """Return the experiments, each with a name of its own."""
    data = list(experiments) if isinstance(experiments, Sequence) else [experiments]
    if not data:
        raise EstimationError("There are no experiments: give a gr.Experiment or a list of them.")
    for item in data:
        if not isinstance(item, Experiment):
            raise EstimationError(
                f"experiments= holds {type(item).__name__}, not a gr.Experiment: make one with gr.Experiment(…), "
                f"gr.Experiment.from_csv(…) or gr.Experiment.from_frame(…)."
            )
    named = [e if e.name else e.replace(name=f"experiment {k + 1}") for k, e in enumerate(data)]
    names = [e.name for e in named]
    repeated = {n for n in names if names.count(n) > 1}
    if repeated:
        raise EstimationError(f"Several experiments are called {', '.join(sorted(repeated))}: give each its own name=.")
    refuse_mixed_units(named)
    return named
