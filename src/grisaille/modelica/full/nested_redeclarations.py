"""Redeclarations inside modifiers of modifiers, which ``rumoca`` 0.10 drops without a word.

``Outer o(h(redeclare C a(q = 2)))`` leaves the part a of h as it was. In the copies the class of h with the other part
gets a name, and h, which is made replaceable where it is declared, is redeclared with it::

    model Host__nested1 = Host(redeclare C a);
    Outer o(redeclare Host__nested1 h(a(q = 2)))

One redeclaration after the other, each one level further out, until all stand directly in the modifiers of a component
or of an extends-clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grisaille.errors import ModelError
from grisaille.modelica.full.class_places import Classes, Placed, arguments
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_parentheses

Texts = dict[str, str]
MAX_REWRITTEN = 60
"""Redeclarations of one set of texts that are moved, a level each."""
_REDECLARE = re.compile(r"\bredeclare\b")
_HOLDER = re.compile(
    r"[(,]\s*((?:(?:each|final)\s+)*)(redeclare\s+(?:(?:each|final)\s+)*(?:replaceable\s+)?([\w.]+)\s+)?(\w+)\s*$"
)
_PART = re.compile(
    r"(\s*(?:(?:each|final)\s+)*redeclare\s+(?:(?:each|final)\s+)*(?:replaceable\s+)?)"
    r"(?!(?:replaceable|model|block|class|package|record|connector|function|type)\b)([\w.]+\s+(\w+)(?:\s*\[[^\]]*\])?)\s*"
)
_OUTERMOST = re.compile(r"(?:\bextends\s+|=\s*)([\w.]+)\s*$|([\w.]+)\s+\w+(?:\s*\[[^\]]*\])?\s*$")
_DECLARED = r"(?:^|(?<=[;\s]))([A-Za-z_][\w.]*)\s+{name}\s*(?:\[[^\]]*\]\s*)?(?=[(;\"=]|annotation\b|constrainedby\b)"
_WORDS = ("redeclare", "extends", "end", "import", "within", "each", "final", "replaceable", "model", "package")


@dataclass(frozen=True)
class _Nested:
    """A redeclaration inside the modifiers of what stands in modifiers itself."""

    around: Placed
    named: str
    """The class that it is part of; a short one, ``model M = B(…)``, stands in ``around``."""
    holders: tuple[int, ...]
    """Opening parentheses around it, the innermost first."""
    start: int
    end: int
    """Of the argument."""


class _Unknown(Exception):
    """A class or a declaration that was not found."""


def with_outer_redeclarations(texts: Texts, asked: str, concerned: Callable[[Texts], set[str]]) -> Texts:
    """Return the texts with nested redeclarations moved outwards.

    asked : the model; what cannot be moved in its own text is refused
    concerned : full names of the classes that may have a part in it
    """
    if not any(_may_have(text) for text in texts.values()):
        return texts
    left: set[tuple[str, str]] = set()
    named = concerned(texts)
    for number in range(1, MAX_REWRITTEN + 1):
        classes = Classes(texts)
        every = _all_nested(texts, classes)
        nested = next((n for n in every if n.named in named and _key(n, texts) not in left), None)
        if nested is None:
            return texts
        try:
            texts = _moved(texts, classes, nested, number)
        except _Unknown as error:
            own = classes.found.get(asked)
            if own is None or own.path == nested.around.path:
                raise ModelError(_refusal(texts, nested, str(error))) from None
            left.add(_key(nested, texts))
    return texts


def _may_have(text: str) -> bool:
    return re.search(r"\([^;]*\([^;]*\bredeclare\b", text) is not None


def _key(nested: _Nested, texts: Texts) -> tuple[str, str]:
    return nested.named, texts[nested.around.path][nested.start : nested.end]


def _all_nested(texts: Texts, classes: Classes) -> list[_Nested]:
    found = []
    for path, text in texts.items():
        if "redeclare" not in text or not _may_have(text):
            continue
        bare = classes.bare[path]
        for made in _REDECLARE.finditer(bare):
            holders = _holders(bare, made.start())
            if len(holders) < 2 or _HOLDER.search(bare[: holders[0]]) is None:
                continue
            around = classes.around(path, made.start())
            inside = arguments(bare, holders[0] + 1, end_of_parentheses(bare, holders[0] + 1))
            place = next(((a, b) for a, b in inside if a <= made.start() < b), None)
            if around is not None and place is not None:
                found.append(_Nested(around, _short_class(classes, path, place[0]) or around.name, holders, *place))
    return found


def _short_class(classes: Classes, path: str, at: int) -> str:
    """Return the class ``model M = B(…)`` in whose modifiers a place lies; empty where there is none."""
    short = (p for p in classes.found.values() if p.path == path and p.is_short and p.start <= at < p.end)
    return next((p.name for p in short), "")


def _holders(bare: str, at: int) -> tuple[int, ...]:
    """Return opening parentheses around a place, up to the statement it stands in."""
    found, depth = [], 0
    for k in range(at - 1, -1, -1):
        letter = bare[k]
        if letter == ")":
            depth += 1
        elif letter == "(":
            depth -= 1
            if depth < 0:
                found.append(k)
                depth = 0
        elif letter == ";" and depth == 0:
            break
    return tuple(found)


def _moved(texts: Texts, classes: Classes, nested: _Nested, number: int) -> Texts:
    path = nested.around.path
    bare, text, opened = classes.bare[path], texts[path], nested.holders[0]
    holder = _HOLDER.search(bare[:opened])
    assert holder is not None
    declared: tuple[Placed, int] | None = None
    if holder[3]:
        kind = classes.meant(holder[3], nested.around)
    else:
        place, start, name = _declaration(classes, _class_of(classes, nested, 1), holder[4])
        declared, kind = (place, start), classes.meant(name, place)
    if kind is None:
        raise _Unknown(f"the class of '{holder[4]}' was not found")
    name = f"{kind.name.rpartition('.')[2]}__nested{number}"
    part = _PART.match(bare, nested.start, nested.end)
    close = end_of_parentheses(bare, opened + 1)
    if part is not None:
        given = text[nested.start : part.end()].strip()
        rest = text[part.end() : nested.end].strip()
        kept = f"{part[3]}{rest}" if rest.startswith("(") else ""
    else:
        given, kept = text[nested.start : nested.end].strip(), ""
    others = [text[a:b].strip() for a, b in arguments(bare, opened + 1, close) if a != nested.start]
    inside = ", ".join(a for a in (kept, *others) if a)
    begin = holder.start() + 1
    put = f" redeclare {holder[1]}{name} {holder[4]}" + (f"({inside})" if inside else "")
    edits: dict[str, list[Edit]] = {
        path: [
            (nested.around.start, nested.around.start, f" {kind.kind} {name} = {kind.name}({given});"),
            (begin, close + 1, put),
        ]
    }
    if declared is not None:
        place, start = declared
        before = classes.bare[place.path][max(place.start, start - 60) : start].rpartition(";")[2]
        if "replaceable" not in before.split():
            edits.setdefault(place.path, []).append((start, start, "replaceable "))
    return {p: apply_edits(t, edits[p]) if p in edits else t for p, t in texts.items()}


def _class_of(classes: Classes, nested: _Nested, level: int) -> Placed:
    """Return the class of what the parenthesis ``level`` steps outside of the innermost one modifies."""
    bare, opened = classes.bare[nested.around.path], nested.holders[level]
    if level == len(nested.holders) - 1:
        outermost = _OUTERMOST.search(bare[nested.around.start : opened])
        name = (outermost[1] or outermost[2]) if outermost is not None else None
        found = classes.meant(name, nested.around) if name and name not in _WORDS else None
    else:
        holder = _HOLDER.search(bare[:opened])
        if holder is None:
            raise _Unknown("what is modified was not found")
        if holder[3]:
            found = classes.meant(holder[3], nested.around)
        else:
            place, _, name = _declaration(classes, _class_of(classes, nested, level + 1), holder[4])
            found = classes.meant(name, place)
    if found is None:
        raise _Unknown("the class that is modified was not found")
    return found


def _declaration(classes: Classes, placed: Placed, name: str, depth: int = 0) -> tuple[Placed, int, str]:
    """Return where a class or what it extends declares a component, and with which type."""
    if not placed.is_short:
        for found in re.finditer(_DECLARED.format(name=re.escape(name)), classes.own(placed)[: placed.end]):
            if found.start() >= placed.start and found[1] not in _WORDS:
                return placed, found.start(1), found[1]
    for base in classes.bases(placed) if depth < 20 else ():
        above = classes.meant(base.name, placed)
        if above is not None and above != placed:
            try:
                return _declaration(classes, above, name, depth + 1)
            except _Unknown:
                continue
    raise _Unknown(f"the declaration of '{name}' in '{placed.name}' was not found")


def _refusal(texts: Texts, nested: _Nested, why: str) -> str:
    words = " ".join(texts[nested.around.path][nested.start : nested.end].split())
    return (
        f"'{nested.named}' contains '{words}' inside the modifiers of a modifier, which rumoca drops, and {why}. "
        f"Give the class with this redeclaration a name (model M = A(redeclare …)) and redeclare the component with "
        f'it, or flatten by OpenModelica (flattener="omc")'
    )
