"""Why no consistent start was found: the worst equation, its residual, and the demands that contradict it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from grisaille.errors import StructureError

if TYPE_CHECKING:
    from grisaille.structure.starts.problem import StartProblem


def refuse_start(problem: StartProblem, w: np.ndarray, iterations: int) -> NoReturn:
    _refuse_undefined_guesses(problem, w)
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
    involved = _contradicting_fixed_starts(problem, jw * scale / rows[:, None], value / rows)
    if involved:
        demands, others = involved
        _refuse_immovable(problem, demands, value, jw)
        against = ", ".join(repr(o) for o in others) or "each other"
        raise StructureError(
            f"The fixed starts {', '.join(demands)} contradict {against}: the worst "
            f"residual is {value[k]:.3g} in '{names[k]}'. Drop one of the fixed starts (fixed=False, or leave "
            f"it out of start=), and it is computed from the others."
        )
    what = "steady state" if problem.steady else "consistent start"
    raise StructureError(
        f"No {what} was found: the equation '{names[k]}' keeps a residual of {value[k]:.3g} after "
        f"{iterations} damped Newton iterations and a homotopy. Give start values nearer to a solution, or "
        f"check that the equations have one there."
    )


def refuse_undefined(problem: StartProblem, guess: np.ndarray) -> NoReturn:
    """Equations without a value at the guess and near it."""
    value, _, _, labels = problem.hard(guess)
    bad = [labels[k] for k in np.flatnonzero(~np.isfinite(value))]
    names = (*problem.owner.system.state_names, *problem.owner.system.implicit_names)
    named = ", ".join(f"{n} = {v:g}" for n, v in zip(names, guess, strict=True))
    raise StructureError(
        f"The equation '{bad[0]}' has no finite value at the start ({named}): a division by zero, or a root or "
        f"logarithm of a number outside its domain. Give start values inside the model's domain."
    )


def check_guesses(problem: StartProblem, w: np.ndarray) -> None:
    """Refuse a start at which a variable that a start was declared for is undefined."""
    wished = [n for level in problem.wishes for n in level]
    if wished:
        values = problem.observed(w)
        if not np.isfinite(values[[problem.owner.observed_position[n] for n in wished]]).all():
            _refuse_undefined_guesses(problem, w)


def _refuse_undefined_guesses(problem: StartProblem, w: np.ndarray) -> None:
    """Wished variables that are undefined at the start, where no equation is left to blame."""
    observed = problem.observed(w)
    names = problem.owner.system.observed_names
    variables = problem.owner.structure.model.variables
    undefined = [n for n, v in zip(names, observed, strict=True) if n in variables and not np.isfinite(v)]
    if undefined and np.isfinite(problem.hard(w)[0]).all():
        raise StructureError(
            f"{', '.join(undefined[:6])} {'has' if len(undefined) == 1 else 'have'} no finite value at the start: a "
            f"division by zero, or a root or logarithm of a number outside its domain. At these parameter values and "
            f"starts the equations may not determine it."
        )


def _refuse_immovable(problem: StartProblem, demands: list[str], value: np.ndarray, jw: np.ndarray) -> None:
    """A demand on something that inputs and parameters alone dictate."""
    offset = len(value) - len(problem.demands)
    for k, (name, wanted) in enumerate(problem.demands.items()):
        if name in demands and not jw[offset + k].any():
            raise StructureError(
                f"The start of {name} = {wanted:g} is fixed, but nothing can change it: it follows from inputs, "
                f"parameters and numbers alone and is {wanted + value[offset + k]:g}. Drop the fixed start "
                f"(fixed=False, or "
                f"leave it out of start=)."
            )


def _contradicting_fixed_starts(
    problem: StartProblem, matrix: np.ndarray, residual: np.ndarray
) -> tuple[list[str], list[str]] | None:
    """Return demands and constraints that depend on each other at the point where the search stopped."""
    if not problem.demands:
        return None
    u, s, _ = np.linalg.svd(matrix)
    rank = int(np.sum(s > 1e-7 * s.max(initial=1e-300)))
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
    return (demands, others) if demands else None
