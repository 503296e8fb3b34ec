"""The classes of a text of full Modelica, without understanding them: kinds, names, and which classes each one uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import Tokens

MODELS = ("model", "block", "class")
_KINDS = (*MODELS, "connector", "record", "package", "type", "function")


@dataclass
class Outlined:
    """One class."""

    kind: str
    name: str
    """In full, ``Plant.Parts.Wheel``."""
    is_partial: bool
    uses: set[str] = field(default_factory=set)
    """Last names of the classes of its components and bases."""


def outline(text: str) -> list[Outlined]:
    """Return every class of a text, outer ones first; none of what is no Modelica."""
    try:
        tokens = Tokens(text)
    except Refused:
        return []
    return _Scan(tokens).found


def main_model(text: str, stem: str) -> tuple[str, list[str]]:
    """(the model that is meant where none is named, all that may be meant).

    It is the only model that no other class of the text uses, else the one that has the name of the file; empty where
    neither says which.
    """
    classes = outline(text)
    inside = tuple(f"{made.name}." for made in classes if made.kind not in ("package", *MODELS))
    whole = [m for m in classes if m.kind in MODELS and not m.is_partial and not m.name.startswith(inside)]
    models = [m.name for m in whole if not any(_last(m.name) in other.uses for other in classes if other is not m)]
    named = [name for name in models if _last(name) == stem]
    chosen = models[0] if len(models) == 1 else named[0] if len(named) == 1 else ""
    return chosen, models or [made.name for made in whole]


class _Scan:
    def __init__(self, tokens: Tokens) -> None:
        self.kinds, self.values = tokens.kinds, tokens.values
        self.found: list[Outlined] = []
        self._open: list[Outlined] = []
        at = 0
        while at < len(self.kinds) - 1:
            at = self._step(at)

    def _step(self, at: int) -> int:
        kind = self.kinds[at]
        if kind == "end":
            if self._open and self.kinds[at + 1] == "name" and self.values[at + 1] == _last(self._open[-1].name):
                self._open.pop()
            return at + 2
        if kind in _KINDS and self.kinds[at + 1] == "name" and self.kinds[at + 2] != "(":
            return self._class(at)
        if kind in ("extends", "constrainedby"):
            return self._use(at + 1)
        return self._declaration(at) if kind == "name" else at + 1

    def _class(self, at: int) -> int:
        before = [k for k in self.kinds[max(at - 4, 0) : at] if k != ";"]
        name = self.values[at + 1]
        full = f"{self._open[-1].name}.{name}" if self._open else name
        made = Outlined(self.kinds[at], full, "partial" in before[-3:])
        self.found.append(made)
        if self.kinds[at + 2] != "=":
            self._open.append(made)
            return at + 2
        last = at + 3
        while self.kinds[last] in ("input", "output", "flow", "discrete", "."):
            last += 1
        after, names = self._dotted(last)
        made.uses.update(names[-1:])
        return after

    def _use(self, at: int) -> int:
        after, names = self._dotted(at + (self.kinds[at] == "."))
        for made in self._open:
            made.uses.update(names[-1:])
        return after

    def _declaration(self, at: int) -> int:
        """Return a type's name before the name of a component."""
        after, names = self._dotted(at)
        here = after
        while here < len(self.kinds) and self.kinds[here] == "[":
            here = self._closed(here)
        if here < len(self.kinds) and self.kinds[here] == "name":
            for made in self._open:
                made.uses.update(names[-1:])
        return max(after, at + 1)

    def _closed(self, at: int) -> int:
        depth = 0
        while at < len(self.kinds):
            depth += (self.kinds[at] == "[") - (self.kinds[at] == "]")
            at += 1
            if depth == 0:
                break
        return at

    def _dotted(self, at: int) -> tuple[int, Sequence[str]]:
        names = []
        while self.kinds[at] == "name":
            names.append(self.values[at])
            at += 1
            if self.kinds[at] != ".":
                break
            at += 1
        return at, names


def _last(name: str) -> str:
    return name.rpartition(".")[2]
