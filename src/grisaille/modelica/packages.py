"""Where a model of full Modelica stands: in its file alone, or in a package that is a tree of folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from grisaille.errors import ModelError
from grisaille.modelica.library import SIMPLE
from grisaille.modelica.parsing import parse
from grisaille.modelica.refusals import Refused

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_WITHIN = re.compile(r"\s*within\s*([\w.]*)\s*;")
_CLASS = re.compile(r"\s*(?:(?:encapsulated|partial|final)\s+)*(\w+)\s+(\w+|'[^'\n]*')")


MODELS = ("model", "block", "class")
_NUMBER = re.compile(r"(StartTime|StopTime|Tolerance|Interval)\s*=\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)")


def is_flat(text: str) -> bool:
    """Whether a text is flat already: no inheritance, no connections, no components that are models."""
    try:
        classes = parse(text)
    except Refused:
        return False
    plain = set(SIMPLE)
    for made in classes:
        for inner in (made, *made.classes.values()):
            if inner.kind in ("record", "type", "function") or "ExternalObject" in inner.extends:
                plain.add(inner.name)
    if any(inner.base and inner.kind in MODELS for made in classes for inner in (made, *made.classes.values())):
        return False
    return all(
        component.type in plain
        for made in classes
        for inner in (made, *made.classes.values())
        for component in inner.components
    ) and not re.search(r"\bconnect\s*\(", _COMMENT.sub("", text))


def whole(
    text: str, label: str, file: Path | None, name: str | None, roots: Sequence[Path]
) -> tuple[str, str, str, list[Path]]:
    """(text, label, name of the model, folders of libraries) as the flattener takes them.

    A file inside a package that is a tree of folders (``package.mo`` beside it) brings the whole package.
    """
    within, kind, first = _head(text, label)
    full = f"{within}.{first}" if within else first
    if name is None:
        if kind not in MODELS:
            raise ModelError(f"{label} holds the {kind} '{full}': say which model, name='{full}.…'.")
        name = full
    elif within and "." not in name:
        name = f"{within}.{name}"
    if not re.fullmatch(r"[\w.']+", name):
        raise ModelError(f"name {name!r} is no name of a class.")
    folder = _package(file)
    if folder is None:
        if within:
            raise ModelError(
                f"{label} stands within '{within}', whose package.mo is not beside it: give the file in its folder."
            )
        return text, label, name, list(roots)
    inside = any(root.resolve() in (folder.resolve(), folder.resolve().parent) for root in roots)
    own = list(roots) if inside else [*roots, folder]
    return f"model Flattened\n  extends {name};\nend Flattened;\n", label, "Flattened", own


def experiment_of(text: str, name: str | None) -> dict[str, float]:
    """What the annotation of a model says of a run, ``{"StopTime": 10.0}``: the flattener leaves it out."""
    plain = _COMMENT.sub("", text)
    last = re.escape(name.rpartition(".")[2]) if name is not None else r"(?:\w+|'[^'\n]*')"
    own = re.search(rf"\b(?:{'|'.join(MODELS)})\s+({last})(?!\w).*?\bend\s+\1\s*;", plain, re.DOTALL)
    said = re.search(r"\bexperiment\s*\(([^()]*)\)", own[0]) if own else None
    return {key: float(value) for key, value in _NUMBER.findall(said[1])} if said else {}


def _head(text: str, label: str) -> tuple[str, str, str]:
    """(the package a file stands within, kind and name of its first class)."""
    plain = _COMMENT.sub(lambda m: " " * (m.end() - m.start()), text)
    within = _WITHIN.match(plain)
    found = _CLASS.match(plain, within.end() if within else 0)
    if found is None:
        raise ModelError(f"{label} holds no class of Modelica.")
    return (within[1] if within else "").strip("."), found[1], found[2]


def _package(file: Path | None) -> Path | None:
    """The outermost folder of the package in whose tree a file stands."""
    folder = file.resolve().parent if file is not None else None
    outermost = None
    while folder is not None and (folder / "package.mo").is_file() and folder != folder.parent:
        outermost, folder = folder, folder.parent
    return outermost
