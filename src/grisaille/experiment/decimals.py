"""Which decimal sign a text file has, where nobody says: one that its cells leave no doubt about, or none.

1,5 and 0,125 have a decimal comma. 1,200 and 950 in a column may be numbers of either kind, and so may 1.200 and 950
where a semicolon stands between columns: such a file is refused until the sign is given.
"""

from __future__ import annotations

import re
from pathlib import Path

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import is_marked, limit_of
from grisaille.experiment.record_table import DATE, RecordTable
from grisaille.experiment.text_files import read_table

COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(\1\d{3})*")
PLAIN = re.compile(r"[+-]?\d{3}")


def table_with_decimal(
    path: Path, decimal: str | None = None, separator: str | None = None, encoding: str = "utf-8"
) -> RecordTable:
    """Return the table with the decimal sign that is given, or that its cells have."""
    table = read_table(path, separator, decimal or ".", "#", encoding, None)
    if decimal is not None:
        return table
    columns = {
        name: [limit_of(c)[0] if is_marked(c) else c for c in cells if not DATE.match(c)]
        for name, cells in table.columns.items()
    }
    comma = [cell for cells in columns.values() for cell in cells if COMMA.fullmatch(cell)]
    if any(not THOUSANDS.fullmatch(cell) for cell in comma):
        return read_table(path, separator, ",", "#", encoding, None)
    doubtful = comma or [
        cell for cells in columns.values() if _may_be_thousands(cells) and ";" in _header(path, encoding)
        for cell in cells if THOUSANDS.fullmatch(cell)
    ]  # fmt: skip
    if doubtful:
        sign = doubtful[0].strip("+-0123456789")[0]
        raise DataError(
            f"{table.source} holds {doubtful[0]!r}, which is {doubtful[0].replace(sign, '.', 1)} or "
            f"{doubtful[0].replace(sign, '')}: no cell tells whether {sign!r} is the decimal sign or separates "
            f"thousands. Say --decimal {sign!r} if it is the decimal sign, or drop it from the cells."
        )
    return table


def _may_be_thousands(cells: list[str]) -> bool:
    """Return whether three digits follow every point of a column, while whole hundreds beside them have none."""
    pointed = [cell for cell in cells if "." in cell]
    return (
        bool(pointed)
        and all(THOUSANDS.fullmatch(cell) for cell in pointed)
        and any(PLAIN.fullmatch(cell) for cell in cells)
    )


def _header(path: Path, encoding: str) -> str:
    with Path(path).open(encoding=encoding) as file:
        return next((line for line in file if line.strip() and not line.lstrip().startswith("#")), "")
