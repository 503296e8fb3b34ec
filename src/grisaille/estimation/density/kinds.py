"""What an estimator declares about its criterion: that it is a likelihood, or why it is none.

``Estimator.density`` is one of the two. Whoever needs a log-density asks ``log_density_of``, whoever walks around a fit
``criterion_around``; both refuse in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion import Criterion
from grisaille.estimation.density.log_density import LogDensity
from grisaille.estimation.problem import Problem

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fitted import Fitted

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Likelihood:
    """A criterion that is −log L − log prior.

    of : gives the log-density of a problem that the estimator has posed, and of a fit whose discretisation it takes
        over, if there is one
    around : gives what profiles walk on around a fit, in which unknowns of these names will be held: the same density
        on the discretisation of the fit, open levels of noise concentrated out where that is quicker
    no_profiles, no_ratio : why there are no profiles, or likelihood ratios have no known law, and what to do instead;
        empty where there are
    has_levels : whether levels of noise are among its unknowns, so that one may lie at zero
    refits : whether only the estimator itself can search with unknowns held
    """

    of: Callable[[Problem, Fitted | None], LogDensity]
    around: Callable[[Fitted, Sequence[str]], Criterion]
    no_profiles: str = ""
    no_ratio: str = ""
    has_levels: bool = False
    refits: bool = False
    because: str = ""


@dataclass(frozen=True)
class NoLikelihood:
    """What is minimised, but is no likelihood.

    because : the option or the property that makes it none, as in ``loss='huber'``
    instead : what would be one, as in ``gr.OutputError(loss='linear')``
    around, no_profiles, no_ratio, has_levels, refits : as of likelihoods; None where there is nothing to walk on
    """

    because: str = "its own criterion"
    instead: str = ""
    around: Callable[[Fitted, Sequence[str]], Criterion] | None = None
    no_profiles: str = ""
    no_ratio: str = ""
    has_levels: bool = False
    refits: bool = False


def log_density_of(method: Estimator, problem: Problem, fit: Fitted | None = None) -> LogDensity:
    """Return the log-density of a problem that a method has posed; refuse what is no likelihood.

    fit : one by the same method of the same experiments has a discretisation that suits its estimates
    """
    kind = method.density
    if isinstance(kind, Likelihood):
        return kind.of(problem, fit if fit is not None and _is_of_the_same(fit, method, problem) else None)
    ways = [kind.instead] if kind.instead else ["gr.OutputError()", "gr.KalmanML()", "gr.Collocation()"]
    raise EstimationError(
        f"A log-density needs a likelihood, and that of gr.{type(method).__name__} with {kind.because} is none: use "
        f"{' or '.join([', '.join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)}."
    )


def criterion_around(fit: Fitted, held: Sequence[str] = ()) -> Criterion:
    """Return what profiles walk on around a fit; ``held``: names of unknowns that will be given values."""
    refused, around = why_no_profiles(fit.method), fit.method.density.around
    if refused or around is None:
        raise EstimationError(refused)
    return around(fit, held)


def why_no_profiles(method: Estimator) -> str:
    """Say why there are no profiles and regions, and what to do instead; empty where there are."""
    kind = method.density
    if kind.no_profiles or kind.around is not None:
        return kind.no_profiles
    return (
        f"Profiles and regions of fits by {type(method).__name__} are not available; fit.intervals() uses the "
        "curvature of the criterion."
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
    return problem.but(cases=tuple(replace(c, discretisation=f.discretisation) for c, f in pairs))


def _is_of_the_same(fit: Fitted, method: Estimator, problem: Problem) -> bool:
    ours, its = ([e.fingerprint for e in data] for data in ([c.experiment for c in problem.cases], fit.experiments))
    return fit.method == method and ours == its
