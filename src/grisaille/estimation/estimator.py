"""What an estimator is, and what it declares about itself.

An estimator is a frozen dataclass of options that derives from ``Estimator`` and says how it poses a problem and how it
solves it. Whether its criterion is a likelihood ``density`` says. What else it can do it gives as objects, ``states``,
``ahead``, ``redraw``, ``other_errors`` (``abilities``); where one is None, a sentence names the methods that have it.
Whoever reads a fit (profiles, studies, saving, reports, the choice of ``method="auto"``) asks this contract and knows
no estimator by name. A class becomes known by being defined: nothing has to be registered.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from grisaille.arguments import annotations_of, kinds_of, refuse_wrong
from grisaille.calling import wrong_call
from grisaille.compilation.requirement import require_compiled
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.advice import Advice
from grisaille.estimation.abilities.ahead import Ahead
from grisaille.estimation.abilities.effort import Effort
from grisaille.estimation.abilities.old_contract import refuse_old_contract
from grisaille.estimation.abilities.other_errors import OtherErrors
from grisaille.estimation.abilities.redraw import Redraw
from grisaille.estimation.abilities.states import States
from grisaille.estimation.density.criterion_kinds import Likelihood, NoLikelihood
from grisaille.estimation.interruption import interrupted_estimate
from grisaille.estimation.residuals.robust_weights import Score
from grisaille.model.names import nearest, suggestion
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.estimation.estimate import Estimate
    from grisaille.estimation.fit_request import FitRequest
    from grisaille.estimation.model_and_data import ModelAndData
    from grisaille.estimation.problem import EstimationProblem
    from grisaille.experiment.experiment import Experiment


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
class ReviewedEstimate:
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
    if cls.__module__.startswith("grisaille."):
        annotations = annotations_of(cls)
        named = {**dict(zip(annotations, given, strict=False)), **options}
        refuse_wrong(cls.__name__, kinds_of(cls.__name__, annotations), named)
        require_compiled(named.get("compiled"))


class Estimator(metaclass=EstimatorType):
    """The contract."""

    known: ClassVar[dict[str, type[Estimator]]] = {}
    """Every estimator that has been defined, by its name."""

    rtol: float = 1e-6
    """Tolerance of its simulations."""
    compiled: bool | None = None
    """As in ``gr.simulate``."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        refuse_old_contract(cls)
        if not cls.__name__.startswith("_"):
            Estimator.known[cls.__name__] = cls

    @property
    def options(self) -> dict[str, Any]:
        """Every option by name, as it would be given to make the same estimator again."""
        described: Any = self
        return {f.name: getattr(self, f.name) for f in fields(described) if f.init}

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
        """Return whether and why ``method="auto"`` may choose this estimator."""
        return Verdict(False, "not taken unasked")

    @classmethod
    def for_subject(cls, subject: ModelAndData) -> Estimator:
        """Return the estimator with the options with which ``method="auto"`` takes it."""
        return cls()

    def further_unknowns(self, structure: Structure, data: Sequence[Experiment], wanted: Sequence[str]) -> list[str]:
        """Return the names asked for, with those of unknowns that the method adds."""
        return list(wanted)

    @property
    def takes_laws(self) -> bool:
        """Return whether outputs may declare other laws of their measurements than normal noise."""
        return False

    @property
    def made_for_squares(self) -> str:
        """Return an option that is made for squares of errors and does not go with laws, as it is written; empty for
        none.
        """
        return ""

    @property
    def takes_unknown_covariances(self) -> bool:
        """Return whether it estimates what ``noise_covariance`` calls ``"full"``, and names it in
        ``further_unknowns``.
        """
        return False

    def refuse_measurements(self, question: FitRequest) -> None:
        """Refuse, in words of its own, outputs with laws or shared noise that its options do not go with."""

    def names_levels(self, question: FitRequest) -> bool:
        """Return whether levels of noise may be among the unknowns of a model and its data."""
        return self.density.levels.are_unknowns

    @abstractmethod
    def pose(self, question: FitRequest) -> EstimationProblem:
        """Return the problem of a model and its data."""

    @abstractmethod
    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem that this method posed."""

    def review(
        self,
        problem: EstimationProblem,
        estimate: Estimate,
        progress: Progress | None = None,
        *,
        may_change: bool = True,
    ) -> ReviewedEstimate:
        """Check what the method approximates, once its estimate is there; nothing by default.

        may_change : whether another variant of the method may be taken where this one does not suit
        """
        return ReviewedEstimate(self, estimate)

    @property
    def states(self) -> States | None:
        """Trajectories that it estimates from the data."""
        return None

    @property
    def ahead(self) -> Ahead | None:
        """Predictions from the data up to some samples before; None where predictions are simulations."""
        return None

    @property
    def redraw(self) -> Redraw | None:
        """Return what a bootstrap draws again from its fits."""
        return None

    @property
    def other_errors(self) -> OtherErrors | None:
        """Standard errors of another kind, from the same residuals."""
        return None

    @property
    def advice(self) -> Advice:
        """Return the messages of the estimator about its fits."""
        return Advice()

    @property
    def effort(self) -> Effort:
        """Return how long its fits take, and how much memory."""
        return Effort()

    @property
    def score(self) -> Score | None:
        """ψ of a robust loss, by which large standardized residuals count less; None where squares count."""
        return None

    @property
    def tests_starts(self) -> bool:
        """Return whether its criterion shows that a record does not begin at its declared start."""
        return False

    def interrupted(self, problem: EstimationProblem, journal: SearchJournal) -> Estimate | None:
        """Return what a search that was interrupted has reached; None where that is nothing."""
        return interrupted_estimate(problem, journal)

    @property
    def density(self) -> Likelihood | NoLikelihood:
        """Return what makes log-densities of its problems, or why its criterion is no likelihood."""
        return NoLikelihood()

    @property
    def is_likelihood(self) -> bool:
        """Return whether its criterion is a likelihood, with these options."""
        return isinstance(self.density, Likelihood)

    @property
    def residual_tests(self) -> Literal["all", "size", "none"]:
        """Return which tests its residuals are put to."""
        return "none" if self.states is not None and self.states.follow_data else "all"

    @property
    def predictions_are(self) -> str:
        """In words, what its residuals are the errors of: ``"simulation"``, ``"1 sample ahead"``, ``"smoothed"``."""
        return SIMULATION

    @property
    def has_sandwich(self) -> bool:
        """Return whether standard errors come from the scatter of residuals and not from the curvature."""
        return False

    @classmethod
    def is_ours(cls) -> bool:
        """Return whether it comes with the package."""
        return cls.__module__.startswith("grisaille.")

    @property
    def validator(self) -> Estimator:
        """By which a record that was not fitted is predicted and compared; one that follows the data does not test."""
        return self

    def simulation_options(self, estimate: Estimate, experiment: str) -> dict[str, Any]:
        """Return options of ``gr.simulate`` by which the fitted model predicts an experiment."""
        return {}


def estimator_of(method: object) -> Estimator:
    """Return what was given as ``method=``, if it is an estimator."""
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
