"""Models that ``Fit.to_modelica`` wrote, read again: the original is read, and the values are entered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grisaille.errors import ModelError
from grisaille.model.content import Content
from grisaille.model.overriding import override
from grisaille.modelica import tree
from grisaille.modelica.fitted.writing import FIRST_LINE, ORIGINAL_LINE, parts_of
from grisaille.modelica.parsing import parse_extension
from grisaille.modelica.refusals import Refused

_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'")


@dataclass(frozen=True)
class FittedText:
    """What a file of a fitted model says."""

    name: str
    base: str
    modifiers: Mapping[str, tree.Node]
    """By name; those of starts end in ``.start``."""
    file: str
    """Of the original; empty where its text stands below."""
    own: str
    """The text without that of the original."""
    below: str

    @property
    def whole(self) -> str:
        """Return the text, with that of the original where it stands below."""
        return f"{self.own}\n{ORIGINAL_LINE}\n{self.below}" if self.below else self.own


def fitted_model(text: str) -> FittedText | None:
    """Return what a text says that ``to_modelica`` has written; None where it is another one."""
    if not text.startswith(FIRST_LINE):
        return None
    own, _, below = text.partition(f"\n{ORIGINAL_LINE}\n")
    try:
        made, base, modifiers = parse_extension(own)
    except Refused:
        return None
    return FittedText(made.name, base, modifiers, str(made.annotation.get("__Grisaille.original", "")), own, below)


def find_original(fitted: FittedText, folders: Sequence[Path], label: str) -> Path | None:
    """Return the file of the original, beside the fitted one or in a folder; None where its library stands in a
    folder.
    """
    name, first = fitted.file, fitted.base.partition(".")[0]
    if name and not Path(name).is_absolute() and ".." not in Path(name).parts:
        for folder in folders:
            if folder.is_file() and folder.name == name:
                return folder
            for place in (folder / name, folder.parent / name):
                if place.is_file() and (place.is_relative_to(folder) or folder.name == Path(name).parts[0]):
                    return place
    for folder in folders:
        places = (folder / first / "package.mo", folder / f"{first}.mo", folder / "package.mo")
        if any(place.is_file() for place in places):
            return None
    told = f"'{name}'" if name else "the file that defines it"
    raise ModelError(f"{label} extends '{fitted.base}': put {told} beside it, or give its folder in path=[…].")


def with_values(content: Content, fitted: FittedText, label: str) -> Content:
    """Return the content of the original with the values of a fitted model; its starts are demands."""
    meant = _Names(content)
    values: dict[str, float] = {}
    starts: dict[str, float] = {}
    demands: list[str] = []
    for name, node in fitted.modifiers.items():
        whole, _, attribute = name.rpartition(".")
        is_start = attribute in ("start", "fixed") and f"{whole}.fixed" in fitted.modifiers
        for scalar, value in meant.scalars(whole if is_start else name, node, is_start, label):
            if attribute == "fixed" and is_start:
                demands += [scalar] if value is True else []
            elif not isinstance(value, bool):
                (starts if is_start else values)[scalar] = value
    made = override(content, values, {name: value for name, value in starts.items() if name in demands})
    for name in demands:
        if name in made.variables:
            made.variables[name] = replace(made.variables[name], fixed=True)
    return made


class _Names:
    """Which scalars of a model a modifier means."""

    def __init__(self, content: Content) -> None:
        tables = content.parameters, {**content.variables, **content.discretes}
        self._tables = [{_unquoted(name): name for name in table} for table in tables]

    def scalars(self, name: str, node: tree.Node, is_start: bool, label: str) -> Iterator[tuple[str, Any]]:
        """Yield each with its value; entries of an array by their numbers."""
        known = self._tables[is_start]
        if not isinstance(node, tree.Braces):
            if name not in known:
                raise ModelError(f"{label} gives a value to '{name}', which the original has no longer.")
            yield known[name], _plain(node, label)
            return
        found = dict(_entries(node))
        path = tuple(name.split("."))
        hits = {scalar: numbers for scalar in known if (numbers := _numbers_below(scalar, path)) in found}
        if len(hits) != len(found):
            raise ModelError(f"{label} gives {len(found)} values to '{name}', which has {len(hits)} in the original.")
        for scalar, numbers in hits.items():
            yield known[scalar], _plain(found[numbers], label)


def _unquoted(name: str) -> str:
    return _QUOTED.sub(lambda m: m[1].replace("\\'", "'").replace("\\\\", "\\"), name)


def _entries(node: tree.Node, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], tree.Node]]:
    if isinstance(node, tree.Braces):
        for k, item in enumerate(node.items, start=1):
            yield from _entries(item, (*index, k))
    else:
        yield index, node


def _numbers_below(name: str, path: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return ``(2,)`` for ``legs[2].m`` under ``("legs", "m")``; None for other names."""
    if not name.startswith(path[0]):
        return None
    try:
        parts = parts_of(name)
    except ModelError:
        return None
    if tuple(part for part, _ in parts) != path:
        return None
    return tuple(k for _, numbers in parts for k in numbers)


def _plain(node: tree.Node, label: str) -> Any:
    if isinstance(node, tree.Literal) and isinstance(node.value, bool | int | float):
        return node.value if isinstance(node.value, bool) else float(node.value)
    if isinstance(node, tree.Unary) and node.operator == "-" and isinstance(node.operand, tree.Literal):
        return -float(node.operand.value)
    raise ModelError(f"{label}: the values of a fitted model are numbers; edit a copy without its first line.")
