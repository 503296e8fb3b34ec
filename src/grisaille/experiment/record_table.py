"""A table of named columns, from a file or a frame, whose cells know where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import MISSING_TEXTS, is_marked, limit_of, with_marks, without_marks
from grisaille.experiment.rows import RowNames
from grisaille.experiment.signal_checks import read_numbers
from grisaille.experiment.times.clock import is_calendar, localize
from grisaille.experiment.times.date_texts import as_calendar, day_comes_first, refuse_disguised_dates
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

DATE = re.compile(
    r"\d{4}-\d{2}|\d{4}(?P<a>[/.])\d{1,2}(?P=a)\d{1,2}(?!\d)|\d{1,2}(?P<b>[./-])\d{1,2}(?P=b)(\d{4}|\d{2})(?!\d)"
)
"""How a date begins: 2025-03-26 as ISO 8601 has it, 26.03.2025 or 26/03/2025."""
CLOCK = re.compile(r"\d{1,2}:\d{2}")
THOUSANDS = re.compile(
    r"[+-]?[1-9]\d{0,2}([.,'’\u00a0\u2009\u202f ]\d{2,3})*([.,'’\u00a0\u2009\u202f ]\d{3})(?:[.,]\d*)?"
)
FORTRAN = re.compile(r"[+-]?[\d.,]+[dD][+-]?\d+")
WITH_UNIT = re.compile(r"([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*(%|[^\W\d_].*|°.*)")


@dataclass(frozen=True)
class RecordTable:
    """Columns of equal length; cells are text when ``decimal`` is given."""

    columns: Mapping[str, Any]
    rows: RowNames
    source: str
    label: str | None = None
    """A name for the experiment."""
    units: Mapping[str, str] = field(default_factory=dict)
    decimal: str | None = None
    """The decimal sign of text cells; None when cells are values."""
    repeated: frozenset[str] = frozenset()
    """Names that head several columns."""

    @property
    def length(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def column(self, name: str, role: str) -> Any:
        """Return the cells of a column."""
        if not isinstance(name, str):
            raise DataError(f"{role} is {name!r}; give the name of a column as text.")
        if name in self.repeated:
            raise DataError(f"{self.source} has several columns '{name}' ({role}); rename all but one.")
        if name not in self.columns:
            known = [str(column) for column in self.columns if str(column)]
            hint = suggestion(str(name), known)
            if len(known) == 1 and self.decimal is not None:
                hint = f"Only one column was found, '{known[0]}': say what separates columns, as in separator=';'."
            raise DataError(f"{self.source} has no column '{name}' ({role}). {hint}")
        return self.columns[name]

    def numbers(self, name: Any, role: str) -> np.ndarray:
        """Return a column as floats, with NaN for missing cells."""
        cells = self.column(name, role)
        if self.decimal is None:
            return read_numbers(cells, f"column '{name}' ({role})", self.rows)
        texts = ["nan" if cell.lower() in MISSING_TEXTS else cell for cell in cells]
        if self.decimal == ",":
            texts = [text if "." in text else text.replace(",", ".") for text in texts]
        try:
            if any("_" in cell for cell in cells) or (self.decimal == "," and any("." in cell for cell in cells)):
                raise ValueError
            return np.array(texts, dtype=float)
        except ValueError:
            raise self._wrong_cell(name, role, cells) from None

    def measurements(self, name: str, role: str) -> np.ndarray:
        """Return a column as floats, with texts such as ``<0.1`` for cells that are limits."""
        cells = self.column(name, role)
        if self.decimal is None:
            plain, marks = without_marks(cells)
        else:
            marked = [is_marked(cell) for cell in cells]
            plain = [limit_of(c)[0] if m else c for c, m in zip(cells, marked, strict=True)]
            marks = np.array([limit_of(c)[1] if m else 0 for c, m in zip(cells, marked, strict=True)])
        if marks is None or not marks.any():
            return self.numbers(name, role)
        return with_marks(replace(self, columns={name: plain}, repeated=frozenset()).numbers(name, role), marks)

    def _wrong_cell(self, name: str, role: str, cells: Sequence[str]) -> DataError:
        bad = [k for k, cell in enumerate(cells) if not is_number(cell, self.decimal or ".")]
        more = f" ({len(bad)} such cells)" if len(bad) > 1 else ""
        cell = cells[bad[0]]
        hint = _hint_on(cell, self.decimal or ".", role)
        return DataError(
            f"Column '{name}' ({role}) holds {cell!r} in {self.rows.at(bad[0])}, which is not a number{more}. {hint}"
        )

    def day_comes_first(self, name: str, given: bool | None) -> bool | None:
        """Return whether the day stands before the month in the dates of a column, as all of its rows tell."""
        cells = self.column(name, "time=")
        if given is None and isinstance(cells, list) and _begins_with_date(cells):
            return day_comes_first(cells, f"Times (column '{name}')", self.rows)
        return given

    def times(self, name: Any, zone: str | None, dayfirst: bool | None = None, has_unit: bool = True) -> Any:
        """Return the column of times: floats, durations or a ``DatetimeIndex``."""
        cells = self.column(name, "time=")
        what = f"Times (column '{name}')"
        is_dates = is_calendar(cells) if self.decimal is None else _begins_with_date(cells)
        if is_dates:
            index = as_calendar(cells, what, self.rows, dayfirst)
            return index if zone is None else localize(index, zone, what, self.rows)
        for option, value in (("zone", zone), ("dayfirst", dayfirst)):
            if value is not None:
                raise DataError(f"{option}={value!r} is given, but column '{name}' holds no dates.")
        if getattr(getattr(cells, "dtype", None), "kind", "") == "m":
            return cells
        values = self.numbers(name, "time=")
        refuse_disguised_dates(values, str(name), has_unit)
        return values

    def constant(self, name: str, role: str) -> float:
        """Return the one value of a column."""
        values = self.numbers(name, role)
        other = np.flatnonzero(~(values == values[0]))
        if other.size:
            k = int(other[0])
            raise DataError(
                f"Column '{name}' ({role}) is not constant: {values[0]:g} in {self.rows.at(0)}, {values[k]:g} in "
                f"{self.rows.at(k)}. Use it as an input, or separate the runs with by=."
            )
        return float(values[0])

    def runs(self, by: str) -> dict[str, RecordTable]:
        """Return the table cut into runs, by the values of one column, in order of appearance."""
        labels = [_label(cell) for cell in self.column(by, "by=")]
        empty = [k for k, label in enumerate(labels) if label.lower() in MISSING_TEXTS]
        if empty:
            raise DataError(f"Column '{by}' (by=) is empty in {self.rows.listed(empty)}; every row needs its run.")
        names = np.array(labels)
        return {str(name): self.taken(np.flatnonzero(names == name)) for name in dict.fromkeys(labels)}

    def taken(self, positions: np.ndarray) -> RecordTable:
        """Some of the rows."""
        columns = {name: _chosen(cells, positions) for name, cells in self.columns.items()}
        return replace(self, columns=columns, rows=self.rows.take(positions))


def _hint_on(cell: str, decimal: str, role: str) -> str:
    """Return what to do about a cell that is no number."""
    if is_marked(cell):
        return "Only outputs have samples that are known by a limit alone: an input must be known, and so must times."
    if "_" in cell and is_number(cell.replace("_", ""), decimal):
        return "Drop the underscores, which separate thousands in programs, not in tables."
    if DATE.match(cell):
        return "It is a date: name its column by time=."
    if CLOCK.match(cell):
        return "A time of day needs its date, as in 2025-03-26 12:30; or give numbers of one unit."
    if THOUSANDS.fullmatch(cell) and not (decimal == "," and is_number(cell, ".")):
        return "Drop separators of thousands; if the sign is a decimal one, say so by decimal=','."
    if is_number(cell, ",") and "," in cell:
        return "For numbers with a decimal comma, add decimal=','."
    if decimal == "," and is_number(cell, "."):
        return "With decimal=',' a point has no meaning; drop separators of thousands, or use decimal='.'."
    if role == "time=" and re.search(r"\d", cell):
        return "Give times as numbers of one unit, or as dates: 2025-03-26 12:30, or 26.03.2025 12:30."
    if FORTRAN.fullmatch(cell):
        return "Write exponents with an e, as in 1.5e3."
    if "\u2212" in cell or "\u2013" in cell:
        return "Write the sign of negative numbers as '-': this is another character."
    found = WITH_UNIT.fullmatch(cell)
    if found is not None:
        return f"Write numbers alone; the unit belongs into the header, as in 'P [{found[2]}]', or into a row below it."
    return "Leave the cell empty if it was not measured, or start the line with the comment sign."


def is_number(cell: str, decimal: str) -> bool:
    """Return whether a text cell is a number or missing."""
    if cell.lower() in MISSING_TEXTS:
        return True
    if "_" in cell or (decimal == "," and "." in cell):
        return False
    try:
        float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return False
    return True


def _begins_with_date(cells: Sequence[str]) -> bool:
    return bool(next((DATE.match(cell) for cell in cells if cell.lower() not in MISSING_TEXTS), None))


def _chosen(cells: Any, positions: np.ndarray) -> Any:
    return [cells[k] for k in positions] if isinstance(cells, list) else cells[positions]


def _label(cell: object) -> str:
    if cell is None or cell != cell:
        return ""
    return f"{cell:g}" if isinstance(cell, float) else str(cell).strip()
