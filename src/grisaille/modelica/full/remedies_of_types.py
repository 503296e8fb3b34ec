"""Remedies for types that ``rumoca`` 0.10 does not see: subtypes by structure, members of expandable connectors.

A class is a subtype of another where it has all its public elements, whether it extends it or not. The remedy extends
it, in the copies, where the other class is an interface (no equations) whose declarations all stand in the class too:
equal declarations are one. Members that connections add to an expandable connector are declared in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from grisaille.modelica.full.class_places import Classes
from grisaille.modelica.full.mending import edited, end_of_argument, without_words

Texts = dict[str, str]
MEMBER = "a member that connections add"
"""The description of declared members of expandable connectors."""
KINDS = ("Real", "Boolean", "Integer")
"""What a member may be, tried in turn: rumoca says where connectors do not fit."""
_SECTION = re.compile(r"\b(?:initial\s+)?(?:equation|algorithm)\b")
_HIDDEN = re.compile(r"\bprotected\b")
_EXPANDABLE = re.compile(r"\bexpandable\s+connector\s+(\w+)\b")


def with_interface(texts: Texts, sub: str, base: str) -> Texts:
    """``sub`` as a class that extends ``base``, where it has all of its elements; else the texts as they are."""
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
    if not wanted or "equation" in wanted or not all(_is_same(own.get(name, ""), d) for name, d in wanted.items()):
        return texts
    return {**texts, path: edited(texts[path], [(start, start, f" extends {base};")])}


def _is_same(one: str, other: str) -> bool:
    """Whether two declarations say the same, the types of one perhaps with more of their full names."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return longer == shorter or (
        longer.endswith(f".{shorter}") and re.fullmatch(r"[\w.]+\.", longer[: -len(shorter)]) is not None
    )


def with_member(texts: Texts, first: str, second: str) -> Texts:
    """The member of an expandable connector that is one end of a connection, declared as Real."""
    buses = {m[1] for text in texts.values() if "expandable" in text for m in _EXPANDABLE.finditer(without_words(text))}
    for end in (first, second):
        *_, bus, member = ("", *re.sub(r"\[[^\]]*\]", "", end).split("."))
        types = {kind for text in texts.values() if bus in text for kind in _types_of(text, bus) if kind in buses}
        if bus and len(types) == 1:
            kind = types.pop()
            texts = {path: _declared(text, kind, member) for path, text in texts.items()}
    return texts


def with_other_kind(texts: Texts, first: str, second: str) -> Texts:
    """A member that was declared as Real, and does not fit there, as the next kind."""
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
    return edited(text, [(at, at, f' Real {member} "{MEMBER}";')])


def _types_of(text: str, component: str) -> Iterator[str]:
    """Last names of the types of components of this name."""
    for found in re.finditer(rf"([\w.]+)\s+{re.escape(component)}\b\s*(?=[;(\[\"]|annotation)", without_words(text)):
        yield found[1].rpartition(".")[2]


def _body(text: str, bare: str, at: int) -> int:
    """Where the elements of a class begin, behind its name and description."""
    described = re.compile(r"\s*\"[^\"]*\"").match(bare, at)
    return described.end() if described is not None else at


def _end(bare: str, name: str, at: int) -> int:
    closed = re.compile(rf"\bend\s+{re.escape(name)}\s*;").search(bare, at)
    return closed.start() if closed is not None else len(bare)


def _elements(texts: Texts, path: str, start: int, end: int) -> Iterator[tuple[str, str]]:
    """Public components with their types and modifiers; what is no component is named by its first word."""
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
            yield declared[2] if plain else declared[1], f"{declared[1]}{declared[3]}"
        elif words:
            yield words.split()[0], words
        at = after + 1
    if section is not None:
        yield "equation", bare[section.start() :]
