"""A solution on one mesh as the start on a finer one, and whether a finer one is needed.

Its own polynomials are read off at the new points. How wrong the steps of a trajectory are is told by every element
against two of half its length, from the same left end: errors are of one step each, so that models whose trajectories
diverge from each other are judged like others.
"""

from __future__ import annotations

import numpy as np

from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.element_mesh import RADAU_NODES, RADAU_POINTS
from grisaille.collocation.direct.initial_path import solve_elements
from grisaille.collocation.direct.transcription import Transcription, TranscriptionPoint


def interpolated(coarse: Transcription, fine: Transcription, point: TranscriptionPoint) -> TranscriptionPoint:
    """Return the same trajectories on another mesh of the same records."""
    n, nz, nv, s, c = coarse.model.n, coarse.model.nz, coarse.model.nv, RADAU_POINTS, RADAU_NODES
    after = coarse.functions.after
    inner = np.empty((len(fine.record_of), after + s * (n + nz)))
    noise = np.empty((len(fine.record_of), s * nv))
    previous = coarse.previous(point)
    for r in range(len(coarse.records)):
        old, new = coarse.meshes[r], fine.meshes[r]
        (a, _), (first, last) = coarse.span(r), fine.span(r)
        middle = (new.bounds[:-1] + new.bounds[1:]) / 2
        e = np.clip(np.searchsorted(old.bounds, middle) - 1, 0, len(old.lengths) - 1)
        where = (new.nodes - old.bounds[e][:, None]) / old.lengths[e][:, None]
        values = point.inner[a + e, after:].reshape(len(e), s, n + nz)
        X = np.concatenate([previous[a + e][:, None], values[:, :, :n]], axis=1)
        states = np.einsum("ejk,eki->eji", lagrange(np.append(0.0, c), where), X)
        inside = lagrange(c, where)
        rest = np.einsum("ejk,eki->eji", inside, values[:, :, n:])
        inner[first:last, after:] = np.concatenate([states, rest], axis=2).reshape(last - first, s * (n + nz))
        if after:
            # only old ends can be jumps
            same = np.isclose(new.bounds[1:], old.bounds[e + 1], rtol=0.0, atol=1e-6 * old.lengths.min(initial=np.inf))
            inner[first:last, :after] = np.where(same[:, None], point.inner[a + e, :after], rest[:, -1])
        drive = point.noise[a + e].reshape(len(e), s, nv)
        noise[first:last] = np.einsum("ejk,eki->eji", inside, drive).reshape(last - first, s * nv)
    return TranscriptionPoint(point.theta, point.first, point.zeta, inner, noise)


def step_errors(program: Transcription, point: TranscriptionPoint) -> Floats:
    """Return (E,) the largest error of a state at the end of each element, relative to its size; zero where unknown.

    point : a trajectory without disturbances
    """
    n, s, after = program.model.n, RADAU_POINTS, program.functions.after
    slots = program.slots.values(point.theta)[program.record_of]
    nodes, E = program.nodes(point.inner).reshape(len(point.inner), s, -1), len(point.inner)
    c, now = RADAU_NODES, program.previous(point)
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
    """Return the data of elements with half the length; inputs by the polynomial through the points."""
    data, s, nu = program.element_data.copy(), RADAU_POINTS, int(program.model.u.numel())
    data[:, 0] += half * data[:, 1]
    data[:, 1] /= 2
    u = data[:, 2 : 2 + s * nu].reshape(len(data), s, nu)
    moved = np.einsum("jk,eku->eju", lagrange(RADAU_NODES, where), u)
    data[:, 2 : 2 + s * nu] = moved.reshape(len(data), -1)
    return data


def lagrange(nodes: Floats, where: Floats) -> Floats:
    """Return (…, points, nodes): weights of the nodes' values at given places."""
    weights = np.ones((*where.shape, len(nodes)))
    for k, own in enumerate(nodes):
        for j, other in enumerate(nodes):
            if j != k:
                weights[..., k] *= (where - other) / (own - other)
    return weights
