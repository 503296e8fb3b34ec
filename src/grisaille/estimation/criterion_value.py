"""What ``gr.evaluate`` gives: a criterion at given values, with its gradient, residuals and states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.experiment.times.dating import with_dates

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class CriterionValue:
    """The criterion at given parameters."""

    objective: float
    """What the estimator minimises; by output error with open noise −log L at the levels that are best there."""
    log_likelihood: float
    """NaN where the criterion is not a likelihood."""
    gradient: dict[str, float]
    residuals: np.ndarray
    """Weighted; standardised innovations of likelihoods; then one per prior."""
    predictions: dict[str, np.ndarray]
    """By experiment: what was compared with the measurements."""
    names: tuple[str, ...]
    values: dict[str, float] = field(default_factory=dict)
    _method: Estimator | None = None
    _problem: EstimationProblem | None = None
    _pose: Callable[[], EstimationProblem] | None = None
    """The problem again, where it was left behind: pickle and copies carry content only."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_problem": None}

    @cached_property
    def states(self) -> dict[str, xr.Dataset]:
        """By experiment: states with bands for the given values, as ``fit.states()`` has them."""
        if self._method is None or self._pose is None:
            raise EstimationError("This value was not computed by an estimator: use gr.evaluate.")
        if self._method.states is None:
            raise missing_ability_error(self._method, "states")
        problem = self._pose() if self._problem is None else self._problem
        found = self._method.states.at(problem, np.array([self.values[n] for n in self.names]))
        records = {case.name: case.experiment for case in problem.cases}
        return {name: with_dates(states, records[name]) for name, states in found.items()}

    def __str__(self) -> str:
        width = max([len(n) for n in self.names], default=4) + 2
        likelihood = "" if np.isnan(self.log_likelihood) else f", log-likelihood {self.log_likelihood:.12g}"
        lines = [f"objective {self.objective:.12g}{likelihood}"]
        lines += [f"{'':<{width}}{'value':>14}{'gradient':>14}"]
        lines += [f"{n:<{width}}{self.values.get(n, np.nan):>14.7g}{self.gradient[n]:>14.5g}" for n in self.names]
        rms = float(np.sqrt(np.mean(self.residuals**2))) if self.residuals.size else 0.0
        count = self.residuals.size
        lines.append(f"{count} residual{'' if count == 1 else 's'}, rms {rms:.6g}")
        return "\n".join(lines)

    __repr__ = __str__


def evaluate_criterion(
    problem: EstimationProblem,
    point: Evaluation,
    log_likelihood: float,
    gradient: np.ndarray,
    method: Estimator,
    pose: Callable[[], EstimationProblem],
) -> CriterionValue:
    """Return the answer at one point."""
    names = tuple(u.name for u in problem.unknowns)
    return CriterionValue(
        float(point.objective),
        float(log_likelihood),
        {n: float(g) for n, g in zip(names, gradient, strict=True)},
        point.residuals,
        {c.name: p.y for c, p in zip(problem.cases, point.predictions, strict=True)},
        names,
        {n: float(v) for n, v in zip(names, point.theta, strict=True)},
        method,
        problem,
        pose,
    )
