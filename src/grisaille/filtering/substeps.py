"""How finely a nonlinear filter steps between samples: chosen at the guess, then kept.

Steps per cell are doubled until log L stays. Runge–Kutta steps of the moments converge with the fourth power of their
length, linearised ones with the second; the change by the last doubling, divided by 15 or 3, is what the finer
steps still miss.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.disturbance.discretization import MARGIN, doublings
from grisaille.disturbance.duals import Floats
from grisaille.errors import EstimationError
from grisaille.filtering.extended import ExtendedFilter
from grisaille.filtering.implicit import Closed
from grisaille.filtering.kalman import States, finish

MOST = 128
RUNAWAY = 1e9
"""‖A‖h of a model that is no longer there."""
TOLERANCE = {"moments": (1e-6, 1e-7), "square-root": (1e-6, 1e-7), "linearize": (1e-3, 1e-5)}
"""Change of log L by a doubling that ends the search: absolute, and relative to |log L|."""


def choose_substeps(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None = None) -> int:
    """Steps per cell from which on halving them does not move log L."""
    nothing = np.zeros((0, len(q)))
    absolute, relative = TOLERANCE[filter.kind.propagation]
    filter.substeps = 1
    freeze_doublings(filter, q, x0, z0)
    value = finish(filter.run(q, nothing, x0, z0=z0)).value
    while True:
        filter.substeps *= 2
        finer = finish(filter.run(q, nothing, x0, z0=z0)).value
        if np.isfinite(finer) and abs(finer - value) < absolute + relative * abs(finer):
            freeze_doublings(filter, q, x0, z0)
            return filter.substeps
        if filter.substeps >= MOST:
            raise EstimationError(_too_stiff(filter, value, finer))
        value = finer


def freeze_doublings(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None = None) -> None:
    """Doublings of the matrix exponential that are enough all along the record, with a margin."""
    if filter.kind.propagation != "linearize":
        return
    longest = float(filter.cells(q).lengths.max()) / filter.substeps
    function = _jacobian(filter)
    first = np.array(function(*_start(filter, q, x0, z0)))
    filter.doublings = MARGIN + _needed([first], longest)
    for _ in range(3):
        largest = _needed(_along(filter, function, q, x0, z0), longest)
        if largest < filter.doublings:
            return
        filter.doublings = largest + MARGIN


def _needed(jacobians: list[Floats], h: float) -> int:
    """The most doublings that any of them needs; those of a model that has run away do not count."""
    sane = [A for A in jacobians if np.isfinite(A).all() and np.abs(A).max(initial=0.0) * h < RUNAWAY]
    return max((doublings(A, h) for A in sane), default=0)


def _too_stiff(filter: ExtendedFilter, value: float, finer: float) -> str:
    stiff = (
        "the model is too stiff for explicit steps, or runs away. Try gr.KalmanML(propagation='linearize'), another "
        if filter.kind.propagation != "linearize"
        else "the model changes fast between samples, or runs away. Try another "
    )
    return (
        f"The {filter.kind.update} filter needs more than {MOST} steps between samples at the guess (log L = "
        f"{finer:.6g} with {MOST}, {value:.6g} with {MOST // 2}): {stiff}guess, or set gr.KalmanML(substeps=…)."
    )


def _jacobian(filter: ExtendedFilter) -> ca.Function:
    closed = Closed(filter.model)
    return ca.Function("A", closed.symbols, [ca.densify(closed.rates(*closed.symbols)[1])])


def _start(filter: ExtendedFilter, q: Floats, x0: Floats, z0: Floats | None) -> list[Floats]:
    x = np.zeros(filter.model.n)
    x[: filter.model.nx] = x0[0]
    z = z0[0] if z0 is not None else np.zeros(filter.packing.nz)
    given = filter.prepared(q).given
    return [given.bounds[0], x, z, given.signals[0], q]


def _along(filter: ExtendedFilter, function: ca.Function, q: Floats, x0: Floats, z0: Floats | None) -> list[Floats]:
    """Jacobians at every predicted and updated mean, as far as the filter comes."""
    kept: list[States] = []
    zs: list[Floats] = []
    filter.run(q, np.zeros((0, len(q))), x0, z0=z0, states=kept, algebraic=zs)
    if not kept:
        return []
    given = filter.prepared(q).given
    z = zs[0] if zs else np.zeros((len(given.bounds), filter.packing.nz))
    return [
        np.array(function(t, x, algebra, u, q))
        for means in (kept[0].x_pred, kept[0].x_filt)
        for t, x, algebra, u in zip(given.bounds, means, z, given.signals, strict=True)
    ]
