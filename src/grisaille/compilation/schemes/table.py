"""All schemes, and the values of ``method=``: a scheme, or a choice among several that is made for each model.

A new explicit scheme is a tableau (``embedded_pair``) and ``add(explicit_scheme(name, tableau))``; a new implicit one
is a header of ``kernels/`` and a line here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from grisaille.compilation.schemes.dop853 import DOP853
from grisaille.compilation.schemes.dormand_prince import DORMAND_PRINCE
from grisaille.compilation.schemes.scheme import Scheme, explicit_scheme
from grisaille.errors import CompilationError

FROZEN_EXPLICIT = Scheme(
    "frozen-explicit", "gr_rk4", is_implicit=False, is_adaptive=False, has_adjoint=True,
    is_quick_to_build=True, title="frozen explicit",
)  # fmt: skip
FROZEN_IMPLICIT = Scheme(
    "frozen-implicit", "gr_implicit", is_implicit=True, is_adaptive=False, has_adjoint=True,
    title="frozen implicit",
)  # fmt: skip
EXPLICIT = replace(explicit_scheme("explicit", DORMAND_PRINCE, DOP853), frozen=FROZEN_EXPLICIT)
IMPLICIT = Scheme("implicit", "gr_implicit", is_implicit=True, is_adaptive=True, frozen=FROZEN_IMPLICIT)

Among: TypeAlias = tuple[Scheme, ...]
"""One scheme; or two, of which the first is taken unless a problem is stiff."""

AUTO: Among = (EXPLICIT, IMPLICIT)
FROZEN: Among = (FROZEN_EXPLICIT, FROZEN_IMPLICIT)

_METHODS: dict[str, Among] = {
    "auto": AUTO, "explicit": (EXPLICIT,), "implicit": (IMPLICIT,),
    "frozen": FROZEN, "frozen-explicit": (FROZEN_EXPLICIT,), "frozen-implicit": (FROZEN_IMPLICIT,),
}  # fmt: skip


def methods() -> tuple[str, ...]:
    """Return everything that ``method=`` of a simulation may be."""
    return tuple(_METHODS)


def schemes_of(method: str) -> Among:
    """Return the schemes that a method takes, or chooses among."""
    if method not in _METHODS:
        raise CompilationError(f"There is no scheme {method!r}; there are {', '.join(map(repr, _METHODS))}.")
    return _METHODS[method]


def find_scheme(name: str) -> Scheme:
    """Return the scheme of this name."""
    found = schemes_of(name)
    if len(found) > 1:
        raise CompilationError(f"{name!r} is a choice among schemes: {', '.join(s.name for s in found)}.")
    return found[0]


def all_schemes() -> tuple[Scheme, ...]:
    return tuple(found[0] for found in _METHODS.values() if len(found) == 1)


def add(new: Scheme) -> Scheme:
    """Add a scheme to those of this process: ``method=`` may name it from now on."""
    if new.name in _METHODS:
        raise CompilationError(f"There is a method {new.name!r} already: give the scheme another name.")
    _METHODS[new.name] = (new,)
    return new


def remove(name: str) -> None:
    """Remove a scheme that was added."""
    if find_scheme(name) in (*AUTO, *FROZEN):
        raise CompilationError(f"{name!r} is the package's own and stays.")
    del _METHODS[name]
