"""Fitted values as Modelica: a model that extends the original, with the values as modifiers.

    model DriveFitted
      extends Plant.Drive(
        spring(c = 8.13 /* standard error 0.02 N.m/rad */),
        load(phi(start = 0.98, fixed = true)));
    end DriveFitted;

Entries of arrays are written as whole arrays, for modifiers name no entries. Flat models have names with dots in them,
which stand between quotes, one beside the other; no tool extends flat models, but ``read_modelica`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.content import ModelicaOrigin

FIRST_LINE = "// A fitted model, written by Grisaille"
ORIGINAL_LINE = "// The original model:"
_NAME = re.compile(r"[A-Za-z_]\w*")
_PART = re.compile(r"('(?:[^'\\]|\\.)*'|[^.\[\]']+)((?:\[[\d, ]+\])?)(?:\.|$)")
_WORDS = frozenset(
    """algorithm and annotation assert block break class connect connector constant constrainedby der discrete each else
    elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if
    import impure in initial inner input loop model not operator or outer output package parameter partial protected
    public pure record redeclare replaceable return stream then true type when while within""".split()
)


@dataclass(frozen=True)
class Modifier:
    """One value."""

    name: str
    """In full, ``"legs[2].m"``."""
    value: float
    is_start: bool = False
    remark: str = ""


@dataclass(frozen=True)
class FittedValues:
    """What entries of arrays have that are not written themselves."""

    parameters: Mapping[str, float]
    starts: Mapping[str, tuple[float, bool]]
    """Declared starts, and whether they are fixed."""


def extension(
    name: str, origin: ModelicaOrigin, modifiers: Sequence[Modifier], values: FittedValues, head: Sequence[str]
) -> str:
    """Return the text of a model called ``name``.

    head : lines of comments above it
    """
    for modifier in modifiers:
        if not math.isfinite(modifier.value):
            raise ModelError(f"'{modifier.name}' is {modifier.value}, which Modelica cannot write.")
    lines = _flat_lines(modifiers) if origin.is_flat else _nested_lines(modifiers, values)
    base = quoted(origin.name) if origin.is_flat else origin.name
    body = f"(\n    {f',{chr(10)}    '.join(lines)})" if lines else ""
    kept = f'annotation(__Grisaille(original = "{_escaped(origin.file)}"))'
    text = [FIRST_LINE, *(f"// {_line(words)}" for words in head), f"model {quoted(name)}", f"  extends {base}{body};"]
    text += [f"  {kept};", f"end {quoted(name)};", ""]
    if origin.text:
        text += [ORIGINAL_LINE, origin.text.rstrip(), ""]
    return "\n".join(text)


def quoted(name: str) -> str:
    """Return a name as Modelica writes it: between quotes unless it is plain."""
    if _NAME.fullmatch(name) and name not in _WORDS and name.isascii():
        return name
    if re.fullmatch(r"'(?:[^'\\]|\\.)*'", name):
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _line(words: str) -> str:
    return " ".join(words.split())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _remark(words: str) -> str:
    return f" /* {_line(words).replace('*/', '* /')} */" if words else ""


# --- flat models ---


def _flat_lines(modifiers: Sequence[Modifier]) -> list[str]:
    return [
        f"{quoted(m.name)}(start = {m.value!r}, fixed = true){_remark(m.remark)}"
        if m.is_start
        else f"{quoted(m.name)} = {m.value!r}{_remark(m.remark)}"
        for m in modifiers
    ]


# --- full models ---


def parts_of(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Return ``legs[2].m`` in parts: ``[("legs", (2,)), ("m", ())]``."""
    found: list[tuple[str, tuple[int, ...]]] = []
    at = 0
    while at < len(name):
        part = _PART.match(name, at)
        if part is None:
            raise ModelError(f"The name {name!r} cannot be written as a modifier of Modelica.")
        numbers = tuple(int(k) for k in part[2].strip("[]").split(",")) if part[2] else ()
        found.append((part[1], numbers))
        at = part.end()
    return found


def _nested_lines(modifiers: Sequence[Modifier], values: FittedValues) -> list[str]:
    root: dict[str, Any] = {}
    done: set[tuple[bool, tuple[str, ...]]] = set()
    for modifier in modifiers:
        parts = parts_of(modifier.name)
        path = tuple(part for part, _ in parts)
        if (modifier.is_start, path) in done:
            continue
        done.add((modifier.is_start, path))
        if any(numbers for _, numbers in parts):
            given = _whole_array(modifier, path, modifiers, values)
        else:
            given = _single(modifier)
        here = root
        for part in path:
            here = here.setdefault(part, {})
        here.update(given)
    return [_written(name, inner) for name, inner in root.items()]


def _single(modifier: Modifier) -> dict[str, str]:
    if modifier.is_start:
        return {"start =": f"{modifier.value!r}{_remark(modifier.remark)}", "fixed =": "true"}
    return {"=": f"{modifier.value!r}{_remark(modifier.remark)}"}


def _written(name: str, inner: Mapping[str, Any]) -> str:
    """Return ``spring(c = 8.0)`` or ``c = 8.0``."""
    inside = [
        f"{key} {text}" if isinstance(text, str) else _written(key, text) for key, text in inner.items() if key != "="
    ]
    group = f"({', '.join(inside)})" if inside else ""
    value = f" = {inner['=']}" if "=" in inner else ""
    return f"{quoted(name)}{group}{value}"


def _whole_array(
    modifier: Modifier, path: tuple[str, ...], modifiers: Sequence[Modifier], values: FittedValues
) -> dict[str, str]:
    """Return all entries of the array to which an entry belongs; those of lists of components come first."""
    known: dict[str, tuple[float, bool]] = dict(values.starts) if modifier.is_start else {
        name: (value, False) for name, value in values.parameters.items()
    }  # fmt: skip
    own = [m for m in modifiers if m.is_start == modifier.is_start]
    known |= {m.name: (m.value, True) for m in own}
    entries = {_numbers(name): value for name, value in known.items() if _is_entry(name, path)}
    sizes = tuple(max(numbers) for numbers in zip(*entries, strict=True))
    if len(entries) != int(np.prod(sizes)):
        what = "start" if modifier.is_start else "value"
        raise ModelError(
            f"'{modifier.name}' is an entry of an array of which {int(np.prod(sizes)) - len(entries)} entries have "
            f"no {what} of their own; modifiers of Modelica name whole arrays. Give them in the original, or set them "
            "with replace before the fit."
        )
    remarks = "; ".join(f"{m.name}: {m.remark}" for m in own if m.remark and _is_entry(m.name, path))
    numbers = _array(sizes, lambda index: repr(entries[index][0])) + _remark(remarks)
    if not modifier.is_start:
        return {"=": numbers}
    return {"start =": numbers, "fixed =": _array(sizes, lambda index: "true" if entries[index][1] else "false")}


def _is_entry(name: str, path: tuple[str, ...]) -> bool:
    try:
        return tuple(part for part, _ in parts_of(name)) == path
    except ModelError:
        return False


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(k for _, numbers in parts_of(name) for k in numbers)


def _array(sizes: tuple[int, ...], text: Callable[[tuple[int, ...]], str], index: tuple[int, ...] = ()) -> str:
    if len(index) == len(sizes):
        return str(text(index))
    return f"{{{', '.join(_array(sizes, text, (*index, k + 1)) for k in range(sizes[len(index)]))}}}"
