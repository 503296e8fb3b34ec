"""On which level of a model a start value was written: its confidence number (Modelica 3.6, section 8.6.2).

The flattener's tree says in which file and where the expression of a start stands. Read backwards from there, the names
before the parentheses that are open are those of the components that it modifies:

    Plant plant(wall(T(start = 350)))      →  plant, wall, T:  written on level 1, the most confident
    extends Base(T(start = 300))           →  T:  written on the level of T itself
    type Temperature = Real(start = 288)   →  nothing:  the start of a type, which counts last

A variable of n names whose start is written with k of them has the confidence number n − k + 1.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import Tokens

_OPEN, _CLOSED = ("(", "[", "{"), (")", "]", "}")
_CLASSES = ("type", "model", "block", "connector", "record", "class", "package")
_PREFIXES = ("input", "output", "flow", "stream", "discrete", "parameter", "constant")


@dataclass(frozen=True)
class Written:
    """Names of components that a modifier was written with, from the outermost, and how they begin."""

    names: tuple[str, ...]
    is_inside_redeclaration: bool = False
    """Whether it modifies a class that is put in place of another: which components it reaches is not written."""

    def level(self, path: list[str]) -> int:
        """Return the confidence number for the variable of this path; one more than its depth for the start of a
        type.
        """
        if self.is_inside_redeclaration and self.names and self.names[0] in path:
            return path.index(self.names[0]) + 1
        return max(len(path) - len(self.names), 0) + 1


class WrittenPlaces:
    """The files that a flat model comes from, by the flattener's numbers."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self._texts = {number: text.encode() for number, text in files.items()}
        self._tokens: dict[int, Tokens | None] = {}

    def start_level(self, name: str, start: Any) -> int | None:
        """Return the confidence number of a start; None where its place is not known."""
        written = self._written(start, "start")
        return None if written is None else written.level(path_of(name))

    def binding_level(self, name: str, binding: Any) -> int | None:
        """Return the confidence number of the value of a parameter."""
        path = path_of(name)
        written = self._written(binding, path[-1])
        return None if written is None else Written((*written.names, path[-1])).level(path)

    def _written(self, node: Any, key: str) -> Written | None:
        span = span_of(node)
        tokens = None if span is None else self._tokens_of(span["source"])
        if span is None or tokens is None:
            return None
        at = len(self._texts[span["source"]][: span["start"]].decode(errors="replace"))
        return written_before(tokens, bisect_left(tokens.at, at), key)

    def _tokens_of(self, number: int) -> Tokens | None:
        if number not in self._tokens:
            text = self._texts.get(number)
            try:
                self._tokens[number] = None if text is None else Tokens(text.decode(errors="replace"))
            except Refused:
                self._tokens[number] = None
        return self._tokens[number]


def written_before(tokens: Tokens, here: int, key: str) -> Written | None:
    """Return what the modifier ``key = …`` modifies whose value begins at the token ``here``."""
    k = here
    while True:
        k, opening = _outwards(tokens, k, stop_at=key)
        if k < 0:
            return None
        if not opening:
            break  # at the key itself; parentheses before it belong to the value
    names: list[str] = []
    is_redeclared = False
    while True:
        k, opening = _outwards(tokens, k)
        if k < 0 or not opening:
            return Written(tuple(names), is_redeclared)
        if tokens.kinds[k] != "(":
            return None
        k, found = _name_before(tokens, k)
        if not found:
            return None
        before = _without_prefixes(tokens, k - 1)
        if tokens.kinds[before] == "extends":
            continue
        if tokens.kinds[before] == "=" and before > 1 and tokens.kinds[before - 2] in _CLASSES:
            is_redeclared = is_redeclared or _is_modified(tokens, before)
            continue
        names[:0] = found


def _outwards(tokens: Tokens, k: int, stop_at: str = "") -> tuple[int, bool]:
    """(where the parenthesis around token k opens, True), or (where ``stop_at =`` or the statement begins, False)."""
    depth = 0
    while k > 0:
        k -= 1
        kind = tokens.kinds[k]
        if kind in _CLOSED:
            depth += 1
        elif kind in _OPEN:
            if depth == 0:
                return k, True
            depth -= 1
        elif depth:
            continue
        elif kind == ";":
            return (-1, False) if stop_at else (k, False)
        elif stop_at and kind == "=":
            before, found = _name_before(tokens, k)
            if found[-1:] == [stop_at]:
                return before, False
    return -1, False


def _name_before(tokens: Tokens, k: int) -> tuple[int, list[str]]:
    """Return the dotted name before token k, behind which subscripts and modifiers may stand, and where it begins."""
    k -= 1
    while k > 0 and tokens.kinds[k] in ("]", ")"):
        k, _ = _outwards(tokens, k)
        k -= 1
    found: list[str] = []
    while k >= 0 and tokens.kinds[k] == "name":
        found.insert(0, tokens.values[k])
        if tokens.kinds[k - 1] != "." or k < 2:
            return k, found
        k -= 2
    return k, found


def _without_prefixes(tokens: Tokens, k: int) -> int:
    while k > 0 and tokens.kinds[k] in (*_PREFIXES, "."):
        k -= 1
    return max(k, 0)


def _is_modified(tokens: Tokens, k: int) -> bool:
    """Return whether a short class is written inside a modifier."""
    return _outwards(tokens, k)[1]


def path_of(name: str) -> list[str]:
    """Return names of the components that lead to a variable, without subscripts."""
    found, depth, part = [], 0, ""
    for letter in name:
        depth += (letter == "[") - (letter == "]")
        if letter == "." and not depth:
            found.append(part)
            part = ""
        elif not depth and letter != "]":
            part += letter
    return [*found, part]


def span_of(node: Any) -> Mapping[str, int] | None:
    """Return where an expression of the flattener's tree begins."""
    return next(_spans(node), None)


def _spans(root: Any) -> Iterator[Mapping[str, int]]:
    stack = [root]
    while stack:
        top = stack.pop()
        if isinstance(top, Mapping):
            span = top.get("span")
            if isinstance(span, Mapping) and "source" in span:
                yield span
            stack.extend(reversed(list(top.values())))
        elif isinstance(top, list):
            stack.extend(reversed(top))


def references_in(root: Any) -> Iterator[str]:
    """Yield names of variables in an expression of the flattener's tree."""
    stack = [root]
    while stack:
        top = stack.pop()
        if isinstance(top, Mapping):
            if "VarRef" in top:
                yield str(top["VarRef"]["name"]["name"])
            else:
                stack.extend(top.values())
        elif isinstance(top, list):
            stack.extend(top)
