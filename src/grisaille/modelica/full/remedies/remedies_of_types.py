"""Remedies for types that ``rumoca`` 0.10 does not see: subtypes by structure, members of expandable connectors.

A class is a subtype of another where it has all its public elements, whether it extends it or not. The remedy extends
it, in the copies, where the other class is an interface (no equations) whose declarations all stand in the class too:
equal declarations are one. Where the other class has equations, both extend an empty class, which becomes the
constraint of what is replaced. Members that connections add to an expandable connector are declared in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from grisaille.modelica.full.class_places import Classes, Placed, arguments
from grisaille.modelica.full.confidence import references_in
from grisaille.modelica.full.mending import Edit, apply_edits, end_of_argument, end_of_parentheses, without_words

Texts = dict[str, str]
MEMBER = "a member that connections add"
"""The description of declared members of expandable connectors."""
PERHAPS = " (of an expandable connector)"
"""What is added to descriptions of members that expandable connectors declare: they are there where they are used."""
KINDS = ("Real", "Boolean", "Integer")
"""What a member may be, tried in turn: rumoca says where connectors do not fit."""
_SECTION = re.compile(r"\b(?:initial\s+)?(?:equation|algorithm)\b")
_REPLACEABLE = re.compile(
    r"\breplaceable\s+(?:(?:model|block|class)\s+\w+\s*=\s*(?P<class>[\w.]+)\s*|"
    r"(?!(?:model|block|class|package|record|connector|function|type)\b)(?P<type>[\w.]+)\s+\w+\s*(?:\[[^\]]*\]\s*)?)"
)
_HIDDEN = re.compile(r"\bprotected\b")
_EXPANDABLE = re.compile(r"\bexpandable\s+connector\s+(\w+)\b")


def with_interface(texts: Texts, sub: str, base: str) -> Texts:
    """Return ``sub`` as a class that extends ``base``, where it has all of its elements; else the texts as they are."""
    classes = Classes(texts)
    home, other = classes.found.get(sub), classes.found.get(base)
    for _ in range(20):
        if home is None or not home.is_short:
            break
        home = next((classes.meant(one.name, home) for one in classes.bases(home)), None)
    if home is None or other is None or other.is_short:
        return texts
    path, start, end = home.path, home.start, home.end
    wanted, own = dict(_elements(texts, other.path, other.start, other.end)), dict(_elements(texts, path, start, end))
    if wanted and "equation" not in wanted and all(_is_same(own.get(name, ""), d) for name, d in wanted.items()):
        return {**texts, path: apply_edits(texts[path], [(start, start, f" extends {base};")])}
    wanted.pop("equation", None)
    if not wanted or not all(_is_same(_type(own.get(name, "")), _type(d)) for name, d in wanted.items()):
        return texts
    return _with_empty_interface(texts, classes, home, other)


def _type(declaration: str) -> str:
    """Return a declaration without its modifiers and its value."""
    return re.split(r"[(=]|:=", declaration, maxsplit=1)[0].strip()


def _with_empty_interface(texts: Texts, classes: Classes, sub: Placed, base: Placed) -> Texts:
    """Let both classes extend an empty one, which constrains the components of the class ``base`` that are
    replaceable.
    """
    name = f"{base.name}__interface"
    edits: dict[str, list[Edit]] = {sub.path: [(sub.start, sub.start, f" extends {name};")]}
    if name not in classes.found:
        if "." not in base.name:
            return texts  # beside it stand no other classes in a file
        last = base.name.rpartition(".")[2]
        after = classes.bare[base.path].index(";", base.end) + 1
        edits.setdefault(base.path, []).extend(
            [
                (base.start, base.start, f" extends {name};"),
                (after, after, f" partial {base.kind} {last}__interface end {last}__interface;"),
            ]
        )
        for placed in classes.found.values():
            if placed.is_short or "replaceable" not in classes.bare[placed.path][placed.start : placed.end]:
                continue
            bare = classes.bare[placed.path]
            for found in _REPLACEABLE.finditer(bare, placed.start, placed.end):
                if classes.around(placed.path, found.start()) != placed:
                    continue
                has = bare[found.end() : found.end() + 1] == "("
                end = end_of_parentheses(bare, found.end() + 1) + 1 if has else found.end()
                close = end_of_argument(bare, end, ";")
                if (
                    "constrainedby" not in bare[end:close]
                    and classes.meant(found["class"] or found["type"], placed) == base
                ):
                    edits.setdefault(placed.path, []).append((end, end, f" constrainedby {name}"))
    return {path: apply_edits(text, edits[path]) if path in edits else text for path, text in texts.items()}


def _is_same(one: str, other: str) -> bool:
    """Return whether two declarations say the same, the types of one perhaps with more of their full names."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return longer == shorter or (
        longer.endswith(f".{shorter}") and re.fullmatch(r"[\w.]+\.", longer[: -len(shorter)]) is not None
    )


def with_member(texts: Texts, first: str, second: str) -> Texts:
    """Return the member of an expandable connector that is one end of a connection, declared as Real."""
    buses = {m[1] for text in texts.values() if "expandable" in text for m in _EXPANDABLE.finditer(without_words(text))}
    for end in (first, second):
        *_, bus, member = ("", *re.sub(r"\[[^\]]*\]", "", end).split("."))
        types = {kind for text in texts.values() if bus in text for kind in _types_of(text, bus) if kind in buses}
        if bus and len(types) == 1:
            kind = types.pop()
            texts = {path: _declared(text, kind, member) for path, text in texts.items()}
    return texts


def with_marked_members(texts: Texts) -> Texts:
    """Return the texts with members of expandable connectors known by their descriptions."""
    return {path: _marked(text) if "expandable" in text else text for path, text in texts.items()}


def _marked(text: str) -> str:
    bare, edits = without_words(text), []
    for made in _EXPANDABLE.finditer(bare):
        at = _body(text, bare, made.end())
        end = _end(bare, made[1], at)
        hidden = re.compile(r"\b(?:protected|equation|model|record|type|package)\b").search(bare, at, end)
        end = hidden.start() if hidden is not None else end
        while (last := end_of_argument(bare, at, ";")) < end:
            one = re.compile(r"\s*(?:(?:input|output)\s+)?[\w.]+\s+\w+\s*(?:\([^;]*\)\s*)?(\"[^\"]*\"\s*)?").fullmatch(
                bare, at, last
            )
            if one is not None and one[0].split()[0] not in ("extends", "import"):
                place = one.end(1) - 1 - (len(one[1]) - len(one[1].rstrip())) if one[1] else last
                edits.append((place, place, PERHAPS if one[1] else f' "{PERHAPS}"'))
            at = last + 1
    return apply_edits(text, edits)


def absent_members(flat: Mapping[str, Any]) -> set[str]:
    """Return members of expandable connectors that nothing uses: they are not there, though a connector declares
    them.
    """
    members = {
        name for name, variable in flat["variables"].items()
        if str(variable.get("description") or "").endswith((PERHAPS, MEMBER)) and variable["binding"] is None
    }  # fmt: skip
    if not members:
        return members
    pairs = [pair for entry in flat["equations"] if (pair := _connected(entry, members))]
    others = [entry for entry in flat["equations"] if not _connected(entry, members)]
    used = set(
        references_in(
            [others, *(value for key, value in flat.items() if key not in ("equations", "structured_equations"))]
        )
    )
    while more := {a for one, two in pairs for a in (one, two) if {one, two} & used} - used:
        used |= more
    return members - used


def _connected(entry: Mapping[str, Any], members: set[str]) -> tuple[str, str] | None:
    """Return two members that an equation makes equal."""
    sides = entry["residual"].get("Binary") or {}
    names = [sides.get(side, {}).get("VarRef", {}).get("name", {}).get("name") for side in ("lhs", "rhs")]
    return (names[0], names[1]) if sides.get("op") == "Sub" and members.issuperset(names) else None


def with_other_kind(texts: Texts, first: str, second: str) -> Texts:
    """Return a member that was declared as Real, and does not fit there, as the next kind."""
    for end in (first, second):
        member = end.rpartition(".")[2]
        for now, after in pairwise(KINDS):
            old, new = f'{now} {member} "{MEMBER}";', f'{after} {member} "{MEMBER}";'
            if any(old in text for text in texts.values()):
                return {path: text.replace(old, new) for path, text in texts.items()}
    return texts


def _declared(text: str, kind: str, member: str) -> str:
    bare = without_words(text) if kind in text else ""
    made = next((m for m in _EXPANDABLE.finditer(bare) if m[1] == kind), None)
    if made is None:
        return text
    at = _body(text, bare, made.end())
    end = _end(bare, kind, at)
    if re.search(rf"\b{member}\s*(?:;|\(|=|\"|annotation)", bare[at:end]):
        return text
    return apply_edits(text, [(at, at, f' Real {member} "{MEMBER}";')])


def _types_of(text: str, component: str) -> Iterator[str]:
    """Yield last names of the types of components of this name."""
    for found in re.finditer(rf"([\w.]+)\s+{re.escape(component)}\b\s*(?=[;(\[\"]|annotation)", without_words(text)):
        yield found[1].rpartition(".")[2]


def _body(text: str, bare: str, at: int) -> int:
    """Return where the elements of a class begin, behind its name and description."""
    described = re.compile(r"\s*\"[^\"]*\"").match(bare, at)
    return described.end() if described is not None else at


def _end(bare: str, name: str, at: int) -> int:
    closed = re.compile(rf"\bend\s+{re.escape(name)}\s*;").search(bare, at)
    return closed.start() if closed is not None else len(bare)


def _joined(kind: str, component: str) -> str:
    """Return a component's type with what stands behind its name."""
    return kind + component[len(re.match(r"\w*", component)[0]) :]  # type: ignore[index]


def _elements(texts: Texts, path: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield public components with their types and modifiers; what is no component is named by its first word."""
    text, bare = texts[path][start:end], without_words(texts[path])[start:end]
    hidden = _HIDDEN.search(bare)
    section = _SECTION.search(bare)
    stop = min([m.start() for m in (hidden, section) if m is not None], default=len(bare))
    at = 0
    while at < stop:
        after = min(end_of_argument(bare, at, ";"), stop)
        noted = re.compile(r"\bannotation\b").search(bare, at, after)
        words = " ".join(text[at : noted.start() if noted is not None else after].split())
        words = re.sub(r"\s*\"(?:[^\"\\]|\\.)*\"$", "", words)
        declared = re.match(r"((?:\w+ )*[\w.]+) (\w+)(.*)$", words)
        if words.startswith("extends "):
            yield "extends", re.sub(r"^extends\s+(?:\w+\s*\.\s*)*", "extends ", words)
        elif declared is not None:
            plain = declared[1].split()[0] not in ("import", "replaceable", "redeclare", "outer", "inner")
            if plain:
                listed = words[declared.start(2) :]
                every = (listed[a:b].strip() for a, b in arguments(listed, 0, len(listed)))
                yield from ((one.split("(")[0].split("[")[0].split()[0], _joined(declared[1], one)) for one in every)
            else:
                yield declared[1], f"{declared[1]}{declared[3]}"
        elif words:
            yield words.split()[0], words
        at = after + 1
    if section is not None:
        yield "equation", bare[section.start() :]
