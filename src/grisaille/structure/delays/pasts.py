"""Systems with delayed unknowns, prepared for derivatives: how the past moves is a signal, too.

v = x(t − tau) moves by ∂x(t − tau)/∂θ at fixed tau (``moving_signals`` has the layout, ``moving_breaks`` the rest), so
that integrators, which know derivatives by parameters only, give the whole derivative.
"""

from __future__ import annotations

from grisaille.structure.delays.moving_signals import with_moving_signals
from grisaille.structure.reduction import Structure, with_system
from grisaille.structure.system import System


def past_places(system: System) -> tuple[int, ...]:
    """Places in u of delayed unknowns and their derivatives."""
    names = {d.name for d in system.delays if d.kind == "unknown"}
    return tuple(k for k, s in enumerate(system.signals) if s.kind == "delayed" and s.name in names)


def with_moving_past(structure: Structure, ns: int) -> Structure:
    """The structure whose delayed unknowns move in ``ns`` directions."""
    system, places = structure.system, past_places(structure.system)
    if not places or not ns:
        return structure
    return with_system(structure, with_moving_signals(system, places, ns, "past"))
