"""What an estimator is, and what it declares about itself.

An estimator is a frozen dataclass of options that derives from ``Estimator`` and says how it poses a problem and how it
solves it. Everything else has a default: what it cannot do is refused by a sentence that it declares. Whoever reads a
fit (profiles, studies, saving, reports, the choice of ``method="auto"``) asks this contract and knows no estimator by
name. A class becomes known by being defined: nothing has to be registered.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from grisaille.arguments import ELSEWHERE, kinds_of, refuse_wrong
from grisaille.calling import wrong_call
from grisaille.errors import EstimationError
from grisaille.estimation.cost import Cost, usual_cost
from grisaille.estimation.counted import Score
from grisaille.estimation.interruption import interrupted_estimate
from grisaille.estimation.requirements import bytes_of_least_squares
from grisaille.model.flat import FlatModel
from grisaille.model.names import nearest, suggestion
from grisaille.optimization.journal import Journal, Progress
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.estimation.bound_penalty import BoundPenalty
    from grisaille.estimation.estimate import Estimate
    from grisaille.estimation.fitted import Fitted
    from grisaille.estimation.predictions.band_kinds import Bands
    from grisaille.estimation.predictions.horizons import Horizon
    from grisaille.estimation.problem import Evaluation, Problem
    from grisaille.estimation.question import Question
    from grisaille.estimation.subject import Subject
    from grisaille.experiment.experiment import Experiment
    from grisaille.model.classes import Model
    from grisaille.model.expression import Expression

    Wanted = str | Iterable[str | Expression] | Mapping[str, str | Expression] | None
    """Quantities that a user names, as ``Fit.states`` takes them."""


EVALUATIONS = 25
"""Of a search that does not say otherwise."""
SIMULATION = "simulation"
"""What predictions are called that use no data after the start."""


@dataclass(frozen=True)
class Verdict:
    """Whether an estimator is the one for a model and its data, and why."""

    is_choice: bool
    reason: str
    may_serve: bool = False
    """Whether it may be taken where the one that is the choice refuses the model or its data."""


@dataclass(frozen=True)
class Reviewed:
    """An estimate, the method that it is by, and why it is by another than the one that was asked for."""

    method: Estimator
    estimate: Estimate
    reason: str = ""


class EstimatorType(ABCMeta):
    """Refuses options that an estimator does not have in our words."""

    if not TYPE_CHECKING:

        def __call__(cls, *given: Any, **options: Any) -> Any:
            _refuse_options(cls, given, options)
            try:
                return super().__call__(*given, **options)
            except TypeError:
                refusal = wrong_call(cls.__init__, (None, *given), options)
                if refusal is None:
                    raise
                raise refusal from None

        @property
        def __signature__(cls) -> inspect.Signature:
            made = inspect.signature(cls.__init__)
            return made.replace(parameters=list(made.parameters.values())[1:])


def _refuse_options(cls: type, given: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse options of the wrong kind; those of estimators that are not ours are theirs to check."""
    if cls.__module__.startswith("grisaille.") and cls.__name__ in ELSEWHERE:
        names = list(inspect.signature(cls).parameters)
        refuse_wrong(cls.__name__, kinds_of(cls.__name__, names), {**dict(zip(names, given, strict=False)), **options})


class Estimator(metaclass=EstimatorType):
    """The contract."""

    known: ClassVar[dict[str, type[Estimator]]] = {}
    """Every estimator that has been defined, by its name."""

    rtol: float = 1e-6
    """Tolerance of its simulations."""
    compiled: bool | None = None
    """As in ``gr.simulate``."""
    estimates_levels: ClassVar[bool] = True
    """Whether ``"scale(w)"`` and ``"noise(y)"`` can be among the unknowns."""
    has_own_likelihood: ClassVar[bool] = False
    """Whether noise levels are part of its likelihood, so that one may lie at zero."""
    predicts_ahead: ClassVar[Literal["yes", "no", "by simulation"]] = "by simulation"
    """Whether ``fit.predict(horizon=k)`` takes in the data up to k samples before; simulates, whatever the horizon; or
    is refused."""
    has_states: ClassVar[bool] = False
    """Whether it estimates trajectories from the data."""
    smooths: ClassVar[bool] = False
    """Whether its trajectories follow the data: what is left between them is not white, and their bands contain the
    uncertainty of parameters."""
    follows: ClassVar[bool] = False
    """Whether it predicts from the data so far, so that a record begins with what the one before it told."""
    filters: ClassVar[bool] = False
    """Whether a ``FilterRunner`` runs each of its cases."""
    tells_how: ClassVar[bool] = False
    """Whether its problems say how they represent trajectories (``Problem.transcription``)."""
    deviance: ClassVar[Literal["squares", "likelihood", "trajectories", "itself", ""]] = ""
    """What profiles, surfaces and ratio tests are made of: least squares with noise levels at their best, its own
    likelihood, the criterion of trajectories, or ``objective``, minimised by the estimator itself with unknowns held;
    empty where they are refused."""
    redraws: ClassVar[str] = ""
    """What a bootstrap draws again: ``"noise"`` around the predictions, or ``"model"``, disturbances and noise; empty
    where it has none."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__name__.startswith("_"):
            Estimator.known[cls.__name__] = cls

    @property
    def options(self) -> dict[str, Any]:
        """Every option by name, as it would be given to make the same estimator again."""
        described: Any = self
        return {f.name: getattr(self, f.name) for f in fields(described) if f.init}

    @classmethod
    def verdict(cls, subject: Subject) -> Verdict:
        """What ``method="auto"`` is told about this estimator."""
        return Verdict(False, "not taken unasked")

    @classmethod
    def for_subject(cls, subject: Subject) -> Estimator:
        """Return the estimator with the options with which ``method="auto"`` takes it."""
        return cls()

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """The names asked for, with those of unknowns that the method adds."""
        return list(wanted)

    @abstractmethod
    def pose(self, question: Question) -> Problem:
        """The problem of a model and its data."""

    @abstractmethod
    def estimate(self, problem: Problem, progress: Progress | None = None) -> Estimate:
        """Solve a problem that this method posed."""

    def review(
        self, problem: Problem, estimate: Estimate, progress: Progress | None = None, *, may_change: bool = True
    ) -> Reviewed:
        """Check what the method approximates, once its estimate is there; nothing by default.

        may_change : whether another variant of the method may be taken where this one does not suit
        """
        return Reviewed(self, estimate)

    def about_correlation(self, estimate: Estimate) -> str:
        """What correlated residuals do to its standard errors, and what to do, in words."""
        return (
            "Where they are not, errors are usually too small: dynamics or a disturbance are missing from the model "
            "(fit.diagnose() tells which)."
        )

    def about_shared_noise(self, estimate: Estimate, first: str, second: str) -> str:
        """What residuals of two outputs that hang together do to its standard errors, and what to do, in words."""
        return self.about_correlation(estimate)

    @property
    def score(self) -> Score | None:
        """ψ of a robust loss, by which large standardized residuals count less; None where squares count."""
        return None

    @property
    def tests_starts(self) -> bool:
        """Whether its criterion tells if a record does not begin where it was declared to."""
        return False

    @property
    def robust_way(self) -> str:
        """How it would count outliers less, as a call; empty where it does, or where it cannot."""
        return ""

    def reckoned(self, estimate: Estimate) -> Estimate:
        """An estimate with the standard errors of this method's ``errors=``, where it has such an option."""
        raise EstimationError(
            f"{type(self).__name__} has one kind of standard errors; fit.with_errors(…) is for fits by gr.OutputError."
        )

    def interrupted(self, problem: Problem, journal: Journal) -> Estimate | None:
        """What a search that was interrupted has reached; None where that is nothing."""
        return interrupted_estimate(problem, journal)

    def cost(self, problem: Problem) -> Cost:
        """How many evaluations a search usually takes, why they take long, and what would be faster."""
        return usual_cost(problem, EVALUATIONS)

    def bytes_needed(self, question: Question) -> float:
        """Bytes that posing and solving a problem take, about: what is refused where there is less memory."""
        return bytes_of_least_squares(question)

    def beforehand(self, model: Model, experiments: Sequence[Experiment]) -> str:
        """What is said before anything is computed, where the size of the model alone makes a fit long; else empty."""
        return ""

    def remarks(self, flat: FlatModel) -> list[str]:
        """What a user must know about any fit of this model by this method."""
        return []

    def ways_out(self, disturbed: bool) -> list[str]:
        """What leads out of a minimum that explains nothing, in words."""
        return []

    @property
    def seeded(self) -> str:
        """Which random numbers it uses, in words."""
        return "none needed"

    @property
    def is_likelihood(self) -> bool:
        """Whether its criterion is a likelihood, with these options."""
        return bool(self.deviance)

    @property
    def levels_told(self) -> dict[Literal["scale", "noise"], str]:
        """Whether levels of each kind can be estimated: ``"yes"``, ``"no"``, or where, in words."""
        told = "yes" if self.estimates_levels else "no"
        return {"scale": told, "noise": told}

    @property
    def residual_tests(self) -> Literal["all", "size", "none"]:
        """Which tests its residuals are put to."""
        return "none" if self.smooths else "all"

    @property
    def not_a_likelihood(self) -> str:
        """The option because of which the criterion is not a likelihood, as in ``loss='huber'``."""
        return "its criterion"

    @property
    def predictions_are(self) -> str:
        """In words, what its residuals are the errors of: ``"simulation"``, ``"1 sample ahead"``, ``"smoothed"``."""
        return SIMULATION

    @property
    def has_sandwich(self) -> bool:
        """Whether standard errors come from the scatter of residuals and not from the curvature."""
        return False

    @property
    def no_profiles(self) -> str:
        """Why there are no profiles and regions, and what to do instead; empty where there are."""
        if self.deviance:
            return ""
        name = type(self).__name__
        return (
            f"Profiles and regions of fits by {name} are not available; fit.intervals() uses the curvature of the "
            "criterion."
        )

    @property
    def no_ratio(self) -> str:
        """Why likelihood ratios have no known distribution, and what to do instead; empty where they have."""
        return self.no_profiles

    @property
    def no_bootstrap(self) -> str:
        """Why no records can be drawn again from its fits, and what to do instead; empty where they can."""
        if self.redraws:
            return ""
        able = " and ".join(
            f"gr.{name}" for name, other in Estimator.known.items() if other.redraws and other.is_ours()
        )
        return (
            f"A bootstrap draws records from fits by {able}; this one is by {type(self).__name__}: use "
            "gr.monte_carlo(fit.model, fit.experiments, …), which draws disturbances and noise."
        )

    @property
    def no_parametric(self) -> str:
        """Why noise drawn anew would not be that of its fits; empty where it would."""
        return self.no_bootstrap

    @classmethod
    def is_ours(cls) -> bool:
        """Whether it comes with the package."""
        return cls.__module__.startswith("grisaille.")

    def objective(self, evaluation: Evaluation) -> float:
        """What it minimises, at an evaluation; minus a log-likelihood where ``deviance`` is ``"itself"``."""
        return evaluation.objective

    def valued(self, problem: Problem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        """The criterion at a point, and its log-likelihood; NaN where it is none."""
        return evaluation, evaluation.log_likelihood

    def kept(self, fit: Fitted) -> dict[str, np.ndarray]:
        """Arrays that a saved fit has beside the usual ones."""
        return {}

    @property
    def bound_penalty(self) -> BoundPenalty | None:
        """What keeps unknowns inside their bounds beside the criterion."""
        return None

    @property
    def validator(self) -> Estimator:
        """By which a record that was not fitted is predicted and compared; one that follows the data does not test."""
        return self

    def led(self, fit: Fitted, experiment: Experiment, names: Sequence[str]) -> Mapping[str, xr.DataArray]:
        """Variables over the time of a fitted record and beyond it: what one that continues it begins with."""
        return {n: fit.simulated(experiment)[n] for n in names}

    def continued(self, fit: Fitted, experiment: Experiment) -> Estimator:
        """The method for a record that continues an experiment, with what is known at its last instant."""
        return self

    def simulated(self, estimate: Estimate, experiment: str) -> dict[str, Any]:
        """Options of ``gr.simulate`` by which the fitted model predicts an experiment."""
        return {}

    def predict_ahead(self, fit: Fitted, experiment: Experiment | str | None, horizon: Horizon) -> xr.Dataset | None:
        """Predictions from the data up to ``horizon`` before; None where every one is a simulation."""
        return None

    def predict_with_bands(
        self, fit: Fitted, experiment: Experiment, horizon: Horizon | None, bands: Bands = "all"
    ) -> xr.Dataset:
        """Predict with bands that contain the uncertainty of the estimates, or of the noise alone."""
        from grisaille.estimation.predictions.whole_bands import simulated_with_bands

        if horizon is not None:
            self.predict_ahead(fit, experiment, horizon)
        return simulated_with_bands(fit, experiment, bands)

    def states(
        self,
        fit: Fitted,
        experiment: Experiment | str | None,
        names: Wanted,
        level: float,
        bands: Bands | None = None,
    ) -> xr.Dataset:
        """Return trajectories given the data, with the bands asked for, or those that the method usually has."""
        raise EstimationError(
            f"{type(self).__name__} does not estimate states; use gr.KalmanML(), or simulate by fit.predict()."
        )

    def states_at(self, problem: Problem, theta: np.ndarray) -> dict[str, xr.Dataset]:
        """The same at given values of the unknowns, by experiment."""
        raise EstimationError(
            "States are estimated by gr.KalmanML() and gr.Collocation(): use method=gr.KalmanML(), or gr.simulate."
        )

    def comparable(self, estimate: Estimate) -> float:
        """A number by which minima of the same data are compared; lower is better."""
        if estimate.compared is not None:
            return estimate.compared
        if not estimate.is_likelihood:
            return estimate.objective
        priors = estimate.evaluation.residuals[estimate.count :]
        return 0.5 * float(priors @ priors) - estimate.log_likelihood


def estimator_of(method: object) -> Estimator:
    """What was given as ``method=``, if it is an estimator."""
    if isinstance(method, Estimator):
        return method
    if isinstance(method, str) and method in Estimator.known:
        return Estimator.known[method]()
    if isinstance(method, str):
        known = ["auto", *Estimator.known]
        if nearest(method, known):
            raise EstimationError(f"method is {method!r}, which is no estimator. {suggestion(method, known)}")
        names = ", ".join(Estimator.known)
        raise EstimationError(f"method is {method!r}, which is no estimator: give 'auto' or one of {names}.")
    if isinstance(method, type) and issubclass(method, Estimator):
        raise EstimationError(f"method is the class {method.__name__}; make an instance: gr.{method.__name__}().")
    raise EstimationError(f"method is {method!r}; give 'auto' or an estimator such as gr.OutputError().")
