"""Laws made of another one, ``of``: what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import is_law
from grisaille.laws.law_derivatives import replace_fields

if TYPE_CHECKING:
    from grisaille.laws.censored import Censored
    from grisaille.laws.truncated import Truncated
    from grisaille.laws.values import Values


class _Wrapper(Law):
    """A law made of another one."""

    of: Law

    @property
    def measure(self) -> Literal["value", "log"]:  # type: ignore[override]
        return self.of.measure

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.of.is_discrete

    @property
    def has_atoms(self) -> bool:  # type: ignore[override]
        return self.of.has_atoms

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        return self.of.is_smooth

    def smoothed(self, width: float) -> Any:
        return self if self.is_smooth else replace_fields(self, of=self.of.smoothed(width))

    @property
    def is_open(self) -> bool:
        return self.of.is_open

    @property
    def location_path(self) -> str:
        inside = self.of.location_path
        return f"of.{inside}" if inside else ""

    @property
    def held_arguments(self) -> tuple[str, ...]:
        own: Any = self
        held = tuple(f.name for f in fields(own) if f.name != "of")
        return (*held, *(f"of.{path}" for path in self.of.held_arguments))

    def refuse_open(self) -> None:
        self.of.refuse_open()

    def refused_arguments(self) -> tuple[int, str] | None:
        return self.of.refused_arguments()

    def at(self, location: Values | None) -> Self:
        if location is None:
            return self
        if np.ndim(location):
            return self.filled({self.location_path: location})
        return type(self)(**{**self.parameters, "of": self.of.at(location)})


def inner_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return paths as the inner law has them."""
    return tuple(name.removeprefix("of.") for name in names)


def check_of(law: _Wrapper, *refused: tuple[str, str]) -> None:
    """Refuse what is no law in ``of``, and laws (name, what to do instead) that mean nothing there."""
    name = type(law).__name__
    if not is_law(law.of):
        raise ModelError(f"{name}: of must be a law such as gr.Normal(std=0.1), got {law.of!r}.")
    for kind, remedy in refused:
        if type(law.of).__name__ == kind:
            raise ModelError(f"{name}: of is {law.of!r}; {remedy}")


def check_limits(law: Law) -> None:
    """Check the limits of a law, which may be left out."""
    for side in ("below", "above"):
        checks.location(law, side)


def refused_limits(law: Truncated | Censored) -> tuple[int, str] | None:
    """Return the first sample of a filled law whose limits leave nothing between them, with the reason."""
    below, above = np.broadcast_arrays(*(np.ravel(limit(v, e)) for v, e in ((law.below, -np.inf), (law.above, np.inf))))
    is_crossed = ~(below < above)
    if not is_crossed.any():
        return None
    at = int(np.argmax(is_crossed))
    return at, f"below = {below[at]:g} is not smaller than above = {above[at]:g}"


def limit(value: Values | None, none: float) -> Values:
    """Return a limit, or one that nothing is beyond where there is none: None, or NaN in an array."""
    if value is None:
        return none
    return np.where(np.isnan(value), none, value) if np.ndim(value) else value
