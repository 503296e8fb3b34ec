"""Libraries written for an older version of another one: classes renamed as the newer version's own script says.

A library says ``uses(Modelica(version = "3.2.3"))``, and the one that is there has, for versions before its own,
``conversion(from(version = {"3.2.3"}, script = "modelica://…"))``. Of the script ``convertClass`` is followed; elements
and modifiers that were renamed, too, are refused by name where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from grisaille.modelica.full.mending import Edit, edited, without_words

_USES = re.compile(r"\buses\s*\(((?:[^()]|\([^()]*\))*)\)")
_USED = re.compile(r'(\w+)\s*\(\s*version\s*=\s*"([^"]+)"')
_FROM = re.compile(
    r"\bfrom\s*\(\s*version\s*=\s*(\{[^}]*\}|\"[^\"]*\")\s*,\s*(?:to\s*=\s*\"[^\"]*\"\s*,\s*)?script\s*=\s*\"([^\"]*)\""
)
_CLASS = re.compile(r'convertClass\s*\(\s*"([\w.]+)"\s*,\s*"([\w.]+)"\s*\)')
_NAME = re.compile(r"(?<![\w.'])\.?[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)+")
_ALIAS = re.compile(r"\bimport\s+(?:(\w+)\s*=\s*)?([\w.]+)\s*;")

Renamed = Mapping[str, str]


def used_versions(text: str) -> dict[str, str]:
    """The libraries that a library uses, with the versions it was written for."""
    return {name: version for uses in _USES.findall(text) for name, version in _USED.findall(uses)}


def renamed_classes(text: str, folder: Path, version: str) -> dict[str, str]:
    """Old and new names of classes between a version of a library and this one, whose ``package.mo`` is the text."""
    for versions, script in _FROM.findall(text):
        found = re.fullmatch(r"modelica://\w+/(.*)", script)
        if f'"{version}"' in versions and found and (folder / found[1]).is_file():
            return dict(_CLASS.findall((folder / found[1]).read_text("utf-8", errors="replace")))
    return {}


def converted(text: str, renamed: Renamed) -> str:
    """A text with the new names of classes; those behind an alias of an import, too."""
    bare = without_words(text)
    aliases = {alias or full.rpartition(".")[2]: full for alias, full in _ALIAS.findall(bare)}
    edits: list[Edit] = []
    for found in _NAME.finditer(bare):
        name = re.sub(r"\s", "", found[0]).removeprefix(".")
        first, _, rest = name.partition(".")
        full = f"{aliases[first]}.{rest}" if first in aliases else name
        new = _new(full, renamed)
        as_is = f"{_new(aliases[first], renamed)}.{rest}" if first in aliases else full
        if new != as_is:
            edits.append((found.start(), found.end(), new))
    return edited(text, edits)


def _new(name: str, renamed: Renamed) -> str:
    """The new name of a class, by the longest part of it that has one."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        if (new := renamed.get(".".join(parts[:k]))) is not None:
            return ".".join([new, *parts[k:]])
    return name
