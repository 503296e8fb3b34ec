"""``problem.toml`` as data that knows its lines.

``tomllib`` gives values without places. A second, shallow pass over the text notes where each table and each key
stands; what is inside a value belongs to the line on which its key stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Key = str | int
Place = tuple[Key, ...]
"""A way into the document: ``("experiments", 1, "inputs")``."""

_ASSIGNMENT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)""", re.S)
_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


class UnreadableDocument(Exception):
    """The text is not TOML; ``line`` is where it stops being so (None: at its end)."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Document:
    """The values, and the line of each table and key."""

    path: Path
    data: dict[str, Any]
    lines: dict[Place, int]

    def line(self, place: Place) -> int | None:
        """Return the line of a place, or of the nearest thing around it; None for the document itself."""
        while place:
            if place in self.lines:
                return self.lines[place]
            place = place[:-1]
        return None


def read_document(path: Path) -> Document:
    """Return the document in a file; raises ``UnreadableDocument`` with a hint."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise UnreadableDocument("it is not UTF-8 text; save it as UTF-8 in your editor.", line) from None
    try:
        data = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise _explained(str(error), text) from None
    except ValueError as error:  # a number of thousands of digits
        raise UnreadableDocument(f"it holds what cannot be read: {error}.", None) from None
    except RecursionError:
        raise UnreadableDocument(
            "brackets are nested too deeply to be read; a problem needs three levels at most.", None
        ) from None
    lines = find_lines(text)
    large = next((place for place, value in _values(data, ()) if type(value) is int and abs(value) >= 2**63), None)
    if large is not None:
        known = Document(path, data, lines).line(large)
        raise UnreadableDocument(f"{show_place(large)} is a whole number beyond 64 bits; write it with a point.", known)
    return Document(path, data, lines)


def _values(data: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield everything that is no table or list, with its place."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else None
    if inner is None:
        yield place, data
        return
    for key, value in inner:
        yield from _values(value, (*place, key))


def show_place(place: Place) -> str:
    """Return ``experiments[1].inputs``, numbered from 1 as a reader counts tables."""
    text = ""
    for key in place:
        if isinstance(key, int):
            text += f"[{key + 1}]"
        else:
            shown = key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'
            text += f".{shown}" if text else shown
    return text


def find_lines(text: str) -> dict[Place, int]:
    """Return tables and keys to the lines on which they stand, counted from 1."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    prefix: Place = ()
    for number, logical in _logical_lines(text):
        header = _HEADER.match(logical)
        assignment = _ASSIGNMENT.match(logical)
        if header and not assignment:
            base = _indexed(_keys(header[2]), counts)
            if header[1] == "[[":
                found.setdefault(base, number)
                counts[base] = counts.get(base, -1) + 1
                base = (*base, counts[base])
            prefix = base
            found.setdefault(prefix, number)
        elif assignment:
            place = (*prefix, *_keys(assignment[1]))
            for length in range(len(prefix) + 1, len(place) + 1):
                found.setdefault(place[:length], number)
    return found


def _keys(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted key; TOML itself takes off the quotes."""
    table: Any = tomllib.loads(f"{text} = 0")
    keys: list[str] = []
    while isinstance(table, dict):
        key, table = next(iter(table.items()))
        keys.append(key)
    return tuple(keys)


def _indexed(keys: tuple[str, ...], counts: dict[Place, int]) -> Place:
    """Return a header's way, through the last table of each array of tables that it passes."""
    place: Place = ()
    for k, key in enumerate(keys):
        place = (*place, key)
        if place in counts and k + 1 < len(keys):
            place = (*place, counts[place])
    return place


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return lines with those that their brackets and long texts swallow, each with the number of its first."""
    joined: list[tuple[int, str]] = []
    held, begin, quote, depth = "", 0, "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        begin = begin or number
        held += line + "\n"
        quote, depth = _scan(line, quote, depth, is_header=bool(_HEADER.match(held)) and "=" not in held)
        if not quote and depth <= 0:
            joined.append((begin, held.rstrip("\n")))
            held, begin, depth = "", 0, 0
    return joined


def _scan(line: str, quote: str, depth: int, is_header: bool) -> tuple[str, int]:
    """Return which quotes and how many brackets are open after a line."""
    k = 0
    while k < len(line):
        if quote:
            if line.startswith(quote, k):
                k, quote = k + len(quote), ""
                continue
            k += 2 if line[k] == "\\" and quote[0] == '"' else 1
            continue
        if line[k] == "#":
            break
        if line[k] in "\"'":
            quote = line[k] * 3 if line.startswith(line[k] * 3, k) else line[k]
            k += len(quote)
            continue
        if not is_header:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(line[k], 0)
        k += 1
    return (quote if len(quote) == 3 else ""), depth


def _explained(message: str, text: str) -> UnreadableDocument:
    """Return TOML's own words with the line they are about, and what is usually behind them."""
    position = _POSITION.search(message)
    number = int(position[1]) if position and position[1] else None
    lines = text.splitlines()
    written = lines[number - 1].strip() if number and number <= len(lines) else ""
    said = _POSITION.sub("", message).rstrip(".")
    where = f" in {written!r}" if written else ""
    return UnreadableDocument(f"{said}{where}. {_hint(written, said)}", number)


def _hint(written: str, said: str) -> str:
    name, _, value = (part.strip() for part in written.partition("="))
    if "overwrite" in said or "twice" in said:
        return "The same key or table is there twice; keep one. Each experiment begins with [[experiments]]."
    if "Unclosed" in said:
        return "A bracket or quote that was opened in an earlier line is not closed."
    if re.search(r"[(*]|\[.*\]\.", name) and not name.startswith(('"', "'", "[")):
        return f'Names with brackets, points or stars need quotes: "{name}" = …'
    if value in ("True", "False"):
        return f"TOML writes {value.lower()}."
    if value in ("None", "none", "null", ""):
        return "TOML has no empty value: leave the key out."
    if re.fullmatch(r"[A-Za-z_][\w .:/*-]*", value):
        return f'Texts need quotes: {name} = "{value}".'
    if re.fullmatch(r"-?\d+,\d+", value):
        return f"Numbers have a decimal point: {name} = {value.replace(',', '.')}."
    if re.fullmatch(r"-?\.\d+|-?\d+\.", value):
        return f"Numbers need digits on both sides of the point: {name} = {float(value)}."
    return 'Each line is  key = value  with texts in "quotes", lists in [brackets] and tables in {braces}.'
