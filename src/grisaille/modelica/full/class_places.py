"""Where the classes of texts stand, what they extend and what names in them mean, as far as words tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grisaille.modelica.full.mending import end_of_argument, end_of_parentheses, without_words

_HEAD = re.compile(r"\b(model|block|class|package|record|connector|function|type)\s+(\w+)\b")
_NO_CLASS = re.compile(r"\b(?:end|redeclare(?:\s+(?:each|final|replaceable))*)\s+$")
_WITHIN = re.compile(r"\bwithin\s+([\w.]+)\s*;")
_DESCRIBED = re.compile(r"\s*\"[^\"]*\"")
_SHORT = re.compile(r"\s*=\s*(?:(?:input|output|flow)\s+)*([\w.]+)\s*(?=[(;\"]|annotation|constrainedby)")
_EXTENDS = re.compile(r"\bextends\s+([\w.]+)\s*(?=[(;]|annotation)")
_END = re.compile(r"\bend\s+(\w+)\s*;")
_LETTER = re.compile(r"[^\n]")
_IMPORT = re.compile(r"\bimport\s+(?:(\w+)\s*=\s*)?([\w.]+)(\.\*)?\s*;")


@dataclass(frozen=True)
class Base:
    """A class that another one extends, and where the modifiers stand."""

    name: str
    start: int
    end: int
    """Of the arguments between parentheses; both where the name ends if there are none."""


@dataclass(frozen=True)
class Placed:
    """One class: its body lies between ``start`` and ``end`` of the text of ``path``."""

    path: str
    kind: str
    name: str
    head: int
    start: int
    end: int
    is_short: bool


class Classes:
    """All classes of some texts by their full names."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.bare = {path: without_words(text) for path, text in texts.items()}
        self.found: dict[str, Placed] = {}
        self._imported: dict[str, list[tuple[str, str, bool]]] = {}
        for path, bare in self.bare.items():
            for placed in _classes(path, bare):
                self.found.setdefault(placed.name, placed)

    def bases(self, placed: Placed) -> list[Base]:
        """Return what a class extends; of ``model A = B(…)`` it is B."""
        bare = self.bare[placed.path]
        if placed.is_short:
            short = _SHORT.match(bare, placed.start)
            return [self._base(bare, short)] if short is not None else []
        return [self._base(bare, m) for m in _EXTENDS.finditer(self.own(placed), placed.start, placed.end)]

    def own(self, placed: Placed) -> str:
        """Return the text of the class's file, blank where classes inside it stand."""
        bare = self.bare[placed.path]
        inner = [p for p in self.found.values() if p.path == placed.path and placed.start <= p.head < placed.end]
        for p in inner:
            bare = bare[: p.head] + _LETTER.sub(" ", bare[p.head : p.end]) + bare[p.end :]
        return bare

    @staticmethod
    def _base(bare: str, found: re.Match[str]) -> Base:
        at = found.end()
        has = bare[at : at + 1] == "("
        return Base(found[1], at + 1 if has else at, end_of_parentheses(bare, at + 1) if has else at)

    def meant(self, name: str, placed: Placed) -> Placed | None:
        """Return the class that a name in another class means, looked for outwards, in imports too."""
        scope = placed.name
        first, _, rest = name.lstrip(".").partition(".")
        while scope:
            if (full := f"{scope}.{name}") in self.found:
                return self.found[full]
            around = self.found.get(scope)
            for imported in self.imports(around) if around is not None else ():
                alias, target, is_all = imported
                known = f"{target}.{name}" if is_all else f"{target}.{rest}" if rest else target
                if (is_all or first == (alias or target.rpartition(".")[2])) and known in self.found:
                    return self.found[known]
            scope = scope.rpartition(".")[0]
        return self.found.get(name.lstrip("."))

    def imports(self, placed: Placed) -> list[tuple[str, str, bool]]:
        """(alias, target, whether it is all of a package) of what a class imports."""
        if placed.name not in self._imported:
            found = _IMPORT.finditer(self.bare[placed.path], placed.start, placed.end)
            self._imported[placed.name] = [(m[1] or "", m[2], bool(m[3])) for m in found]
        return self._imported[placed.name]

    def around(self, path: str, at: int) -> Placed | None:
        """Return the innermost class with a body in which a place lies."""
        holding = [p for p in self.found.values() if p.path == path and not p.is_short and p.start <= at < p.end]
        return max(holding, key=lambda p: p.start, default=None)


def arguments(bare: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each of the arguments begins and ends that stand between two places."""
    while start < end:
        after = min(end_of_argument(bare, start), end)
        yield start, after
        start = after + 1


def _classes(path: str, bare: str) -> Iterator[Placed]:
    within = _WITHIN.search(bare)
    outside = within[1].split(".") if within is not None else []
    waiting: list[tuple[str, int]] = []
    ends: dict[str, list[int]] = {}
    for closed in _END.finditer(bare):
        ends.setdefault(closed[1], []).append(closed.start())
    for made in _HEAD.finditer(bare):
        if _NO_CLASS.search(bare[max(made.start() - 60, 0) : made.start()]):
            continue
        waiting = [(name, end) for name, end in waiting if end > made.start()]
        full = ".".join([*outside, *(name for name, _ in waiting), made[2]])
        described = _DESCRIBED.match(bare, made.end())
        start = described.end() if described is not None else made.end()
        if bare[start:].lstrip().startswith("="):
            end = end_of_argument(bare, start, ";")
            yield Placed(path, made[1], full, made.start(), start, end, is_short=True)
            continue
        end = next((at for at in ends.get(made[2], ()) if at >= start), -1)
        if end >= 0:
            yield Placed(path, made[1], full, made.start(), start, end, is_short=False)
            waiting.append((made[2], end))
