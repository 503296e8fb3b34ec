"""Signals that move with what is differentiated by, for integrators that know derivatives by parameters only.

With an extra parameter ε_s, zero, for each direction s,

    u_i  →  u_i + Σ_s ε_s ∂u_i/∂θ_s,        p → [p; ε],        u → [u; ∂u_i/∂θ_1 … ∂u_i/∂θ_ns; ∂u_j/∂θ_1 …].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.kalman.twin import FilterStates
from grisaille.simulation.ensembles.engines import Setting, layout_of
from grisaille.simulation.ensembles.hermite import piece_polynomials
from grisaille.structure.system import Signal, System

Floats = NDArray[np.float64]


def with_moving_signals(system: System, places: Sequence[int], ns: int) -> System:
    """The system whose signals at ``places`` of u move in ``ns`` directions."""
    if not places or not ns:
        return system
    moved, size = ca.SX.sym("du", len(places) * ns), ca.SX.sym("e", ns)
    u = ca.SX(system.u)
    for k, place in enumerate(places):
        u[place] += ca.dot(size, moved[k * ns : (k + 1) * ns])
    names = ("rhs", "residual", "constraints", "observed")
    formulas = ca.substitute([getattr(system, n) for n in names], [system.u], [u])
    signals = tuple(Signal(f"d({system.signals[place].name})", s, "disturbance") for place in places for s in range(ns))
    parameters = (*system.parameter_names, *(f"e{s}" for s in range(ns)))
    reactions = system.reactions
    if reactions is not None:
        own = [reactions.conditions, reactions.memory, reactions.values]
        conditions, memory, values = ca.substitute(own, [system.u], [u])
        reactions = replace(reactions, conditions=conditions, memory=memory, values=values)
    return replace(
        system, reactions=reactions,
        u=ca.vertcat(system.u, moved), p=ca.vertcat(system.p, size), signals=(*system.signals, *signals),
        parameter_names=parameters, **dict(zip(names, formulas, strict=True)),
    )  # fmt: skip


def moved_disturbances(s: Setting, members: NDArray[np.int64]) -> Iterator[Floats]:
    """How each driven signal moves in each direction: polynomials (realizations, cells, degree + 1)."""
    layout = layout_of(s)
    states = FilterStates(s.disturbances.filters(s.values, s.grid.points, s.draw), layout, members, len(s.dp))
    rows = [states.dsignals]
    for k in range(s.grid.cells):
        states.advance(k)
        rows.append(states.dsignals)
    at = np.stack(rows, axis=1)
    lengths = np.diff(s.grid.points)
    for k in range(layout.nd):
        chain = next((c for c in layout.chains if k in c), (k,))
        for direction in range(len(s.dp)):
            values = at[:, :, direction][..., list(chain)]
            yield piece_polynomials(values[:, :-1], values[:, 1:], lengths, chain.index(k))
