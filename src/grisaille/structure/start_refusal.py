"""Why no consistent start was found: the worst equation, its residual, and the demands that contradict it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from grisaille.errors import StructureError

if TYPE_CHECKING:
    from grisaille.structure.start_problem import StartProblem


def refuse_start(problem: StartProblem, w: np.ndarray, iterations: int) -> NoReturn:
    value, jw, _, names = problem.hard(w)
    scale = problem.owner.nominal
    rows = np.abs(jw * scale).max(axis=1, initial=0.0)
    rows = np.where(rows > 0, rows, 1.0)
    if not np.isfinite(jw).all():
        raise StructureError(
            f"No consistent start was found: '{names[problem.worst(w)[1]]}' has an infinite slope at the start values. "
            f"Give start values inside the model's domain."
        )
    scaled = np.abs(value) / rows
    k = int(np.argmax(scaled))
    involved = _contradicting_demands(problem, jw * scale / rows[:, None], value / rows)
    if involved:
        demands, others = involved
        raise StructureError(
            f"The demanded starts {', '.join(demands)} contradict {', '.join(repr(o) for o in others)}: the worst "
            f"residual is {value[k]:.3g} in '{names[k]}'. Drop one of the demands (fixed=False, or leave "
            f"it out of start=), and it is computed from the others."
        )
    raise StructureError(
        f"No consistent start was found: the equation '{names[k]}' keeps a residual of {value[k]:.3g} after "
        f"{iterations} damped Newton iterations and a homotopy. Give start values nearer to a solution, or "
        f"check that the equations have one there."
    )


def _contradicting_demands(
    problem: StartProblem, matrix: np.ndarray, residual: np.ndarray
) -> tuple[list[str], list[str]] | None:
    """Demands and constraints that depend on each other at the point where the search stopped."""
    if not problem.demands:
        return None
    u, s, _ = np.linalg.svd(matrix)
    rank = int(np.sum(s > 1e-7 * max(s[0], 1e-300)))
    null = u[:, rank:]
    if null.shape[1] == 0:
        return None
    weights = np.abs(null @ (null.T @ residual))
    names = problem.hard_names()
    chosen = [k for k in np.argsort(-weights) if weights[k] > 1e-3 * weights.max()]
    first_demand = len(names) - len(problem.demands)
    demand_names = list(problem.demands)
    demands = [demand_names[k - first_demand] for k in chosen if k >= first_demand]
    others = [names[k] for k in chosen if k < first_demand]
    return (demands, others or ["each other"]) if demands else None
