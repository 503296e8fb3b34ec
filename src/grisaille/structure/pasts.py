"""Systems with delayed unknowns, prepared for derivatives: how the past moves is a signal, too.

With an extra parameter ε_s, zero, for each direction s

    v = x(t − tau)   →   v + Σ_s ε_s ∂x(t − tau)/∂θ_s        (at fixed tau; ``moving_breaks`` has the rest)

so that integrators, which know derivatives by parameters only, give the whole derivative. Layout::

    p = [p; ε]       u = [u; ∂v₁/∂θ₁ … ∂v₁/∂θ_ns; ∂v₂/∂θ₁ …]
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from grisaille.structure.jumps import Jumps
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.functions import StartFunctions
from grisaille.structure.system import Signal, System


def past_places(system: System) -> tuple[int, ...]:
    """Places in u of delayed unknowns and their derivatives."""
    names = {d.name for d in system.delays if d.kind == "unknown"}
    return tuple(k for k, s in enumerate(system.signals) if s.kind == "delayed" and s.name in names)


def with_moving_past(structure: Structure, ns: int) -> Structure:
    """The structure whose delayed unknowns move in ``ns`` directions."""
    system, places = structure.system, past_places(structure.system)
    if not places or not ns:
        return structure
    moved, size = ca.SX.sym("dv", len(places) * ns), ca.SX.sym("e", ns)
    u = ca.SX(system.u)
    for i, place in enumerate(places):
        u[place] += ca.dot(size, moved[i * ns : (i + 1) * ns])
    names = ("rhs", "residual", "constraints", "observed")
    formulas = ca.substitute([getattr(system, n) for n in names], [system.u], [u])
    signals = tuple(Signal(f"d({system.signals[k].name})", s, "past") for k in places for s in range(ns))
    made = replace(
        system, u=ca.vertcat(system.u, moved), p=ca.vertcat(system.p, size), signals=(*system.signals, *signals),
        parameter_names=(*system.parameter_names, *(f"e{s}" for s in range(ns))),
        **dict(zip(names, formulas, strict=True)),
    )  # fmt: skip
    equations = structure.equations
    return replace(
        structure,
        system=made,
        start_functions=StartFunctions(made),
        jumps=Jumps(made, equations.jets, equations.parameters),
    )
