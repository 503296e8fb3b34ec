"""Systems with delayed unknowns, prepared for derivatives: how the past moves is a signal, too.

v = x(t − tau) moves by ∂x(t − tau)/∂θ at fixed tau (``moving_signals`` has the layout, ``moving_breaks`` the rest), so
that integrators, which know derivatives by parameters only, give the whole derivative.
"""

from __future__ import annotations

from grisaille.structure.delays.moving_signals import with_moving_signals
from grisaille.structure.reduction import Structure, with_system


def with_moving_past(structure: Structure, ns: int) -> Structure:
    """Return the structure whose delayed unknowns move in ``ns`` directions."""
    system = structure.system
    return with_system(structure, with_moving_signals(system, system.has.pasts, ns, "past"))
