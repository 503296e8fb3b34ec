"""The result of one run as a flat row of numbers and texts, the same whoever ran it.

Wall time is kept beside the row and not in it, so that a table is a function of model, data, options and seed only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.estimation.estimate import Estimate
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimation.uncertainty import half_width

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator

NUMBER_COLUMNS = ("objective", "criterion")
TEXT_COLUMNS = ("at_bound", "failure", "status")
BOOKKEEPING_COLUMNS = {
    *NUMBER_COLUMNS,
    *TEXT_COLUMNS,
    "converged",
    "evaluations",
    "degrees_of_freedom",
    "seed",
    "basin",
}

FAILURE_REASONS = {
    "data": "the data could not be simulated",
    "fit": "the fit failed",
    "worker": "the worker process died",
}


@dataclass(frozen=True)
class RowLayout:
    """The columns of a study's table."""

    names: tuple[str, ...]
    """Unknowns."""
    noises: tuple[str, ...]
    """Outputs whose noise level is estimated."""
    with_guess: bool
    """Whether each run has a guess of its own."""

    @property
    def floats(self) -> list[str]:
        per_unknown = [f"{what}({n})" for what in ("std_error", "lower", "upper") for n in self.names]
        guesses = [f"guess({n})" for n in self.names] if self.with_guess else []
        return [
            *guesses,
            *map(column, self.names),
            *per_unknown,
            *(f"noise({o})" for o in self.noises),
            *NUMBER_COLUMNS,
        ]

    @property
    def columns(self) -> list[str]:
        return [*self.floats, "converged", "evaluations", "degrees_of_freedom", *TEXT_COLUMNS]


def column(name: str) -> str:
    """Return the column of an estimate: the unknown's own name, unless the table needs that for itself."""
    return f"estimate({name})" if name in BOOKKEEPING_COLUMNS else name


def layout_of(problem: EstimationProblem, with_guess: bool) -> RowLayout:
    return RowLayout(tuple(u.name for u in problem.unknowns), tuple(problem.sigma), with_guess)


def finished_row(layout: RowLayout, estimate: Estimate, guess: np.ndarray, method: Estimator) -> dict[str, float]:
    """Return the row of a run that gave an estimate."""
    errors = np.sqrt(np.clip(np.diag(estimate.covariance), 0.0, None))
    half = half_width(errors, 0.95, estimate.degrees_of_freedom)
    numbers = [
        *(guess if layout.with_guess else ()), *estimate.theta, *errors, *(estimate.theta - half),
        *(estimate.theta + half), *(estimate.noise.get(o, np.nan) for o in layout.noises), estimate.objective,
        method.density.compared(estimate),
    ]  # fmt: skip
    row: dict[str, Any] = dict(zip(layout.floats, map(float, numbers), strict=True))
    row["converged"] = bool(estimate.converged)
    row["evaluations"] = int(estimate.evaluations)
    row["degrees_of_freedom"] = round(estimate.degrees_of_freedom)
    row["at_bound"] = ", ".join(n for n, free in zip(layout.names, estimate.free, strict=True) if not free)
    return {**row, "failure": "", "status": estimate.status}


def failed_row(
    layout: RowLayout, stage: str, reason: str, guess: Sequence[float] | np.ndarray = ()
) -> dict[str, float]:
    """Return the row of a run without an estimate; its guess is kept."""
    row: dict[str, Any] = dict.fromkeys(layout.floats, float("nan"))
    if layout.with_guess:
        row.update({f"guess({n})": float(v) for n, v in zip(layout.names, guess, strict=False)})
    row.update(converged=False, evaluations=0, degrees_of_freedom=0, at_bound="", failure=stage)
    return {**row, "status": f"FAILED: {FAILURE_REASONS[stage]}: {' '.join(reason.split())}"}
