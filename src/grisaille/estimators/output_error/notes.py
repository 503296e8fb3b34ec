"""Notes of a least-squares fit on its search and its noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error.least_squares_minimum import Squares
from grisaille.model.measurement.noise_covariances import shared_covariances
from grisaille.simulation.runner import Prediction
from grisaille.structure.starts.problem import nominal_of

if TYPE_CHECKING:
    from grisaille.estimators.output_error.output_error import OutputError

MAX_SENSITIVITY_GROWTH = 1e6
"""Growth of sensitivities along a record from which on single shooting is not believed, where a change of an unknown by
one part in as many also moves an output over its whole range (a body that begins to slide grows, but stays tame)."""

SWINGING, FEWEST = 0.7, 20
"""Correlation of neighbouring residuals from which on a minimum is doubted where equations switch, and how many."""


def nothing_moves_note(search: Squares, seen: np.ndarray) -> str:
    """Return the note where no unknown affects anything that was measured: there was nothing to search."""
    if seen.any() or not len(seen):
        return ""
    names = [u.name for u in search.unknowns]
    several = f"none of the unknowns {', '.join(names[:6])}{', …' if len(names) > 6 else ''}"
    which = several if len(names) > 1 else f"'{names[0]}' does not"
    moves = "moves" if len(names) > 1 else "move"
    return (
        f"{which} {moves} any measured output where the search stands, so that these data tell nothing from there. "
        f"Give other values by guess=, data in which the inputs excite the model, or measure what depends on them"
    )


def growth_note(problem: EstimationProblem, search: Squares, evaluation: Evaluation) -> list[str]:
    """Return sensitivities that explode along the record: single shooting cannot be trusted there."""
    notes = []
    for case, prediction in zip(problem.cases, evaluation.predictions, strict=False):
        if prediction.sy.size and case.grid.size > 10:
            size = np.abs(prediction.sy).max(axis=(1, 2))
            early = size[1 : max(len(size) // 10, 2)].max()
            if (
                early > 0
                and size[-1] > MAX_SENSITIVITY_GROWTH * early
                and _leverage(search.unknowns, case, prediction) > MAX_SENSITIVITY_GROWTH
            ):
                notes.append(
                    f"unstable: in '{case.name}' the sensitivities grow {size[-1] / early:.0e}-fold along the record, "
                    f"so small errors grow; use gr.OutputError(shooting='multiple')."
                )
    return notes


def _leverage(unknowns: Sequence[Unknown], case: ExperimentTerm, prediction: Prediction) -> float:
    """Return largest change of an output at the end, in its measured range, by a change of an unknown of its own
    size.
    """
    variables = case.trial.flat.variables
    mine = [unknowns[k] for k in case.unknowns]
    # a start of zero says nothing about its size; its variable does
    sizes = np.array([max(u.size, nominal_of(variables.get(u.target))) if u.kind == "start" else u.size for u in mine])
    ranges = np.array([np.ptp(s.values) if len(s.values) > 1 else 0.0 for s in case.samples])
    columns = [case.column(s.output) for s in case.samples]
    moved = (np.abs(prediction.sy[-1, columns]) * sizes).max(axis=1)
    return float((moved / np.where(ranges > 0, ranges, 1.0)).max())


def weighting_note(output: str) -> str:
    """Note that weights follow the estimates, and which information is not used."""
    return (
        f"noise of {output}: its formula follows the estimates, and weights were renewed until they stay (iteratively "
        f"reweighted least squares). What the size of the residuals tells of the unknowns is not used; gr.KalmanML() "
        f"maximises the likelihood."
    )


def correlation_notes(method: OutputError, problem: EstimationProblem) -> list[str]:
    """Return declared covariances between measured outputs, which squares of errors leave aside."""
    option = next(
        (
            f"{name}={value!r}"
            for name, value, plain in (
                ("loss", method.loss, "linear"),
                ("shooting", method.shooting, "single"),
                ("errors", method.errors, "plain"),
            )
            if value != plain
        ),
        "",
    )
    said = (
        "standard errors follow from the residuals, with their correlation"
        if method.errors == "robust"
        else "standard errors do not account for it: gr.OutputError() without this option does"
    )
    return [
        f"correlated noise: gr.OutputError({option}) takes the noise of {a} and {b} to be independent; the declared "
        f"covariance is not used, and {said}."
        for a, b in shared_covariances(problem.cases[0].trial.flat, problem.outputs)
    ]


def minima_note(problem: EstimationProblem, evaluation: Evaluation) -> list[str]:
    """Return residuals that swing together beside equations that switch: trajectories that miss switches have minima,
    too.
    """
    switching = next((c for c in problem.cases if c.trial.flat.whens or c.trial.structure.jumps.of_states), None)
    if switching is None or not evaluation.completed:
        return []
    first, worst = 0, (0.0, "", "")
    for case in problem.cases:
        for s in case.samples:
            r = evaluation.residuals[first : first + len(s.values)]
            first += len(s.values)
            if len(r) >= FEWEST and np.ptp(r) > 0:
                r = r - r.mean()
                worst = max(worst, (float(r[1:] @ r[:-1] / (r @ r)), s.output, case.name))
    if worst[0] < SWINGING:
        return []
    return [
        f"minima: the equations switch, so the sum of squares has a minimum for many ways in which simulated switches "
        f"match measured ones, and residuals of {worst[1]} in '{worst[2]}' swing together (correlation "
        f"{worst[0]:+.2f} at lag 1), as they do in a wrong one. gr.multistart(…) looks for others."
    ]


def same_as(search: Squares, evaluation: Evaluation) -> Callable[[np.ndarray], bool]:
    """Return whether other values have the sum of squares of an evaluation, up to the accuracy of simulations."""

    def same(theta: np.ndarray) -> bool:
        there = search.evaluate(theta, sensitive=False, quietly=True)
        return abs(there.objective - evaluation.objective) < 1e-3 * (1 + abs(evaluation.objective))

    return same
