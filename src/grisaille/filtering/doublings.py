"""How often the matrix exponential of a linearised step is doubled: chosen along the record, then kept.

A series over 2⁻ˢ of a step h is accurate where ‖D⁻¹ A D‖ h ≤ 2ˢ⁻¹ in some units D of the states
(``disturbance.discretization``). One D serves all Jacobians of a record: the one that balances the largest that each of
their entries becomes.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.linalg.lapack import dgebal

from grisaille.compilation.evaluation import FlatEvaluation, flat_function
from grisaille.disturbance.discretization import MARGIN
from grisaille.disturbance.duals import Floats
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.implicit import Closed
from grisaille.filtering.kalman import States
from grisaille.filtering.roots import UnsolvedError

RUNAWAY = 1e9
"""‖A‖h of a model that is no longer there."""


def freeze_doublings(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None = None) -> None:
    """Doublings of the matrix exponential that are enough all along the record, with a margin."""
    if filter.roots is not None:
        filter.measure_roots(q, x0, z0)
    if filter.kind.propagation != "linearize":
        return
    longest = float((filter.cells(q).lengths / filter.steps(q)).max())
    first = _jacobians(filter, *_start(filter, q, x0, z0))
    filter.doublings = MARGIN + _needed(first, longest)
    for _ in range(3):
        found = _averaged_along(filter, q, x0, z0) if filter.model.jumps else _along(filter, q, x0, z0)
        largest = _needed(found, longest)
        if largest < filter.doublings:
            return
        filter.doublings = largest + MARGIN


def _needed(jacobians: Floats, h: float) -> int:
    """The most doublings that any of (m, n, n) needs; those of a model that has run away do not count."""
    sizes = np.abs(jacobians)
    if not sizes.size:
        return 0
    with np.errstate(invalid="ignore"):
        sizes = sizes[sizes.max(axis=(1, 2)) * h < RUNAWAY]
    if not len(sizes):
        return 0
    units = np.asarray(dgebal(sizes.max(axis=0), scale=1, permute=0)[3])
    norm = float((sizes * (units / units[:, None])).sum(axis=1).max()) * h
    return max(0, int(np.ceil(np.log2(2 * norm)))) if norm > 0 else 0


def _jacobians(filter: ExtendedFilter, t: Floats, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats:
    """Return the Jacobians of the drift at P points, (P, n, n); all arguments but q have a row for each point."""
    count, n = len(t), filter.model.n

    def make() -> FlatEvaluation:
        closed = Closed(filter.model, filter.newton)
        one = ca.Function("A", closed.symbols, [ca.densify(closed.rates(*closed.symbols)[1])])
        every = one.map("A", "serial", count, [4], [])
        if every.nnz_out(0) < count * n * n:  # CasADi's map drops a single entry that is always zero
            return lambda *_: [np.zeros(count * n * n)]
        return flat_function(every)

    function = filter.model.kept(("Jacobians of the drift", filter.newton, count), make)
    return function(t, x, z, u, q)[0].reshape(count, n, n).transpose(0, 2, 1)


def _start(
    filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return t, x, z, u with one row each, and q."""
    x = np.zeros(filter.model.n)
    x[: filter.model.nx] = x0[0]
    z = np.zeros(filter.packing.nz)
    if z0 is not None:
        z[: z0.shape[1]] = z0[0]
    given = filter.prepared(q).given
    return given.bounds[:1], x[None], z[None], given.signals[:1], q


def _averaged_along(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None) -> Floats:
    """The Jacobians that the steps use themselves: where a model jumps those of averages, which depend on P."""
    nothing, n = np.zeros((0, len(q))), filter.model.n
    with np.errstate(all="ignore"):
        given = filter.prepared(q)
        s = filter.start(given, q, nothing, x0, z0)
        kept = filter.carry(given, q, s, nothing, keep=True).kept
    assert kept is not None
    g, coefficients = given.given, filter.program.evaluate("gr_coefficients", 0)
    found = [
        coefficients(g.bounds[k], (g.bounds[k + 1] - g.bounds[k]) / g.steps[k], s, u, u, u, q, filter.nominal)[0][
            : n * n
        ].reshape(n, n)
        for k, u in enumerate(g.signals[:-1])
        for s in kept[k]
    ]
    return np.array(found)


def _along(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None) -> Floats:
    """Jacobians at every predicted and updated mean, as far as the filter comes."""
    kept: list[States] = []
    zs: list[Floats] = []
    try:
        filter.run(q, np.zeros((0, len(q))), x0, z0=z0, states=kept, algebraic=zs)
    except UnsolvedError:
        return np.zeros((0, filter.model.n, filter.model.n))
    if not kept:
        return np.zeros((0, filter.model.n, filter.model.n))
    given = filter.prepared(q).given
    z = zs[0] if zs else np.zeros((len(given.bounds), filter.packing.nz))
    found = [
        _jacobians(filter, given.bounds, np.ascontiguousarray(means), np.ascontiguousarray(z), given.signals, q)
        for means in (kept[0].x_pred, kept[0].x_filt)
    ]
    return np.concatenate(found)
