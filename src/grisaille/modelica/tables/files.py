"""Tables in files: texts that begin with ``#1``, MATLAB files, and values between commas.

A text holds matrices, ``double tab(6,2)`` followed by the numbers row by row, between blanks, commas or semicolons;
``#`` begins a comment. A MATLAB file holds them by name. Of a CSV file all columns are one matrix.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from grisaille.matfiles import UnreadableMatFile, read_matrices
from grisaille.modelica.limits import Unfit
from grisaille.modelica.tables.places import find_file

MAX_FILE = 2**25
"""Bytes of the largest file of tables."""
MAX_LISTED = 12
_MATRIX = re.compile(r"(?<!\S)(?:double|float)\s+([^\s(),]+)\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_BETWEEN = re.compile(r"[\s,;]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

Numbers = np.ndarray[Any, Any]


def read_table(file: str, table: str, delimiter: str = ",", header_lines: int = 0) -> Numbers:
    """Return the matrix ``table`` of a file that a text names; of a CSV file the only one."""
    path = find_file(file)
    if path.stat().st_size > MAX_FILE:
        raise Unfit(f"the file {file!r} has more than {MAX_FILE // 2**20} MiB and is not read")
    ending = file.rpartition(".")[2].lower()
    if ending == "mat":
        found = _from_mat(path, file, table)
    elif ending == "csv":
        found = _from_csv(_text(path, file), file, delimiter, header_lines)
    else:
        found = _from_text(_text(path, file), file, table)
    if not np.all(np.isfinite(found)):
        row, column = np.argwhere(~np.isfinite(found))[0] + 1
        raise Unfit(f"the table '{table}' of the file {file!r} is not finite in row {row}, column {column}")
    return found


def _text(path: Path, file: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unfit(f"the file {file!r} is not a text in UTF-8") from None
    except OSError as error:
        raise Unfit(f"the file {file!r} cannot be read: {error.strerror or error}") from None


def _from_mat(path: Path, file: str, table: str) -> Numbers:
    try:
        found = read_matrices(path, [table], MAX_FILE)
        if table not in found:
            others = [name for name, held in read_matrices(path, None, MAX_FILE).items() if held.dtype.kind in "fiu"]
            raise Unfit(_missing(file, table, others))
    except UnreadableMatFile as error:
        raise Unfit(f"the file {file!r} {error}") from None
    if not found[table].size:
        raise Unfit(f"the table '{table}' of the file {file!r} is empty")
    return found[table].astype(float)


def _from_text(text: str, file: str, table: str) -> Numbers:
    if not text.startswith("#1"):
        raise Unfit(f"the file {file!r} does not begin with '#1', as a text with tables does")
    plain = "\n".join(line.partition("#")[0] for line in text.splitlines())
    heads = list(_MATRIX.finditer(plain))
    for k, head in enumerate(heads):
        if head[1] == table:
            last = heads[k + 1].start() if k + 1 < len(heads) else len(plain)
            return _numbers(plain[head.end() : last], int(head[2]), int(head[3]), f"{table!r} of the file {file!r}")
    raise Unfit(_missing(file, table, [head[1] for head in heads]))


def _numbers(text: str, rows: int, columns: int, told: str) -> Numbers:
    parts = [part for part in _BETWEEN.split(text) if part]
    for part in parts:
        if not _NUMBER.fullmatch(part):
            raise Unfit(f"the table {told} holds {part[:40]!r}, which is not a number")
    if len(parts) != rows * columns:
        raise Unfit(f"the table {told} says ({rows},{columns}), {rows * columns} numbers, and holds {len(parts)}")
    if not parts:
        raise Unfit(f"the table {told} is empty")
    return np.array([float(part) for part in parts]).reshape(rows, columns)


def _from_csv(text: str, file: str, delimiter: str, header_lines: int) -> Numbers:
    if len(delimiter) != 1:
        raise Unfit(f"the delimiter of the file {file!r} must be one character, got {delimiter!r}")
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if number <= header_lines or not line.strip():
            continue
        cells = line.split() if delimiter == " " else line.split(delimiter)
        for cell in cells:
            if not _NUMBER.fullmatch(cell.strip()):
                raise Unfit(
                    f"the file {file!r} holds {cell.strip()[:40]!r} in line {number}, which is not a number: lines of "
                    "titles are counted by nHeaderLines, and what stands between columns is the delimiter"
                )
        if rows and len(cells) != len(rows[0]):
            raise Unfit(f"the file {file!r} has {len(cells)} columns in line {number} and {len(rows[0])} before")
        rows.append([float(cell) for cell in cells])
    if not rows:
        raise Unfit(f"the file {file!r} holds no numbers")
    return np.array(rows)


def _missing(file: str, table: str, others: list[str]) -> str:
    shown = ", ".join(others[:MAX_LISTED]) + (" …" if len(others) > MAX_LISTED else "")
    return f"the file {file!r} has no table '{table}'; it has {shown or 'none'}"
