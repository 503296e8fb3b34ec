"""What an estimator declares about its criterion: that it is a likelihood, or why it is none.

``Estimator.density`` is one of the two. Whoever needs a log-density asks ``log_density_of``, which refuses a criterion
that is none in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from grisaille.errors import EstimationError
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
    """

    of: Callable[[Problem, Fitted | None], LogDensity]


@dataclass(frozen=True)
class Criterion:
    """What is minimised, but is no likelihood.

    because : the option or the property that makes it none, as in ``loss='huber'``
    instead : what would be one, as in ``loss='linear'``
    """

    because: str = "its own criterion"
    instead: str = ""


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


def as_discretised(problem: P, fit: Fitted | None) -> P:
    """Return a problem with the steps of a fit."""
    if fit is None:
        return problem
    pairs = zip(problem.cases, fit.estimate.cases, strict=True)
    return problem.but(cases=tuple(replace(c, discretisation=f.discretisation) for c, f in pairs))


def _is_of_the_same(fit: Fitted, method: Estimator, problem: Problem) -> bool:
    ours, its = ([e.fingerprint for e in data] for data in ([c.experiment for c in problem.cases], fit.experiments))
    return fit.method == method and ours == its
