"""Texts written for an older version of a library: classes and elements renamed as the newer version's script says.

A text says ``uses(Modelica(version = "3.2.3"))``, and the library that is there has, for versions before its own,
``conversion(from(version = {"3.2.3"}, script = "modelica://…"))``. Of the script ``convertClass`` and
``convertElement`` are followed: names of classes, and of elements of components whose class is written beside them.
Modifiers that have another meaning today are refused by name where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grisaille.modelica.full.mending import Edit, apply_edits, end_of_parentheses, without_words

_USES = re.compile(r"\buses\s*\(((?:[^()]|\([^()]*\))*)\)")
_USED = re.compile(r'(\w+)\s*\(\s*version\s*=\s*"([^"]+)"')
_FROM = re.compile(
    r"\bfrom\s*\(\s*version\s*=\s*(\{[^}]*\}|\"[^\"]*\")\s*,\s*(?:to\s*=\s*\"[^\"]*\"\s*,\s*)?script\s*=\s*\"([^\"]*)\""
)
_CLASS = re.compile(r'convertClass\s*\(\s*"([\w.]+)"\s*,\s*"([\w.]+)"\s*\)')
_WORDS = r'\s*(\{[^}]*\}|"[^"]*")\s*'
_ELEMENT = re.compile(rf"convertElement\s*\({_WORDS},{_WORDS},{_WORDS}\)")
_NAME = re.compile(r"(?<![\w.'])\.?[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+")
_ALIAS = re.compile(r"\bimport\s+(?:(\w+)\s*=\s*)?([\w.]+)\s*;")
_COMPONENT = re.compile(r"\s+([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)?(?=[(;=,\"]|annotation\b)")

Renamed = Mapping[str, str]


@dataclass(frozen=True)
class Conversion:
    """Old and new names between two versions."""

    classes: Renamed = field(default_factory=dict)
    elements: Mapping[str, Renamed] = field(default_factory=dict)
    """Of each class, by its old name."""

    def __bool__(self) -> bool:
        return bool(self.classes or self.elements)

    def __or__(self, other: Conversion) -> Conversion:
        return Conversion({**self.classes, **other.classes}, {**self.elements, **other.elements})


def used_versions(text: str) -> dict[str, str]:
    """Return the libraries that a library uses, with the versions it was written for."""
    return {name: version for uses in _USES.findall(text) for name, version in _USED.findall(uses)}


def conversion(text: str, folder: Path, version: str | None) -> Conversion:
    """Return what has other names between a version of a library and this one, whose ``package.mo`` is the text.

    version : without one, all versions that a script is there for
    """
    found = Conversion()
    for versions, script in _FROM.findall(text):
        place = re.fullmatch(r"modelica://\w+/(.*)", script)
        if (version is None or f'"{version}"' in versions) and place and (folder / place[1]).is_file():
            found |= _read((folder / place[1]).read_text("utf-8", errors="replace"))
    return found


def _read(script: str) -> Conversion:
    elements: dict[str, dict[str, str]] = {}
    for classes, old, new in _ELEMENT.findall(script):
        pairs = dict(zip(_texts(old), _texts(new), strict=False))
        for name in _texts(classes):
            elements.setdefault(name, {}).update(pairs)
    return Conversion(dict(_CLASS.findall(script)), elements)


def _texts(listed: str) -> list[str]:
    return re.findall(r'"([^"]*)"', listed)


def convert_text(text: str, names: Conversion) -> str:
    """Return a text with the new names of classes, those behind an alias of an import, too, and of elements."""
    bare = without_words(text)
    aliases = {alias or full.rpartition(".")[2]: full for alias, full in _ALIAS.findall(bare)}
    edits: list[Edit] = []
    elements: dict[str, Renamed] = {}
    for found in _NAME.finditer(bare):
        name = re.sub(r"\s", "", found[0]).removeprefix(".")
        first, _, rest = name.partition(".")
        full = f"{aliases[first]}.{rest}" if first in aliases else name
        new = _new(full, names.classes)
        as_is = f"{_new(aliases[first], names.classes)}.{rest}" if first in aliases else full
        if new != as_is:
            edits.append((found.start(), found.end(), new))
        if full in names.elements and (component := _COMPONENT.match(bare, found.end())):
            elements[component[1]] = names.elements[full]
            edits += _modifiers(bare, component.end(), names.elements[full])
    text = apply_edits(text, edits)
    return apply_edits(text, _elements(without_words(text), elements)) if elements else text


def _modifiers(bare: str, at: int, renamed: Renamed) -> Iterator[Edit]:
    """Yield modifiers of a component, which begin here."""
    if bare[at : at + 1] != "(":
        return
    end = end_of_parentheses(bare, at + 1)
    for old, new in renamed.items():
        for found in re.finditer(rf"(?<![\w.]){re.escape(old)}(?=\s*[=(.])(?!\s*==)", bare[at:end]):
            if _depth(bare[at : at + found.start()]) == 1:
                yield at + found.start(), at + found.end(), new


def _depth(part: str) -> int:
    return sum((letter in "([{") - (letter in ")]}") for letter in part)


def _elements(bare: str, elements: Mapping[str, Renamed]) -> Iterator[Edit]:
    """Yield ``component.element`` among equations."""
    for component, renamed in elements.items():
        for old, new in renamed.items():
            for found in re.finditer(rf"(?<![\w.]){component}(?:\[[^\]]*\])?\.({re.escape(old)})(?!\w)", bare):
                yield found.start(1), found.end(1), new


def _new(name: str, renamed: Renamed) -> str:
    """Return the new name of a class, by the longest part of it that has one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        if (new := renamed.get(".".join(parts[:k]))) is not None:
            return ".".join([new, *parts[k:]])
    return name
