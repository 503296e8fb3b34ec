"""The number of doublings of the matrix exponential of a linearised step: chosen along the record, then fixed.

A series over 2⁻ˢ of a step h is accurate where ‖D⁻¹ A D‖ h ≤ 2ˢ⁻¹ in some units D of the states
(``disturbance.discretization``). One D serves all Jacobians of a record: the one that balances the largest that each of
their entries becomes.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_over_points
from grisaille.disturbance.discretization import EXTRA_DOUBLINGS
from grisaille.disturbance.duals import Floats
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.filtering.passes import Passes
from grisaille.filtering.stepping.step_passes import StepPasses

MAX_NORM = 1e9
"""‖A‖h of a model that is no longer there."""


def freeze_doublings(passes: StepPasses) -> None:
    """Set doublings of the matrix exponential that are enough all along the record, with a margin."""
    filter = passes.filter
    _measure_roots(passes)
    if filter.kind.propagation != "linearize":
        return
    longest = _longest(passes)
    filter.doublings = EXTRA_DOUBLINGS + _needed(_at_start(passes), longest)
    for _ in range(3):
        largest = _needed(_along(passes), longest)
        if largest < filter.doublings:
            return
        filter.doublings = largest + EXTRA_DOUBLINGS


def lower_doublings(passes: StepPasses) -> None:
    """Set doublings that are enough for the steps that were chosen with more of them, from the pass that was run."""
    filter = passes.filter
    _measure_roots(passes)
    if filter.kind.propagation != "linearize":
        return
    longest = _longest(passes)
    largest, first = _needed(_along(passes), longest), EXTRA_DOUBLINGS + _needed(_at_start(passes), longest)
    filter.doublings = first if largest < first else largest + EXTRA_DOUBLINGS


def _measure_roots(passes: StepPasses) -> None:
    if passes.filter.roots is not None:
        passes.filter.measure_roots(passes.q, passes.x0, passes.z0)


def _longest(passes: StepPasses) -> float:
    """Return the longest step."""
    return float((passes.filter.cells(passes.q).lengths / passes.filter.steps(passes.q)).max())


def _needed(jacobians: Floats, h: float) -> int:
    """Return the most doublings that any of (m, n, n) needs; those of a model that has run away do not count."""
    from scipy.linalg.lapack import dgebal

    sizes = np.abs(jacobians)
    if not sizes.size:
        return 0
    with np.errstate(invalid="ignore"):
        sizes = sizes[sizes.max(axis=(1, 2)) * h < MAX_NORM]
    if not len(sizes):
        return 0
    units = np.asarray(dgebal(sizes.max(axis=0), scale=1, permute=0)[3])
    norm = float((sizes * (units / units[:, None])).sum(axis=1).max()) * h
    return max(0, int(np.ceil(np.log2(2 * norm)))) if norm > 0 else 0


def _jacobians(filter: Passes, t: Floats, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats:
    """Return the Jacobians of the drift at P points, (P, n, n); all arguments but q have a row for each point."""
    count, n = len(t), filter.model.n

    def make() -> FlatEvaluation:
        closed = AlgebraicModel(filter.model, filter.newton)
        t, *others = closed.symbols
        one = ca.Function("A", closed.symbols, [ca.densify(closed.rates(t, 0, *others)[1])])
        return flat_over_points(one, count, [4])

    function = filter.model.cached_value(("Jacobians of the drift", filter.newton, count), make)
    return function(t, x, z, u, q)[0].reshape(count, n, n).transpose(0, 2, 1)


def _at_start(passes: StepPasses) -> Floats:
    """Return the Jacobian where the record begins, (1, n, n)."""
    filter = passes.filter
    x, z = np.zeros(filter.model.n), np.zeros(filter.packing.nz)
    x[: filter.model.nx] = passes.x0[0]
    if passes.z0 is not None:
        z[: passes.z0.shape[1]] = passes.z0[0]
    given = filter.prepared(passes.q).given
    return _jacobians(filter, given.bounds[:1], x[None], z[None], given.signals[:1], passes.q)


def _along(passes: StepPasses) -> Floats:
    """Return the Jacobians along the record that steps use: where a model jumps those of averages, which depend on
    P.
    """
    return _averaged_along(passes) if passes.filter.model.jumps else _at_means(passes)


def _averaged_along(passes: StepPasses) -> Floats:
    filter, n = passes.filter, passes.filter.model.n
    kept = passes.plain().kept
    assert kept is not None
    g = filter.prepared(passes.q).given
    s, u = kept[:-1].reshape(-1, kept.shape[2]), np.repeat(g.signals[:-1], 2, axis=0)
    t, h = np.repeat(g.bounds[:-1], 2), np.repeat(np.diff(g.bounds) / g.steps, 2)
    coefficients = filter.program.evaluate_points("gr_coefficients", len(s))
    found = coefficients(t, h, s, u, u, u, passes.q, filter.nominal)[0].reshape(len(s), -1)
    return np.asarray(found[:, : n * n].reshape(len(s), n, n))


def _at_means(passes: StepPasses) -> Floats:
    """Return Jacobians at every predicted and updated mean, as far as the filter comes."""
    filter, moments = passes.filter, passes.moments()
    if moments is None:
        return np.zeros((0, filter.model.n, filter.model.n))
    x_pred, _, x_filt, _, z = moments
    given = filter.prepared(passes.q).given
    found = [
        _jacobians(filter, given.bounds, np.ascontiguousarray(means), np.ascontiguousarray(z), given.signals, passes.q)
        for means in (x_pred, x_filt)
    ]
    return np.concatenate(found)
