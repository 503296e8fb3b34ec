"""Signals that move with what is differentiated by, for integrators that know derivatives by parameters only.

With an extra parameter ε_s, zero, for each direction s,

    u_i  →  u_i + Σ_s ε_s ∂u_i/∂θ_s,        p → [p; ε],        u → [u; ∂u_i/∂θ_1 … ∂u_i/∂θ_ns; ∂u_j/∂θ_1 …].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from grisaille.structure.system import FORMULA_FIELDS, Signal, System


def with_moving_signals(system: System, places: Sequence[int], ns: int, kind: str) -> System:
    """Return the system whose signals at ``places`` of u move in ``ns`` directions; ``kind`` of the further signals."""
    if not places or not ns:
        return system
    moved, size = ca.SX.sym("du", len(places) * ns), ca.SX.sym("e", ns)
    u = ca.SX(system.u)
    for k, place in enumerate(places):
        u[place] += ca.dot(size, moved[k * ns : (k + 1) * ns])
    formulas = ca.substitute([getattr(system, n) for n in FORMULA_FIELDS], [system.u], [u])
    signals = tuple(Signal(f"d({system.signals[place].name})", s, kind) for place in places for s in range(ns))
    parameters = (*system.parameter_names, *(f"e{s}" for s in range(ns)))
    reactions = system.reactions
    if reactions is not None:
        own = [reactions.conditions, reactions.memory, reactions.values]
        conditions, memory, values = ca.substitute(own, [system.u], [u])
        reactions = replace(reactions, conditions=conditions, memory=memory, values=values)
    return replace(
        system, reactions=reactions,
        u=ca.vertcat(system.u, moved), p=ca.vertcat(system.p, size), signals=(*system.signals, *signals),
        parameter_names=parameters, **dict(zip(FORMULA_FIELDS, formulas, strict=True)),
    )  # fmt: skip
