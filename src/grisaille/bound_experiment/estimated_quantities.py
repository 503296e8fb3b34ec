"""The quantities that θ stands for: parameters, levels and starts whose values come with every call, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["parameter", "scale", "noise", "start"]
UNKNOWN_KINDS: tuple[Kind, ...] = ("parameter", "scale", "noise", "start")


@dataclass(frozen=True)
class EstimatedQuantities:
    """(kind, target) of every entry of θ; derivatives have the same order."""

    entries: tuple[tuple[Kind, str], ...] = ()

    @classmethod
    def named(cls, names: Iterable[str]) -> EstimatedQuantities:
        """Return the quantities named by ``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        return cls(tuple(_entry(n) for n in names))

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        return tuple(target if kind == "parameter" else f"{kind}({target})" for kind, target in self.entries)

    @cached_property
    def _by_kind(self) -> dict[Kind, tuple[tuple[str, ...], list[int]]]:
        """Targets and their places in θ."""
        found: dict[Kind, tuple[tuple[str, ...], list[int]]] = {}
        for kind in UNKNOWN_KINDS:
            places = [k for k, (own, _) in enumerate(self.entries) if own == kind]
            found[kind] = tuple(self.entries[k][1] for k in places), places
        return found

    def targets(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of the estimated quantities of one kind."""
        return self._by_kind[kind][0]

    def places(self, kind: Kind) -> list[int]:
        """Return the indices in θ of the quantities of one kind."""
        return self._by_kind[kind][1]


def _entry(name: str) -> tuple[Kind, str]:
    for kind in UNKNOWN_KINDS[1:]:
        if name.startswith(f"{kind}(") and name.endswith(")"):
            return kind, name[len(kind) + 1 : -1]
    return "parameter", name
