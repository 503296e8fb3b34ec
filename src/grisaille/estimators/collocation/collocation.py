"""Collocation: trajectories as splines, estimated together with the parameters, weighing data against the model.

    minimise  ½ Σ |y − ŷ|²/σ² + ½ ∫ |ẋ − f(x, u, θ)|²/Q dt        over θ and the splines x

Nothing is simulated, so unstable models, unknown starts and unmeasured states are ordinary. Disturbance intensities are
given, found from known measurement noise (``collocation.intensity``), or estimated with everything else from the
marginal likelihood (``collocation.laplace``). References: M. S. Varziri, Parameter Estimation in Stochastic Dynamic
Models, PhD thesis, Queen's University (2008); J. O. Ramsay, G. Hooker, D. Campbell, J. Cao, Journal of the Royal
Statistical Society B 69 (2007) 741.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grisaille.collocation.spline_options import SplineOptions, refuse_limits, refuse_spline_options
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import Levels
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, ReviewedEstimate, Verdict
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.law_refusals import refuse_kinks, refuse_moving_limits
from grisaille.estimation.measurements.output_law import output_laws
from grisaille.estimation.model_and_data import NOT_AUTOMATIC, STATIC_REFUSAL, ModelAndData
from grisaille.estimation.noise_levels import level_guess
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.collocation.collocation_objectives import (
    DEBIASED_REASON,
    OF_MISFIT,
    MarginalLikelihood,
    OfTrajectories,
)
from grisaille.estimators.collocation.collocation_posing import direct_options, pose_elements, pose_splines
from grisaille.estimators.collocation.collocation_problem import CollocationProblem
from grisaille.estimators.collocation.collocation_refusals import (
    caution,
    dead_time_obstacle,
    refuse_jump,
    refuse_unknown_switches,
    spline_obstacle,
    with_slope,
)
from grisaille.estimators.collocation.criteria import solve
from grisaille.estimators.collocation.laplace_check import check_laplace
from grisaille.estimators.collocation.trajectory_states import TrajectoryStates
from grisaille.estimators.output_error.output_error import OutputError
from grisaille.model.measurement.distributions import has_law
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


CRITERIA = ("auto", "amle", "ipda", "smoothing", "laplace")


@dataclass(frozen=True)
class Collocation(Estimator):
    """Options of collocation.

    criterion : ``"laplace"``, the marginal likelihood, integrates over trajectories and also estimates noise levels;
        ``"amle"``, the published approximate maximum likelihood, minimises over parameters and trajectories together,
        and leans; ``"ipda"`` does so in turn; ``"smoothing"`` (generalised profiling) takes the trajectories from the
        same criterion but the parameters from the data misfit alone; ``"auto"`` is ``"laplace"``, or ``"amle"`` where
        ``debias`` asks for it
    intensities : ``"given"``, or ``"estimate"``: every disturbance's scale is estimated too
    debias : ``"amle"`` leaves out that trajectories scatter more widely for some parameters than for others; True takes
        this off at the intensities that it found; so does a model with an unknown that decides how strongly white noise
        acts (C in C ẋ = f + w), which leans by any number of standard errors
    order : of the splines (4: cubic, 2: straight lines), or ``{state: order}``
    knots : ``"auto"`` (every observation), a number, times, or ``{state: …}``; inputs that step have theirs in any case
    kinks : where the slope of a state may jump: where ``"inputs"`` step, or at ``"observations"`` too, where the best
        trajectory bends; ``"auto"``: at observations for the marginal likelihood, and unless knots are given
    quadrature : ``"gauss"``, a number of Gauss points, ``"simpson"`` or ``"ends+midpoints"``
    trajectories : where the search for trajectories starts, ``{state: number | (times, values)}``; by default in the
        data for states that are measured, in a simulation for the others
    refine : how often knots may be added where the trajectories need them, or elements of direct collocation halved,
        until no estimate moves by more than a twentieth of its standard error; ``"auto"``: ten times (four), never
        where knots are given
    optimizer : of parameters and trajectories together (``"amle"``, and where the search of the marginal likelihood
        begins): ``"gauss-newton"`` (own, with the exact Hessian near the end) or ``"ipopt"``
    transcription : ``"spline"``; ``"direct"`` collocation at Radau points for differential-algebraic models and
        undisturbed equations; ``"auto"`` takes splines where they apply
    tolerance, max_iterations : when to stop
    compiled : as in ``gr.simulate``

    Examples
    --------
    With the data of ``help(gr.fit)`` and a tank that is disturbed:

    >>> class Disturbed(gr.Model):
    ...     k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    ...     h = gr.Variable(0.5)
    ...     w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.02)
    ...     y = gr.Output(h, noise=0.01)
    ...     equations = [gr.der(h) == 2.0 + w - k * h]
    >>> found = gr.fit(Disturbed(), data, ["k"], gr.Collocation())
    >>> round(found["k"], 2), sorted(found.states(names=["h"]).sizes)
    (0.5, ['given', 'statistic', 'time'])
    """

    criterion: Literal["auto", "amle", "ipda", "smoothing", "laplace"] = "auto"
    intensities: Literal["given", "estimate"] = "given"
    debias: bool = False
    order: Any = 4
    knots: Any = "auto"
    kinks: Literal["auto", "inputs", "observations"] = "auto"
    quadrature: Any = "gauss"
    trajectories: Any = None
    refine: int | Literal["auto"] = "auto"
    optimizer: Literal["gauss-newton", "ipopt"] = "gauss-newton"
    transcription: Literal["auto", "spline", "direct"] = "auto"
    tolerance: float = 1e-11
    max_iterations: int = 300
    compiled: bool | None = None

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC_REFUSAL)
        if subject.why_not_scheduled:
            return Verdict(False, f"refused: {subject.why_not_scheduled}, and it follows events of time only")
        if subject.disturbances and subject.why_not_filtered:
            return Verdict(False, f"refused: {subject.why_not_filtered}")
        if subject.disturbances and subject.hidden:
            return Verdict(False, f"refused: where {subject.hidden} is zero its effect has no slope to start from")
        if subject.disturbances and subject.output_with_law:
            law = f"it integrates over disturbances by the law of '{subject.output_with_law}'"
            return Verdict(False, f"possible: {law}, which filters take to be normal", may_serve=True)
        return Verdict(False, NOT_AUTOMATIC)

    @property
    def takes_laws(self) -> bool:
        return True

    @property
    def made_for_squares(self) -> str:
        return f"criterion={self.criterion!r}" if self.criterion in ("ipda", "smoothing") else ""

    @property
    def density(self) -> MarginalLikelihood | OfTrajectories:
        if self.criterion == "laplace":
            return MarginalLikelihood(self.refine)
        refused = OF_MISFIT if self.criterion == "smoothing" else DEBIASED_REASON if self.debias else ""
        levels = Levels("yes" if self.criterion == "amle" else "no", "no")
        return OfTrajectories(f"criterion={self.criterion!r}", refused, levels=levels)

    def __post_init__(self) -> None:
        for name in ("order", "knots", "quadrature", "trajectories", "refine"):
            object.__setattr__(self, name, _as_plain(getattr(self, name)))
        for name, value, allowed in (
            ("criterion", self.criterion, CRITERIA),
            ("intensities", self.intensities, ("given", "estimate")),
            ("kinks", self.kinks, ("auto", "inputs", "observations")),
            ("optimizer", self.optimizer, ("gauss-newton", "ipopt")),
            ("transcription", self.transcription, ("auto", "spline", "direct")),
        ):
            if value not in allowed:
                raise EstimationError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")
        if self.criterion == "auto":
            object.__setattr__(self, "criterion", "amle" if self.debias else "laplace")
        refuse_spline_options(self.order, self.knots, self.quadrature, self.trajectories)
        refuse_limits(self.tolerance, self.max_iterations)
        whole = isinstance(self.refine, int) and not isinstance(self.refine, bool) and self.refine >= 0
        if not whole and self.refine != "auto":
            raise EstimationError(f"refine is {self.refine!r}; give a whole number from 0, or 'auto'.")
        if self.debias and self.criterion != "amle":
            raise EstimationError(
                f"debias=True removes the bias of criterion='amle', not of {self.criterion!r}"
                + (", which has no such bias: leave it out." if self.criterion == "laplace" else ".")
            )
        if self.optimizer == "ipopt" and self.criterion in ("ipda", "smoothing"):
            raise EstimationError(
                f"optimizer='ipopt' finds parameters and trajectories together (criterion='amle', or where 'laplace' "
                f"begins), which {self.criterion!r} does not do."
            )
        if self.intensities == "estimate" and self.criterion in ("ipda", "smoothing"):
            raise EstimationError(
                f"intensities='estimate' goes with criterion='amle' or 'laplace'; {self.criterion!r} takes them as "
                f"given."
            )

    def _spline_options(self) -> SplineOptions:
        own = "observations" if isinstance(self.knots, str) or self.criterion == "laplace" else "inputs"
        kinks = own if self.kinks == "auto" else self.kinks
        return SplineOptions(self.order, self.knots, kinks, self.quadrature, self.trajectories)

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """Return scales when intensities are estimated; measurement noise that is left open, for the marginal
        likelihood.
        """
        said = {name.partition("@")[0] for name in wanted}
        more = []
        if self.intensities == "estimate" and not structure.model.disturbances:
            raise EstimationError(
                f"intensities='estimate' finds scales of disturbances, and {structure.model.name} has none: declare "
                f"w = gr.Disturbance(gr.spectra.white()) and let it enter an equation, or leave intensities='given'."
            )
        if self.intensities == "estimate" and not any(n.startswith("scale(") for n in said):
            more += [f"scale({w})" for w in structure.model.disturbances]
        if self.criterion == "laplace":
            measured = dict.fromkeys(o for e in data for o in e.outputs)
            flat = structure.model
            more += [f"noise({o})" for o in measured if flat.outputs[o].noise is None and not has_law(flat, o)]
        return [*wanted, *(n for n in more if n not in said)]

    def pose(self, question: FitRequest) -> EstimationProblem:
        """Return the problem of a model and its data."""
        question = question.scheduled("collocation")
        structure, data, unknowns = question.structure, question.data, question.unknowns
        model = with_slope(structure, data, unknowns)
        scales = [u.name for u in unknowns if u.kind == "scale"]
        if scales and self.density.levels.scale == "no":
            raise EstimationError(
                f"criterion={self.criterion!r} takes '{scales[0]}' as given and does not estimate it: use "
                f"gr.Collocation(criterion='laplace')."
            )
        self._refuse_beside_laws(question)
        obstacle = dead_time_obstacle(question) or spline_obstacle(structure, model, data, unknowns, self.criterion)
        guessed = question.with_unknowns([level_guess(structure, data, u, unknowns) for u in unknowns])
        if self.transcription == "direct" or (self.transcription == "auto" and obstacle):
            return pose_elements(guessed, direct_options(self, obstacle), self.criterion, obstacle)
        if obstacle:
            raise EstimationError(f"Splines do not apply: {obstacle}. Use transcription='direct', or 'auto'.")
        return pose_splines(guessed, self._spline_options(), self)

    def _refuse_beside_laws(self, question: FitRequest) -> None:
        """Refuse what is made for squares of residuals where outputs are measured by laws."""
        flat = question.structure.model
        laws = {n: law for n, law in output_laws(flat, question.outputs).items() if has_law(flat, n)}
        if not laws:
            return
        refuse_moving_limits(question)
        refuse_kinks(laws)
        output, law = next(iter(laws.items()))
        by = f"output '{output}' is measured by the law {type(law.law).__name__}"
        if self.made_for_squares:
            raise EstimationError(f"{self.made_for_squares} is made for squares of errors, and {by}: use 'laplace'.")
        if self.optimizer == "ipopt":
            raise EstimationError(f"optimizer='ipopt' takes formulas of measurements, and {by}: leave optimizer out.")
        if self.intensities == "estimate" and self.criterion == "amle":
            raise EstimationError(
                f"criterion='amle' finds intensities from squares of residuals, and {by}: use criterion='laplace'."
            )

    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        journal = SearchJournal.of(progress)
        refuse_unknown_switches(problem)
        # trajectories, meshes and criterion change on the way: a search has a problem of its own
        own = problem.of(CollocationProblem).renewed().replace(keeps_trajectories=True)
        try:
            found = solve(self, own, journal)
        except EstimationError:
            refuse_jump(problem, problem.guess)
            raise
        if not found.converged:
            refuse_jump(problem, found.theta)
        return replace(found, caution=caution(problem) or found.caution)

    def review(
        self,
        problem: EstimationProblem,
        estimate: Estimate,
        progress: Progress | None = None,
        *,
        may_change: bool = True,
    ) -> ReviewedEstimate:
        """Compare the marginal likelihood with that of a filter."""
        if self.criterion != "laplace" or not estimate.is_likelihood or estimate.explained_exactly:
            return ReviewedEstimate(self, estimate)
        return ReviewedEstimate(self, replace(estimate, approximation=check_laplace(problem, estimate)))

    @property
    def states(self) -> TrajectoryStates:
        return TrajectoryStates()

    @property
    def tests_starts(self) -> bool:
        return True

    @property
    def predictions_are(self) -> str:
        return "smoothed"

    @property
    def validator(self) -> Estimator:
        """Trajectories that follow the data are no test of them: a simulation is."""
        return OutputError()


def _as_plain(value: Any) -> Any:
    """Return arrays as tuples of numbers, so that options can be compared, hashed and saved."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): _as_plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return (
            tuple(_as_plain(v) for v in np.asarray(value).tolist()) if _is_flat(value) else tuple(map(_as_plain, value))
        )
    return value


def _is_flat(value: Any) -> bool:
    return all(np.ndim(v) == 0 for v in value)
