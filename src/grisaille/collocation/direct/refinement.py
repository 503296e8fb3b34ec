"""A solution on one mesh as the start on a finer one: its own polynomials, read off at the new points."""

from __future__ import annotations

import numpy as np

from grisaille.collocation.direct.mesh import NODES, POINTS, Floats
from grisaille.collocation.direct.transcription import Point, Transcription


def interpolated(coarse: Transcription, fine: Transcription, point: Point) -> Point:
    """The same trajectories on another mesh of the same records."""
    n, nz, nv, s, c = coarse.model.n, coarse.model.nz, coarse.model.nv, POINTS, NODES
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
    return Point(point.theta, point.first, point.zeta, inner, noise)


def lagrange(nodes: Floats, where: Floats) -> Floats:
    """(…, points, nodes): weights of the nodes' values at given places."""
    weights = np.ones((*where.shape, len(nodes)))
    for k, own in enumerate(nodes):
        for j, other in enumerate(nodes):
            if j != k:
                weights[..., k] *= (where - other) / (own - other)
    return weights
