"""Meshes of splines: the same experiment on another one, where one is too coarse, and bounds of states on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grisaille.collocation.descent import Quadratic
from grisaille.collocation.knots import halved
from grisaille.collocation.mesh import Knots, Mesh
from grisaille.collocation.program import Linearised, SplineProgram

SHARE = 0.9
"""Of what bends inside cells: the cells that hold so much of it are halved."""


def on_mesh(program: SplineProgram, mesh: Mesh, beta: np.ndarray) -> tuple[SplineProgram, np.ndarray]:
    """The same experiment and trajectory on a mesh that contains the knots of its own."""
    frozen = program.noise_states if program.record.noise_follows else None
    return program.on(Knots.on(mesh, program.knots.quadrature, frozen)), program.mesh.moved_to(mesh, beta)


def refined(quadratic: Quadratic) -> list[tuple[SplineProgram, np.ndarray]]:
    """Programs with more knots where the trajectories need them, each with its trajectories.

    What is left of the model, w = ẋ − f, is smooth between observations at the exact minimum. On too few knots it bends
    inside the cells instead. The part of ½ ∫ |w|²/Q that a straight line through a cell's points does not explain tells
    where.
    """
    errors = [cell_errors(p, part) for p, part in zip(quadratic.task.programs, quadratic.parts, strict=True)]
    every = np.sort(np.concatenate(errors))[::-1]
    least = every[int(np.searchsorted(np.cumsum(every), SHARE * every.sum()))]
    made = []
    for program, beta, error in zip(quadratic.task.programs, quadratic.betas, errors, strict=True):
        where = program.cells.t.reshape(len(error), -1).mean(axis=1)[error >= least]
        made.append(on_mesh(program, halved(program.mesh, where), beta))
    return made


def left_over(q: Quadratic) -> float:
    """The part of the criterion that more knots would take away, roughly."""
    return float(sum(cell_errors(p, part).sum() for p, part in zip(q.task.programs, q.parts, strict=True)))


def cell_errors(program: SplineProgram, part: Linearised) -> np.ndarray:
    """For every cell, the share of the criterion that bends inside it."""
    group = program.cells.group
    if group < 3:
        # two points always lie on a line: nothing can be said
        return np.zeros(len(part.model.residuals) // group)
    weights = np.sqrt(program.weights).reshape(-1, group)
    t = program.cells.t.reshape(-1, group)
    rho = part.model.residuals.reshape(-1, group, program.n)
    line = np.stack([weights, weights * (t - t.mean(axis=1, keepdims=True))], axis=2)
    Q, _ = np.linalg.qr(line)
    left = rho - Q @ (np.swapaxes(Q, 1, 2) @ rho)
    return np.asarray(0.5 * (left**2).sum(axis=(1, 2)))


def limits(programs: Sequence[SplineProgram]) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Declared bounds of states as bounds of their coefficients, between which a spline stays."""
    lows, highs = [], []
    for program in programs:
        low, high = np.full(program.mesh.count, -np.inf), np.full(program.mesh.count, np.inf)
        model = program.record.stochastic
        for name, place in zip(model.names[: model.nx], program.mesh.places, strict=False):
            variable = model.structure.model.variables.get(name)
            if variable is not None and variable.bounds is not None:
                lower, upper = variable.bounds
                low[place] = -np.inf if lower is None else lower
                high[place] = np.inf if upper is None else upper
        lows.append(low)
        highs.append(high)
    return tuple(lows), tuple(highs)
