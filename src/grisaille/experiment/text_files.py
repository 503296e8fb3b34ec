"""Text files with a header: separators, decimal commas, comments, a row of units. Cells stay text; lines are counted.

The ``csv`` module splits lines; it counts them as an editor does, which is why a table-reading library that drops
comments and blank lines is not used here.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import MISSING_TEXTS, is_marked
from grisaille.experiment.header_units import units_in_headers
from grisaille.experiment.record_table import DATE, RecordTable, is_number
from grisaille.experiment.rows import RowNames
from grisaille.experiment.signal_checks import check_text

TEXT = "the table"
SEPARATORS = ("\t", ";", ",")


class TextLine(NamedTuple):
    number: int
    cells: list[str]


def read_table(
    path: str | Path | TextIO, separator: str | None, decimal: str, comment: str, encoding: str, units_row: bool | None
) -> RecordTable:
    """Return the table in a file; ``units_row=None`` looks whether units stand below the header."""
    for what, value in (
        ("comment", comment),
        ("encoding", encoding),
        ("separator", "" if separator is None else separator),
    ):
        check_text(value, what, "'#'" if what == "comment" else "'utf-8'" if what == "encoding" else "';'")
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise DataError(f"decimal is {decimal!r}; it must be '.' or ','.")
    source, label, text = _read_text(path, encoding)
    lines = _split(text, source, separator, decimal, comment)
    header, body = lines[0], lines[1:]
    _refuse_title(header, body, source, comment)
    has_units = bool(body) and (_has_units(body, decimal) if units_row is None else units_row)
    below = {n: cell.strip("[]() ") for n, cell in zip(header.cells, body[0].cells, strict=False)} if has_units else {}
    body = body[1:] if has_units else body
    if not body:
        raise DataError(f"{_begin(source)} has a header but no rows of data.")
    _check_width(header, body, source)
    return RecordTable(
        columns={name: [line.cells[k] for line in body] for k, name in enumerate(header.cells)},
        rows=RowNames("line", np.array([line.number for line in body]), source),
        source=_begin(source),
        label=label,
        units=units_in_headers(header.cells) | {name: unit for name, unit in below.items() if unit not in ("", "-")},
        decimal=decimal,
        repeated=frozenset(name for name, count in Counter(header.cells).items() if count > 1),
    )


def _read_text(path: str | Path | TextIO, encoding: str) -> tuple[str, str | None, str]:
    """Return how the file is called, a name for the experiment, and its text."""
    if hasattr(path, "read"):
        text = path.read()
        if not isinstance(text, str):
            raise DataError("The file is open in binary mode; open it as text, or give its name.")
        return str(getattr(path, "name", TEXT)), None, text
    if not isinstance(path, str | PathLike):
        raise DataError(f"path is {path!r}; give the name of a file, or an open text file.")
    file = Path(path)
    try:
        text = file.read_text("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except FileNotFoundError:
        raise DataError(f"There is no file {str(file)!r} (looked in {file.absolute().parent}).") from None
    except IsADirectoryError:
        raise DataError(f"{str(file)!r} is a folder; give the name of a file.") from None
    except OSError as error:
        raise DataError(f"{str(file)!r} cannot be read: {error.strerror or error}.") from None
    except UnicodeError as error:
        raise _undecodable(file, encoding, error) from None
    except LookupError:
        raise DataError(
            f"encoding is {encoding!r}, which is not known; give one such as 'utf-8' or 'latin-1'."
        ) from None
    except ValueError as error:  # a name with a zero byte
        raise DataError(f"{str(file)!r} cannot be a file: {error}.") from None
    return file.name, file.stem.replace("@", "_") or None, text


def _undecodable(file: Path, encoding: str, error: UnicodeError) -> DataError:
    """Return the refusal of bytes that are no text of an encoding, with the one that they look like."""
    raw = file.read_bytes()
    if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        likely, why = "utf-16", "it begins with the mark of UTF-16"
    elif isinstance(error, UnicodeDecodeError):
        line = raw[: error.start].count(b"\n") + 1
        likely, why = "latin-1", f"line {line} holds the byte {error.object[error.start]:#04x}"
    else:
        likely, why = "utf-8", str(error)
    return DataError(
        f"{file.name} is not {encoding} text: {why}. Name its encoding, such as encoding='{likely}' "
        f"(--encoding {likely})."
    )


def _begin(source: str) -> str:
    """Return the source at the beginning of a sentence."""
    return TEXT.capitalize() if source == TEXT else source


def _split(text: str, source: str, separator: str | None, decimal: str, comment: str) -> list[TextLine]:
    header = next((t for t in text.splitlines() if t.strip() and not _is_comment(t, comment)), None)
    if header is None:
        raise DataError(f"{_begin(source)} is empty; the first line must name the columns.")
    reader = csv.reader(io.StringIO(text), delimiter=_separator(header, separator, decimal), skipinitialspace=True)
    lines = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped) and not _is_comment(cells[0], comment):
                lines.append(TextLine(reader.line_num, stripped))
    except csv.Error as error:
        raise DataError(f"Line {reader.line_num} of {source} cannot be split into cells: {error}.") from None
    return lines


def _is_comment(text: str, comment: str) -> bool:
    return bool(comment) and text.lstrip().startswith(comment)


def _separator(header: str, separator: str | None, decimal: str) -> str:
    if separator is None:
        return next((sign for sign in SEPARATORS if sign in header), ",")
    if len(separator) != 1:
        raise DataError(f"separator is {separator!r}; give one character: ',', ';' or a tab, '\\t'.")
    if separator == decimal:
        raise DataError(f"separator and decimal are both {decimal!r}; cells could not be separated.")
    return separator


def _has_units(body: list[TextLine], decimal: str) -> bool:
    """Return whether units stand below the header; a single column is checked twice, in case of a wrong separator."""
    is_alone = len(body[0].cells) == 1 and (len(body) == 1 or _looks_like_units(body[1].cells, decimal))
    return _looks_like_units(body[0].cells, decimal) and not is_alone


def _looks_like_units(cells: list[str], decimal: str) -> bool:
    """Text, and neither a number nor a date among it; empty cells and dashes are units of pure numbers."""
    telling = [cell for cell in cells if cell.lower() not in MISSING_TEXTS]
    return bool(telling) and not any(
        is_number(cell, decimal) or is_marked(cell) or DATE.match(cell) for cell in telling
    )


def _refuse_title(header: TextLine, body: list[TextLine], source: str, comment: str) -> None:
    """A line above the header, such as the name of a plant: one cell of text where the next line names columns."""
    named = [cell for cell in header.cells if cell]
    if len(named) == 1 and body and sum(map(bool, body[0].cells)) > 1:
        sign = comment or "#"
        raise DataError(
            f"Line {header.number} of {source} holds {named[0]!r} alone, and line {body[0].number} has "
            f"{len(body[0].cells)} cells: the first line must name the columns. Delete what is above the header, or "
            f"begin such lines with {sign!r}."
        )


def _check_width(header: TextLine, body: list[TextLine], source: str) -> None:
    width = len(header.cells)
    for line in body:
        if len(line.cells) != width:
            raise DataError(
                f"Line {line.number} of {source} has {len(line.cells)} cells, the header has {width}. Check for a "
                f"missing cell or a separator inside a value (put such a value in quotes; decimal=',' for 3,14)."
            )
