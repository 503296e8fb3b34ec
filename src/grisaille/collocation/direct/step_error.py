"""How wrong the steps of a trajectory are: every element against two of half its length, from the same left end.

Errors are of one step each, so that models whose trajectories diverge from each other are judged like others.
"""

from __future__ import annotations

import numpy as np

from grisaille.collocation.direct.mesh import NODES, POINTS, Floats
from grisaille.collocation.direct.refinement import lagrange
from grisaille.collocation.direct.start import solve_elements
from grisaille.collocation.direct.transcription import Point, Transcription


def step_errors(program: Transcription, point: Point) -> Floats:
    """(E,) the largest error of a state at the end of each element, relative to its size; zero where unknown.

    point : a trajectory without disturbances
    """
    n, s, after = program.model.n, POINTS, program.functions.after
    slots = program.slots.values(point.theta)[program.record_of]
    nodes, E = program.nodes(point.inner).reshape(len(point.inner), s, -1), len(point.inner)
    c, now = NODES, program.previous(point)
    everywhere = np.concatenate([now[:, None], nodes[:, :, :n]], axis=1)
    for half in (0.0, 0.5):
        where = half + c / 2
        X = np.einsum("jk,eki->eji", lagrange(np.append(0.0, c), where), everywhere)
        Z = np.einsum("jk,eki->eji", lagrange(c, where), nodes[:, :, n:])
        guess = np.hstack([point.inner[:, :after], np.concatenate([X, Z], axis=2).reshape(E, -1)])
        found, solved = solve_elements(program, _halves(program, where, half), now, guess, slots, np.ones(E, bool))
        if after:  # inputs jump at the ends of elements, not inside
            found[:, :after] = point.inner[:, :after]
        now = np.where(solved[:, None], found[:, program.seen_columns[:n]], np.nan)
    size = np.abs(program.ends(point)).max(axis=0, initial=0.0) + 1e-300
    error = np.abs(now - program.ends(point)) / size
    return np.asarray(np.nan_to_num(error, nan=0.0, posinf=0.0).max(axis=1, initial=0.0))


def _halves(program: Transcription, where: Floats, half: float) -> Floats:
    """The data of elements with half the length; inputs by the polynomial through the points."""
    data, s, nu = program.element_data.copy(), POINTS, int(program.model.u.numel())
    data[:, 0] += half * data[:, 1]
    data[:, 1] /= 2
    u = data[:, 2 : 2 + s * nu].reshape(len(data), s, nu)
    moved = np.einsum("jk,eku->eju", lagrange(NODES, where), u)
    data[:, 2 : 2 + s * nu] = moved.reshape(len(data), -1)
    return data
