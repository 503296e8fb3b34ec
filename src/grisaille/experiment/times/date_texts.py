"""Dates as people write them: ISO 8601, 26.03.2025 with the day first, 03/26/2025 whose order the column decides.

Between points the day comes first, because nobody writes points otherwise. Between slashes or dashes, 01/02/2025 is two
dates: a field above 12 somewhere in the column decides for all of it, or ``dayfirst`` does, and else it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from grisaille.errors import DataError
from grisaille.experiment.rows import RowNames
from grisaille.experiment.signal_checks import as_array

WRITTEN_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?!\d)(.*)", re.DOTALL)
CLOCK = re.compile(
    r"(?:T|,?\s+)(\d{1,2}):(\d{2})(:\d{2}(?:\.\d+)?)?\s*([AaPp]\.?[Mm]\.?)?\s*(Z|z|[+-]\d{2}:?\d{2})?\s*"
)
LAST_MONTH = 12
SERIAL_DAYS = (25569.0, 73050.0)
"""1970 and 2100 as days since 1899-12-30, which is how spreadsheets count."""
DATENUM_DAYS = (719529.0, 767010.0)
"""The same as days since the year 0, which is how MATLAB counts."""
MIN_DATE_ROWS = 3
"""Rows from which on whole numbers such as 20250326 are not dates by chance."""


def as_calendar(raw: Any, what: str, rows: RowNames, dayfirst: bool | None = None) -> pd.DatetimeIndex:
    """Return a ``DatetimeIndex``; texts are ISO 8601, or written as above."""
    values = pd.Series(raw if hasattr(raw, "dtype") else as_array(raw).astype(object)).reset_index(drop=True)
    if pd.api.types.is_datetime64_any_dtype(values):
        return pd.DatetimeIndex(values)
    order = day_comes_first(values.tolist(), what, rows, dayfirst)
    written, values = values, values.map(lambda value: _with_year_first(value, order))
    has_zone = values.map(_has_zone)
    dates = values.where(values.map(may_be_date))
    parsed = pd.to_datetime(dates, format="ISO8601", errors="coerce", utc=bool(has_zone.any()))
    bad = np.flatnonzero(parsed.isna() & values.notna() & (values.astype(str) != ""))
    if bad.size:
        raise _no_date(written, bad, what, rows, order)
    if has_zone.any() and not has_zone[values.notna()].all():
        k = int(np.flatnonzero(~has_zone)[0])
        raise DataError(f"{what} hold {written[k]!r} in {rows.at(k)} without a time zone, others have one. Add it.")
    return pd.DatetimeIndex(parsed)


def _no_date(written: Any, bad: np.ndarray, what: str, rows: RowNames, order: bool | None) -> DataError:
    bad = np.array([k for k in bad if not is_numeric(written[k])] or bad)
    found = _parts(written[bad[0]])
    said = "which is neither a number nor a date as 2024-01-31 13:45:00 (ISO 8601) or 31.01.2024 13:45"
    if found is not None and found[2] is None:
        said = "a date without a year of four digits: write 2024-01-31 or 31.01.2024"
    elif found is not None and found[1] != "." and order is not None:
        said = f"which is no date with the {'day' if order else 'month'} first, as other rows or dayfirst= have it"
    return DataError(
        f"{what} hold {written[bad[0]]!r} in {rows.listed(bad.tolist())}, {said}. Convert such columns with "
        f"pandas.to_datetime(…, format=…) and use from_frame."
    )


def day_comes_first(values: Sequence[str], what: str, rows: RowNames, dayfirst: bool | None = None) -> bool | None:
    """Return whether 01/02/2025 is the first of February; None where no date leaves its order open."""
    if dayfirst is not None:
        return dayfirst
    found = [(k, parts) for k, parts in enumerate(map(_parts, values)) if parts is not None and parts[2] is not None]
    fields = [(k, parts[0], parts[1]) for k, parts in found if parts[0] is not None]
    open_ones = [k for k, _, sign in fields if sign != "."]
    points = next((k for k, _, sign in fields if sign == "."), None)
    day = next((k for k, pair, sign in fields if sign != "." and pair[0] > LAST_MONTH), None)
    month = next((k for k, pair, sign in fields if sign != "." and pair[1] > LAST_MONTH), None)
    day = points if day is None and month is not None else day
    if day is not None and month is not None:
        raise DataError(
            f"{what} hold {values[day]!r} in {rows.at(day)}, where the day comes first, and {values[month]!r} in "
            f"{rows.at(month)}, where the month does. Write all dates as 2024-01-31."
        )
    if not open_ones:
        return None
    if day is None and month is None:
        k = open_ones[0]
        raise DataError(
            f"{what} hold {values[k]!r} in {rows.at(k)}, and no row says whether the day or the month comes first. "
            f"Say dayfirst=True or dayfirst=False (--dayfirst, --monthfirst), or write dates as 2024-01-31."
        )
    return day is not None


def _parts(value: str) -> tuple[tuple[int, int] | None, str, str | None] | None:
    """Return the two fields whose order is open (None: the year is first), the sign between them, the year of four
    digits.
    """
    found = WRITTEN_DATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    first, sign, second, third, _ = found.groups()
    if len(first) == 4:
        return None, sign, first
    if len(first) > 2:
        return None
    return (int(first), int(second)), sign, third if len(third) == 4 else None


def _with_year_first(value: str, dayfirst: bool | None) -> str:
    """Return a date as ISO 8601 writes it; as it stands where it is none."""
    parts = _parts(value)
    if parts is None or parts[2] is None:
        return value
    found = WRITTEN_DATE.fullmatch(value.strip())
    clock = _with_two_digits(found[5]) if found else None
    if found is None or clock is None:
        return value
    if parts[0] is None:
        return f"{found[1]}-{int(found[3]):02d}-{int(found[4]):02d}{clock}" if len(found[4]) < 3 else value
    is_day_first = dayfirst if dayfirst is not None else parts[1] == "."
    day, month = parts[0] if is_day_first else parts[0][::-1]
    return f"{parts[2]}-{month:02d}-{day:02d}{clock}"


def _with_two_digits(text: str) -> str | None:
    """Return the time of day as ISO 8601 writes it, 09:05 and 21:05 for 9:05 PM; None where it is none."""
    if not text.strip():
        return ""
    found = CLOCK.fullmatch(text)
    if found is None:
        return text
    hour, half = int(found[1]), (found[4] or "").lower()[:1]
    if half and not 1 <= hour <= LAST_MONTH:
        return None
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    return f" {hour:02d}:{found[2]}{found[3] or ''}{found[5] or ''}"


def may_be_date(value: object) -> bool:
    return isinstance(value, str) or hasattr(value, "year")


def is_numeric(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _has_zone(value: object) -> bool:
    if isinstance(value, str):
        clock = value[10:]
        return clock.endswith(("Z", "z")) or "+" in clock or "-" in clock
    return getattr(value, "tzinfo", None) is not None


def refuse_disguised_dates(values: np.ndarray, header: str, has_unit: bool) -> None:
    """Refuse numbers that count days or milliseconds of a calendar, or are written like 20250326."""
    known = values[np.isfinite(values)]
    if not known.size:
        return
    said = ""
    is_called_so = re.search(r"date|datum|fecha|timestamp|zeitstempel", header.lower()) is not None
    if len(known) >= MIN_DATE_ROWS and _are_digits_of_dates(known):
        said = f"{known[0]:.0f} looks like a date, {f'{known[0]:.0f}'[:4]}-{f'{known[0]:.0f}'[4:6]}-…: write dates so"
    elif not has_unit and known.min() > 1e11:
        said = f"{known[0]:.0f} looks like milliseconds since 1970: give unit='ms' if it is, or write dates"
    elif not has_unit and (is_called_so or _are_clock_times(known)):
        for (first, last), whose in ((SERIAL_DAYS, "a spreadsheet's"), (DATENUM_DAYS, "MATLAB's")):
            if first <= known.min() and known.max() <= last:
                said = f"{known[0]:.10g} looks like {whose} count of days: give unit='d' if it is, or write dates"
    if said:
        raise DataError(
            f"Column '{header}' (time=) holds numbers, and {said}, as 2025-03-26 13:45. Nothing is guessed. (If they "
            f"are plain numbers, subtract the first from all.)"
        )


def _are_clock_times(values: np.ndarray) -> bool:
    """Return whether all are whole seconds or, in few digits, minutes of days, and not all are short:
    45742.0104166667.
    """
    minutes, seconds, short = (
        float(np.abs(v - np.round(v)).max()) for v in (1440 * values, 86400 * values, 1e3 * values)
    )
    return len(values) >= MIN_DATE_ROWS and (seconds < 0.01 or minutes < 0.01) and short > 0.01


def _are_digits_of_dates(values: np.ndarray) -> bool:
    """Return whether all are whole numbers such as 20250326, 202503261345 or 20250326134500."""
    if not (np.all(values == np.floor(values)) and values.min() >= 19000101):
        return False
    texts = [f"{v:.0f}" for v in values]
    form = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}.get(len(texts[0]))
    if form is None or any(len(t) != len(texts[0]) for t in texts):
        return False
    found = pd.to_datetime(pd.Series(texts), format=form, errors="coerce")
    return bool(found.notna().all() and found.dt.year.between(1900, 2100).all())
