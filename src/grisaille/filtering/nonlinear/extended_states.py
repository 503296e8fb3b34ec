"""Filtered and smoothed states of a nonlinear filter, on the hidden constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.compilation.kalman.compiled_pass import PreparedPass
from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import FilterMoments, LikelihoodSums
from grisaille.filtering.passes import Passes
from grisaille.filtering.smoother import smooth_moments


@dataclass(frozen=True, eq=False)
class ExtendedStates:
    """Moments at every cell boundary, and algebraic unknowns there (filtered)."""

    filtered: FilterMoments
    x_smooth: Floats
    P_smooth: Floats
    z: Floats


def states_of(filter: Passes, q: Floats, x0: Floats, z0: Floats) -> ExtendedStates | LikelihoodSums:
    """Return both passes; the sums of the first where it fails."""
    kept: list[FilterMoments] = []
    zs: list[Floats] = []
    sums = filter.run(q, np.zeros((0, len(q))), x0, z0=z0, states=kept, algebraic=zs)
    if sums.failed >= 0:
        return sums
    x, P = smooth_moments(kept[0], transitions(filter, q, kept[0], zs[0]), projectors(filter, q, kept[0], zs[0]))
    if filter.model.constraints.numel():
        given, none = filter.prepared(q).given, np.zeros((0, len(q)))
        for k, (t, u) in enumerate(zip(given.bounds, given.signals, strict=True)):
            s = filter.packing.join(x[k], P[k], zs[0][k])[None]
            x[k], P[k], _ = filter.packing.split(filter.settled(t, u, q, none, s)[0])
    return ExtendedStates(kept[0], x, P, zs[0][:, : filter.model.z.numel()])


def transitions(filter: Passes, q: Floats, states: FilterMoments, z: Floats) -> list[Floats]:
    """Return ∂x_pred/∂x_filt over every cell: the derivative of the steps with the covariance held."""
    given, n = filter.prepared(q).given, filter.model.n
    still = np.zeros((n, len(q)))
    directions = filter.packing.join(np.eye(n), np.zeros((n, n, n)), np.zeros((n, filter.packing.nz)))
    found = []
    for k in range(len(given.bounds) - 1):
        s = filter.packing.join(states.x_filt[k], states.P_filt[k], z[k])
        cell = PreparedPass(given.part(k, k + 1))
        moved = filter.carry(cell, q, np.concatenate([s[None], directions]), still, keep=False).ds
        found.append(np.asarray(moved[:, :n].T))
    return found


def projectors(filter: Passes, q: Floats, states: FilterMoments, z: Floats) -> list[Floats]:
    """Return the projectors on the tangent of the constraints at every predicted mean."""
    given, n, pack = filter.prepared(q).given, filter.model.n, filter.packing
    if not filter.model.constraints.numel():
        return [np.eye(n)] * len(given.bounds)
    still, found = np.zeros((n, len(q))), []
    directions = pack.join(np.eye(n), np.zeros((n, n, n)), np.zeros((n, pack.nz)))
    for k, (t, u) in enumerate(zip(given.bounds, given.signals, strict=True)):
        s = np.concatenate([pack.join(states.x_pred[k], states.P_pred[k], z[k])[None], directions])
        found.append(np.asarray(filter.settled(t, u, q, still, s)[1:, :n].T))
    return found
