"""What an estimator declares about its criterion: that it is a likelihood, or why it is none.

``Estimator.density`` is a ``Likelihood`` or a ``NoLikelihood``. Whoever needs a log-density asks ``log_density_of``,
whoever walks around a fit ``criterion_around``; both refuse in one sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from grisaille.errors import EstimationError
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.density.profile_criterion import ProfileCriterion
from grisaille.estimation.problem import EstimationProblem, Evaluation

if TYPE_CHECKING:
    from grisaille.estimation.estimate import Estimate
    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fitted import Fitted

P = TypeVar("P", bound=EstimationProblem)


@dataclass(frozen=True)
class Levels:
    """Whether ``"scale(w)"`` and ``"noise(y)"`` can be estimated: ``"yes"``, ``"no"``, or where, in words.

    are_unknowns : whether they may be named among the unknowns at all
    """

    scale: str = "yes"
    noise: str = "yes"
    are_unknowns: bool = True


NO_LEVELS = Levels("no", "no", are_unknowns=False)


class Objective:
    """What an estimator minimises."""

    because: str = "its criterion"
    """The option because of which it is no likelihood, as in ``criterion='amle'``."""
    levels: Levels = Levels()
    supports_profiles: ClassVar[bool] = False
    """Whether ``around`` gives something that profiles can walk on."""
    no_profiles: str = ""
    """Why there are no profiles and regions all the same, and what to do instead."""
    no_posterior: str = ""
    """Why there is no posterior all the same, and what to do instead."""
    no_ratio: str = ""
    """Why likelihood ratios have no known law, and what to do instead."""
    has_levels: ClassVar[bool] = False
    """Whether levels of noise are part of it, so that one may lie at zero."""
    refits: ClassVar[bool] = False
    """Whether only the estimator itself can search with unknowns held, so that each point of a profile is a fit."""

    def around(self, fit: Fitted, held: Sequence[str]) -> ProfileCriterion:
        """Return what profiles walk on around a fit, on its discretisation; ``held``: names that will be given values.

        A likelihood gives its log-density, open levels of noise concentrated out where that is quicker.
        """
        raise EstimationError(why_no_profiles(fit.method))

    def at(self, problem: EstimationProblem, evaluation: Evaluation) -> tuple[Evaluation, float]:
        """Return what is minimised at a point, as a function of the unknowns alone, and log L; NaN where it is none."""
        return evaluation, evaluation.log_likelihood

    def compared(self, estimate: Estimate) -> float:
        """Return the number by which minima of the same data are compared; lower is better."""
        if estimate.compared is not None:
            return estimate.compared
        if not estimate.is_likelihood:
            return estimate.objective
        priors = estimate.evaluation.residuals[estimate.count :]
        return 0.5 * float(priors @ priors) - estimate.log_likelihood


class Likelihood(Objective, ABC):
    """A criterion that is −log L − log prior."""

    supports_profiles: ClassVar[bool] = True

    @abstractmethod
    def of(self, problem: EstimationProblem, fit: Fitted | None = None) -> LogDensity:
        """Return the log-density of a problem that the estimator has posed.

        fit : one by the same method of the same experiments, whose discretisation suits its estimates
        """


@dataclass(frozen=True)
class NoLikelihood(Objective):
    """What is minimised, but is no likelihood.

    because, no_profiles : as above
    instead : what would be one, as in ``gr.OutputError(loss='linear')``
    levels : as above
    """

    because: str = "its criterion"
    no_profiles: str = ""
    instead: str = ""
    levels: Levels = Levels()


def log_density_of(method: Estimator, problem: EstimationProblem, fit: Fitted | None = None) -> LogDensity:
    """Return the log-density of a problem that a method has posed; refuse what is no likelihood.

    fit : from which the discretisation is taken, where it is one by the same method of the same experiments
    """
    kind = method.density
    if not isinstance(kind, Likelihood):
        raise EstimationError(why_no_density(method))
    return kind.of(problem, fit if fit is not None and _is_of_the_same(fit, method, problem) else None)


def why_no_density(method: Estimator, what: str = "A log-density") -> str:
    """Say why there is no log-density, and by which method there is one; empty where there is.

    what : begins the sentence
    """
    kind = method.density
    if isinstance(kind, Likelihood):
        return ""
    because = f" with {kind.because}" if kind.because != Objective.because else ""
    return (
        f"{what} needs a likelihood, and the criterion of gr.{type(method).__name__}{because} is none: use "
        f"{kind.instead or 'gr.OutputError(), gr.KalmanML() or gr.Collocation()'}."
    )


def why_no_posterior(method: Estimator) -> str:
    """Say why unknowns have no posterior, and what to do instead; empty where they have one."""
    kind = method.density
    if isinstance(kind, Likelihood) and kind.no_profiles:
        return (
            "A posterior takes residuals to be independent, which the errors of this fit do not: "
            "fit.with_errors('plain').posterior() has that of independent ones, a disturbance (gr.KalmanML) makes them "
            "correlated."
        )
    if method.density.no_posterior:
        return method.density.no_posterior
    return why_no_density(method, "A posterior")


def criterion_around(fit: Fitted, held: Sequence[str] = ()) -> ProfileCriterion:
    """Return what profiles walk on around a fit; ``held``: names of unknowns that will be given values."""
    refused = why_no_profiles(fit.method)
    if refused:
        raise EstimationError(refused)
    return fit.method.density.around(fit, held)


def why_no_profiles(method: Estimator) -> str:
    """Say why there are no profiles and regions, and what to do instead; empty where there are."""
    kind = method.density
    if kind.no_profiles or kind.supports_profiles:
        return kind.no_profiles
    return (
        f"Profiles and regions of fits by {type(method).__name__} are not available; fit.intervals() uses the "
        "curvature of the criterion."
    )


def why_no_inversion(method: Estimator) -> str:
    """Say why there are no bootstrap intervals, and what to do instead; empty where there are."""
    if not method.density.refits:
        return ""
    return (
        f"Bootstrap intervals follow the criterion by its derivatives, and {type(method).__name__} gives none: "
        f"use gr.bootstrap(fit), or fit.intervals(method='profile')."
    )


def why_no_ratio(method: Estimator) -> str:
    """Say why likelihood ratios have no known law, and what to do instead; empty where they have."""
    return why_no_profiles(method) or method.density.no_ratio


def refuse_no_likelihood(fit: Fitted) -> None:
    """Refuse a fit whose criterion turned out to be no likelihood, or of which no residuals are known."""
    if not fit.estimate.is_likelihood:
        raise EstimationError(
            "Profiles and confidence regions need a likelihood, and the criterion of this fit is not one: use "
            "fit.intervals(method='wald')."
        )
    if not fit.estimate.cases:
        raise EstimationError(f"{type(fit.method).__name__} gives no residuals from which deviances could be computed.")


def as_discretised(problem: P, fit: Fitted | None) -> P:
    """Return a problem with the steps of a fit."""
    if fit is None:
        return problem
    pairs = zip(problem.cases, fit.estimate.cases, strict=True)
    return problem.replace(cases=tuple(replace(c, discretisation=f.discretisation) for c, f in pairs))


def _is_of_the_same(fit: Fitted, method: Estimator, problem: EstimationProblem) -> bool:
    ours, its = ([e.fingerprint for e in data] for data in ([c.experiment for c in problem.cases], fit.experiments))
    return fit.method == method and ours == its
