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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from grisaille.bound_experiment.shared_refusals import refuse_events
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.redraw import Redraw
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Verdict
from grisaille.estimation.experiment_terms import build_experiment_term
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.measured_problem import MeasuredProblem
from grisaille.estimation.model_and_data import ModelAndData
from grisaille.estimation.noise import noise_levels, refuse_noise_alone
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimation.residuals.robust_weights import Score
from grisaille.estimation.starts.warm_start import state_courses
from grisaille.estimators.output_error import robust_losses
from grisaille.estimators.output_error.by_law.law_fitting import fit_by_law
from grisaille.estimators.output_error.by_law.law_posing import (
    needs_laws,
    open_levels,
    option_of_squares,
    pose_by_law,
    refuse_options,
)
from grisaille.estimators.output_error.covariances import Errors
from grisaille.estimators.output_error.errors_by_option import ErrorsByOption
from grisaille.estimators.output_error.least_squares_advice import LeastSquaresAdvice
from grisaille.estimators.output_error.least_squares_conclusion import conclude
from grisaille.estimators.output_error.least_squares_objectives import (
    WITH_A_ROBUST_LOSS,
    WITH_ROBUST_ERRORS,
    NormalLikelihood,
    RobustLoss,
)
from grisaille.estimators.output_error.least_squares_stages import LeastSquaresStages
from grisaille.estimators.output_error.simulation_effort import SimulationEffort
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


OPTIMIZERS = ("trust-region", "gauss-newton", "levenberg-marquardt", "nelder-mead")
LOSSES = ("linear", "soft_l1", "huber", "cauchy", "arctan")
NOT_INDEPENDENT = (
    "kind='parametric' draws independent noise, which errors='robust' does not take residuals for: use "
    "gr.bootstrap(fit, kind='residual'), whose blocks keep their correlation."
)


@dataclass(frozen=True)
class OutputError(Estimator):
    """Options of output-error estimation.

    optimizer : how the minimum is sought
    loss, loss_scale : robust losses of SciPy's trust region, and where they set in (in standard deviations)
    shooting, pieces : ``"multiple"`` cuts each record into pieces, for models that run away from a wrong start
    projection : solve for unknowns that enter the outputs linearly instead of searching them
    errors : ``"plain"``, for residuals that are independent of each other; ``"robust"``, with their correlation over
        time and between outputs, and with the degrees of freedom that the record leaves to tell it
    covariance : of plain errors: ``"gauss-newton"``, or ``"sandwich"`` where variances are not as assumed; of outputs
        with laws the expected information, or the scores of the samples around its inverse
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

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
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

    def pose(self, question: FitRequest) -> EstimationProblem:
        """Return simulations compared with the data, in units of the noise."""
        targets = [u.target for u in question.unknowns if u.kind == "parameter"]
        if needs_laws(self, question.structure, question.outputs, targets):
            return pose_by_law(self, question)
        noise = noise_levels(question.structure.model, question.outputs)
        if self.shooting == "multiple":
            for trial, _ in question.trials:
                refuse_events(trial, "shooting='multiple', whose pieces begin with unknown discrete variables,")
        cases = [
            build_experiment_term(e, *trial, noise, self.rtol)
            for e, trial in zip(question.data, question.trials, strict=True)
        ]
        problem = EstimationProblem(question.unknowns, cases, noise)
        if question.guess is not None and self.shooting == "multiple":
            problem.courses = state_courses(question.guess, question.data)
        return problem

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """Add levels of normal noise that are open beside laws or shared noise, and unknown correlations, to the
        unknowns.
        """
        outputs = tuple(dict.fromkeys(o for e in data for o in e.outputs))
        if not needs_laws(self, structure, outputs, [name.partition("@")[0] for name in wanted]):
            return list(wanted)
        said = {name.partition("@")[0] for name in wanted}
        return [*wanted, *(n for n in open_levels(structure.model, outputs) if n not in said)]

    @property
    def takes_laws(self) -> bool:
        return option_of_squares(self) is None

    @property
    def made_for_squares(self) -> str:
        options = {"loss": "linear", "shooting": "single", "errors": "plain", "optimizer": "trust-region"}
        given = [n for n, plain in options.items() if getattr(self, n) != plain]
        return f"{given[0]}={getattr(self, given[0])!r}" if given else ""

    @property
    def takes_unknown_covariances(self) -> bool:
        return option_of_squares(self) is None

    def refuse_measurements(self, question: FitRequest) -> None:
        if self.names_levels(question):
            refuse_options(self, question)

    def names_levels(self, question: FitRequest) -> bool:
        targets = [u.target for u in question.unknowns if u.kind == "parameter"]
        return needs_laws(self, question.structure, question.outputs, targets)

    @property
    def redraw(self) -> Redraw:
        return Redraw("noise", {"parametric": NOT_INDEPENDENT} if self.errors == "robust" else {})

    @property
    def other_errors(self) -> ErrorsByOption:
        return ErrorsByOption(self)

    @property
    def advice(self) -> LeastSquaresAdvice:
        return LeastSquaresAdvice(self)

    @property
    def effort(self) -> SimulationEffort:
        return SimulationEffort(self)

    @property
    def has_sandwich(self) -> bool:
        return self.covariance == "sandwich" or self.errors == "robust"

    @property
    def density(self) -> NormalLikelihood | RobustLoss:
        refused = WITH_ROBUST_ERRORS if self.errors == "robust" else ""
        if self.loss == "linear":
            return NormalLikelihood(refused)
        return RobustLoss(no_profiles=refused or WITH_A_ROBUST_LOSS, loss=self.loss, scale=self.loss_scale)

    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        if not problem.is_least_squares:
            return fit_by_law(self, problem.of(MeasuredProblem), progress)
        begin = time.perf_counter()
        refuse_noise_alone(problem.noise, problem.unknowns, problem.cases[0].trial.structure)
        problem, stages = (
            problem if self.shooting == "multiple" else problem.discretised_problem,
            LeastSquaresStages(self),
        )
        search = stages.search_from(problem, SearchJournal.of(progress))
        found, said = stages.run(problem, search)
        return conclude(self, found, search, said, time.perf_counter() - begin)

    @property
    def tests_starts(self) -> bool:
        return self.loss == "linear" and self.shooting == "single" and self.optimizer != "nelder-mead"

    @property
    def score(self) -> Score | None:
        return None if self.loss == "linear" else partial(robust_losses.score, self.loss, self.loss_scale)


def _choose(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise EstimationError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.")
