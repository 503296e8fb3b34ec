"""Maximum likelihood by Kalman filtering: parameters, noise levels and starts of models with disturbances.

    maximise  log L(θ) = Σ_k log N(y_k; ŷ_{k|k−1}, S_k)  (+ log prior)

One-step predictions and their covariances come from the exact filter of a linear model, or from one of the filters for
nonlinear models (``filtering``). The covariance of the estimates is the inverse Hessian of −log L − log prior at the
optimum. Reference: N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (9), (31), (53).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca

from grisaille.errors import EstimationError
from grisaille.estimation.abilities.redraw import Redraw
from grisaille.estimation.bound_penalty import BoundPenalty
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, ReviewedEstimate, Verdict
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.estimation.model_and_data import STATIC_REFUSAL, ModelAndData
from grisaille.estimation.noise_levels import (
    scan_levels,
)
from grisaille.estimation.predictions.horizons import horizon_text
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimation.residuals.robust_weights import Score
from grisaille.estimators.kalman_ml import filter_choices as choices
from grisaille.estimators.kalman_ml.filter_advice import FilterAdvice
from grisaille.estimators.kalman_ml.filter_conclusion import conclude
from grisaille.estimators.kalman_ml.filter_effort import FilterEffort
from grisaille.estimators.kalman_ml.filter_objectives import FilterLikelihood, PredictionCriterion
from grisaille.estimators.kalman_ml.filtered_ahead import FilteredAhead
from grisaille.estimators.kalman_ml.filtered_states import FilteredStates
from grisaille.estimators.kalman_ml.likelihood_posing import case_of, pose_likelihood
from grisaille.estimators.kalman_ml.likelihood_search import LikelihoodSearch
from grisaille.estimators.kalman_ml.other_filter import compare_with_other_filter
from grisaille.filtering.exact.linear_formulas import has_kinks
from grisaille.filtering.filter_methods import FilterMethod
from grisaille.filtering.filter_runner import FilterOptions
from grisaille.filtering.initial_moments import is_flat
from grisaille.filtering.sigma_points import SigmaPoints
from grisaille.model.classes import Model
from grisaille.model.measurement.noise_covariances import correlations_of
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.optimization.search import Search
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

    pass

OF_OUR_FILTERS = {
    "propagation": "linearize", "substeps": "auto", "solver": "rk4", "sigma": (1.0, 0.0, 3.0), "robust": None,
    "first_observation": "include", "horizon": 1,
}  # fmt: skip
"""Options that speak of the package's own filters, and what they are where nothing is said."""
NO_RESIDUALS = "gr.bootstrap of a fit by gr.KalmanML redraws starts, disturbances and noise: use kind='parametric'."


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
        choices.checked_choice("first_observation", self.first_observation, choices.FIRST_OBSERVATION_CHOICES)
        choices.checked_choice("bounds", self.bounds, choices.BOUND_CHOICES)
        object.__setattr__(self, "horizon", choices.checked_horizon(self.horizon))
        choices.checked_whole_number("max_evaluations", self.max_evaluations)
        choices.checked_positive("penalty", self.penalty, zero=True)
        choices.checked_positive("tolerance", self.tolerance)
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
        """Return the options of a filter that is not the package's own."""
        return None if isinstance(self.filter, str) else self.filter

    @property
    def options(self) -> dict[str, Any]:
        own = self.own_filter
        return super().options if own is None else {**super().options, "filter": own.data}

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC_REFUSAL)
        if not subject.disturbances and not subject.levels:
            same = "refused: without disturbances its likelihood is that of output error"
            return Verdict(False, same, may_serve=True)
        if not subject.disturbances:
            first = subject.levels[0]
            return Verdict(True, f"chosen: the likelihood, without disturbances, in which '{first}' is an unknown")
        if subject.why_not_scheduled:
            return Verdict(False, f"refused: {subject.why_not_scheduled}, and filters follow events of time only")
        if subject.why_not_filtered:
            return Verdict(False, f"refused: {subject.why_not_filtered}")
        if subject.hidden:
            why = "has no linear effect where it is zero, so a linearised filter would not see it"
            return Verdict(False, f"refused: {subject.hidden} {why}")
        model, name = subject.stochastic, subject.flat.name
        if not model.nonlinear and model.varying:
            what = f"with coefficients that vary with {', '.join(model.varying)}"
            return Verdict(True, f"chosen: {name} is linear in its states, {what}")
        if not model.nonlinear and has_kinks(ca.veccat(model.drift, model.noise), model):
            return Verdict(True, f"chosen: {name} is linear in its states, with formulas of inputs whose slope jumps")
        if not model.nonlinear:
            return Verdict(True, f"chosen: {name} is linear in its states, so the filter and its likelihood are exact")
        if model.jumps:
            first_jump = model.jumps[0]
            jumping = f"{first_jump.place} jumps with {first_jump.text}"
            return Verdict(True, f"chosen: the unscented filter, because {jumping}")
        return Verdict(True, f"chosen: the extended filter, because {model.nonlinear} is not linear")

    @property
    def states(self) -> FilteredStates:
        return FilteredStates(self, partial(case_of, self))

    @property
    def ahead(self) -> FilteredAhead:
        return FilteredAhead(self, partial(case_of, self))

    @property
    def redraw(self) -> Redraw:
        return Redraw("model", {"residual": NO_RESIDUALS})

    @property
    def advice(self) -> FilterAdvice:
        return FilterAdvice(self)

    @property
    def effort(self) -> FilterEffort:
        return FilterEffort(self)

    @property
    def tests_starts(self) -> bool:
        return self.is_likelihood

    @property
    def score(self) -> Score | None:
        return None if self.robust is None else partial(choices.huber_score, self.robust)

    @property
    def predictions_are(self) -> str:
        return horizon_text(self.horizon)

    @property
    def has_sandwich(self) -> bool:
        return not self.is_likelihood

    @property
    def density(self) -> FilterLikelihood | PredictionCriterion:
        if self.robust is not None:
            return PredictionCriterion("a robust loss", instead="gr.KalmanML(robust=None)")
        if self.horizon != 1:
            return PredictionCriterion(f"horizon={self.horizon!r}", instead="gr.KalmanML(horizon=1)")
        return FilterLikelihood(self.bound_penalty)

    @property
    def bound_penalty(self) -> BoundPenalty:
        """Return what keeps unknowns inside their bounds beside the likelihood."""
        return BoundPenalty(self.penalty if self.bounds == "transform" else 0.0)

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """Add noise levels that the model leaves open, and covariances of noise that it declares unknown, to the
        unknowns.
        """
        measured = dict.fromkeys(o for e in data for o in e.outputs)
        said = {name.partition("@")[0] for name in wanted}
        still = [f"noise({o})" for o in measured if structure.model.outputs[o].noise is None]
        still += correlations_of(structure.model, measured)
        return [*wanted, *(n for n in still if n not in said)]

    @property
    def takes_unknown_covariances(self) -> bool:
        return True

    def pose(self, question: FitRequest) -> LikelihoodProblem:
        """Return the problem of a model and its data."""
        return pose_likelihood(self, question)

    @property
    def filter_options(self) -> FilterOptions:
        return FilterOptions(
            filter=self.filter if isinstance(self.filter, str) else "auto", own=self.own_filter,
            propagation=self.propagation, substeps=self.substeps,
            initial_covariance=self.initial_covariance, condition=self.first_observation == "condition",
            robust=choices.signed_threshold(self.robust), sigma=SigmaPoints(*self.sigma), solver=self.solver,
        )  # fmt: skip

    def level_guesses(
        self, model: Model, experiments: Sequence[Experiment], estimate: Iterable[object] | None = None
    ) -> dict[str, float]:
        """Return sane starts of all noise levels that are estimated, by name: what a fit without ``guess=`` begins
        with.

        Each kind, ``scale(…)`` and ``noise(…)``, is moved together over orders of magnitude to the largest likelihood.
        """
        from grisaille.estimators.fitting import build_problem

        problem = build_problem(model, experiments, estimate, self)
        assert isinstance(problem, LikelihoodProblem)
        theta = scan_levels(Search(problem), problem.cases, problem.open_levels)
        return {u.name: float(v) for u, v in zip(problem.unknowns, theta, strict=True) if u.kind in ("scale", "noise")}

    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin, posed = time.perf_counter(), problem.of(LikelihoodProblem).discretised_problem
        found, guessed = LikelihoodSearch(self).run(
            posed, Search(posed, SearchJournal.of(progress), self.max_evaluations)
        )
        return conclude(self, found, guessed, time.perf_counter() - begin)

    def review(
        self,
        problem: EstimationProblem,
        estimate: Estimate,
        progress: Progress | None = None,
        *,
        may_change: bool = True,
    ) -> ReviewedEstimate:
        """Compare the filter with another one; ``filter="auto"`` then takes the unscented one where results differ
        noticeably.
        """
        return compare_with_other_filter(self, problem.of(LikelihoodProblem), estimate, progress, may_change=may_change)
