"""Redeclarations that ``rumoca`` 0.10 drops without a word, written so that it takes them.

It drops a redeclaration of a component in an extends-clause where the class that is extended redeclares the component
in an extends-clause itself (the class of the base counts), and the modifiers of ``redeclare model M = B(k = 2)``. So
the component gets a replaceable class of its own, which the outer clause redeclares::

    model Base extends S(redeclare replaceable A c); end Base;
    model V extends Base(redeclare B c(k = 2)); end V;

    model Base replaceable model c__class = A constrainedby I; extends S(redeclare replaceable c__class c); end Base;
    model V extends Base(redeclare model c__class = B, c(k = 2)); end V;

and the class with modifiers a name: ``model M__1 = B(k = 2)`` beside, and ``redeclare model M = M__1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grisaille.errors import ModelError
from grisaille.modelica.full.class_places import Base, Classes, Placed, arguments
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_parentheses
from grisaille.modelica.full.nested_redeclarations import with_outer_redeclarations

Texts = dict[str, str]
_NAMED = "model|block|package|record"
"""Classes whose modifiers are dropped; those of functions are kept."""
_KINDS = "model|block|class|package|record|connector|function|type"
_COMPONENT = re.compile(
    rf"\s*(?:(?:each|final)\s+)*redeclare\s+((?:(?:each|final)\s+)*)(replaceable\s+)?(?!(?:replaceable|{_KINDS})\b)([\w.]+)\s+(\w+)\s*"
)
_CLASS = re.compile(
    rf"\bredeclare\s+(?:(?:each|final)\s+)*(?:replaceable\s+)?({_NAMED})\s+(\w+)\s*=\s*([\w.]+)\s*(?=\()"
)
_DECLARED = r"\breplaceable\s+([\w.]+)\s+{name}\b([^;]*);"
_CONSTRAINED = re.compile(r"\bconstrainedby\s+([\w.]+)")


def keep_redeclarations(texts: Texts, name: str) -> Texts:
    """Return the texts with these redeclarations written in the other way; refused where that fails on the way to
    ``name``.
    """
    if not any("redeclare" in text for text in texts.values()):
        return texts
    texts = _with_named_classes(texts)
    texts = with_outer_redeclarations(texts, name, lambda found: _RedeclarationWalk(found).named_by(name))
    return _with_classes_of_components(texts, name)


def _with_named_classes(texts: Texts) -> Texts:
    """Return classes with modifiers that are given in modifiers, under names of their own."""
    concerned = {path: text for path, text in texts.items() if "redeclare" in text and _CLASS.search(text)}
    classes, changed = Classes(concerned), dict(texts)
    for path, text in concerned.items():
        bare, edits = classes.bare[path], list[Edit]()
        for number, made in enumerate(_CLASS.finditer(bare), 1):
            around = classes.around(path, made.start())
            end = end_of_parentheses(bare, made.end() + 1) + 1
            if (
                around is None
                or not _is_argument(bare, made.start(), around.start)
                or not bare[made.end() + 1 : end - 1].strip()
            ):
                continue
            name = f"{made[2]}__{number}"
            words = " ".join(text[made.end() : end].split())
            edits += [(around.start, around.start, f" {made[1]} {name} = {made[3]}{words};")]
            edits += [(made.start(3), end, name)]
        changed[path] = apply_edits(text, edits) if edits else text
    return changed


def _is_argument(bare: str, at: int, start: int) -> bool:
    """Return whether a place stands inside parentheses of a statement."""
    depth = 0
    for letter in reversed(bare[start:at]):
        depth += (letter == "(") - (letter == ")")
        if depth > 0:
            return True
        if letter == ";" and depth == 0:
            return False
    return False


@dataclass(frozen=True)
class _Redeclared:
    """A component that an extends-clause redeclares."""

    placed: Placed
    base: Base
    start: int
    end: int
    """Of the argument."""
    type: str
    component: str
    rest: str
    """Its modifiers, with their parentheses, or nothing."""
    is_replaceable: bool


class _RedeclarationWalk:
    def __init__(self, texts: Texts) -> None:
        self.texts, self.classes = texts, Classes(texts)
        self.made: dict[str, list[_Redeclared]] = {}
        for name, placed in self.classes.found.items():
            if "redeclare" in self.classes.bare[placed.path][placed.start : placed.end]:
                self.made[name] = list(self._redeclared(placed))

    def _redeclared(self, placed: Placed) -> Iterator[_Redeclared]:
        bare, text = self.classes.bare[placed.path], self.texts[placed.path]
        for base in self.classes.bases(placed):
            for start, end in arguments(bare, base.start, base.end):
                found = _COMPONENT.match(bare, start, end)
                if found is None:
                    continue
                has = bare[found.end() : found.end() + 1] == "("
                close = end_of_parentheses(bare, found.end() + 1) + 1 if has else found.end()
                rest = text[found.end() : close] if has else ""
                yield _Redeclared(placed, base, start, end, found[3], found[4], rest, bool(found[2]))

    def named_by(self, asked: str) -> set[str]:
        """Return classes that may have a part in a model: those whose names stand in it, in them, and so on."""
        last: dict[str, list[Placed]] = {}
        for placed in self.classes.found.values():
            last.setdefault(placed.name.rpartition(".")[2], []).append(placed)
        waiting, found = [p for p in self.classes.found.values() if p.name == asked], set[str]()
        while waiting:
            placed = waiting.pop()
            if placed.name not in found:
                found.add(placed.name)
                words = set(re.findall(r"\w+", self.classes.bare[placed.path][placed.start : placed.end]))
                waiting += [other for word in words for other in last.get(word, [])]
        return found

    def inner(self, made: _Redeclared) -> _Redeclared | None:
        """Return the redeclaration that this one is laid over."""
        extended = self.classes.meant(made.base.name, made.placed)
        return None if extended is None or extended == made.placed else self._in(extended, made.component, 0)

    def _in(self, placed: Placed, component: str, depth: int) -> _Redeclared | None:
        own = next((m for m in self.made.get(placed.name, []) if m.component == component), None)
        if own is not None or depth > 20:
            return own
        for base in self.classes.bases(placed):
            above = self.classes.meant(base.name, placed)
            found = self._in(above, component, depth + 1) if above is not None and above != placed else None
            if found is not None:
                return found
        return None

    def constraint(self, made: _Redeclared) -> str | None:
        """Return the full name of what the component that is redeclared first has to be."""
        waiting, seen = [self.classes.meant(made.base.name, made.placed)], 0
        declared = re.compile(_DECLARED.format(name=made.component))
        while waiting and seen < 50:
            placed, seen = waiting.pop(), seen + 1
            if placed is None:
                continue
            found = None if placed.is_short else declared.search(self.classes.own(placed), placed.start, placed.end)
            if found is not None:
                said = _CONSTRAINED.search(found[2])
                meant = self.classes.meant(said[1] if said is not None else found[1], placed)
                return meant.name if meant is not None else None
            waiting += [self.classes.meant(base.name, placed) for base in self.classes.bases(placed)]
        return None


def _with_classes_of_components(texts: Texts, asked: str) -> Texts:
    walk = _RedeclarationWalk(texts)
    every = [made for several in walk.made.values() for made in several]
    over = [(made, inner) for made in every if (inner := walk.inner(made)) is not None]
    if not over:
        return texts
    outer = [made for made, _ in over]
    roots = {id(inner): inner for _, inner in over if not any(inner is made for made in outer)}
    edits: dict[str, list[Edit]] = {}
    for root in roots.values():
        constraint = walk.constraint(root)
        if constraint is None or root.placed.is_short:
            lost = [made for made, inner in over if inner is root]
            named = walk.named_by(asked)
            if any(made.placed.name in named for made in lost):
                raise ModelError(_refusal(lost[0]))
            outer = [made for made in outer if all(made is not one for one in lost)]
            continue
        name = f"{root.component}__class"
        declared = f" replaceable model {name} = {root.type} constrainedby {constraint};"
        put = f" redeclare {'replaceable ' if root.is_replaceable else ''}{name} {root.component}{root.rest}"
        edits.setdefault(root.placed.path, []).extend(
            [(root.placed.start, root.placed.start, declared), (root.start, root.end, put)]
        )
    for made in outer:
        values = f", {made.component}{made.rest}" if made.rest else ""
        put = f" redeclare model {made.component}__class = {made.type}{values}"
        edits.setdefault(made.placed.path, []).append((made.start, made.end, put))
    return {path: apply_edits(text, edits[path]) if path in edits else text for path, text in texts.items()}


def _refusal(made: _Redeclared) -> str:
    return (
        f"'{made.placed.name}' redeclares '{made.component}', which '{made.base.name}' redeclares in an extends-clause "
        f"itself: rumoca keeps the inner one, and the declaration of '{made.component}' by which it could be told was "
        f"not found. Extend the class in which '{made.component}' is declared, or flatten by OpenModelica "
        f'(flattener="omc")'
    )
