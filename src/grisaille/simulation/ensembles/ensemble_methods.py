"""What ``method=`` of an ensemble may be, as data: which integrators may make realizations, and what else it asks."""

from __future__ import annotations

from dataclasses import dataclass

from grisaille.compilation.schemes import FROZEN, FROZEN_EXPLICIT, FROZEN_IMPLICIT, Among
from grisaille.compilation.stochastic_step import WHITE_SCHEME_NAMES


@dataclass(frozen=True)
class EnsembleMethod:
    """A way to make realizations, all with fixed steps."""

    name: str
    """As options and files name it."""
    among: Among = FROZEN
    """The integrators to choose among where realizations are made one by one."""
    is_open: bool = False
    """Whether a device may take the way that suits it."""
    may_turn_implicit: bool = False
    """Whether the pilot may decide for implicit steps."""
    solves_inside: bool = False
    """Whether implicit unknowns are solved inside explicit steps."""
    takes_past: bool = True
    """Whether delayed states can be followed."""
    white: str | None = None
    """A scheme for white noise in the equations, which needs some."""

    @property
    def is_implicit(self) -> bool:
        return all(scheme.is_implicit for scheme in self.among)


FUSED = EnsembleMethod("fused", solves_inside=True)
AUTO = EnsembleMethod("auto", is_open=True, may_turn_implicit=True)
_GENERAL = (
    AUTO,
    EnsembleMethod("frozen", is_open=True),
    EnsembleMethod(FROZEN_EXPLICIT.name, (FROZEN_EXPLICIT,)),
    EnsembleMethod(FROZEN_IMPLICIT.name, (FROZEN_IMPLICIT,), takes_past=False),
    FUSED,
)
GENERAL = tuple(method.name for method in _GENERAL)
WHITE = WHITE_SCHEME_NAMES[1:]
METHODS = {
    method.name: method for method in (*_GENERAL, *(EnsembleMethod(n, takes_past=False, white=n) for n in WHITE))
}
