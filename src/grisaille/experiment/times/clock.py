"""Time as numbers of one unit: calendars are counted from an origin, plain numbers stay as they are.

t = (instant − origin) / unit. Instants with a time zone are compared in UTC, so a change to summer time is no jump;
instants without one are taken as they stand.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from grisaille.errors import DataError
from grisaille.experiment.rows import PLAIN_ROWS, RowNames
from grisaille.experiment.signal_checks import as_array, read_number, read_numbers
from grisaille.experiment.times.date_texts import as_calendar, is_numeric, may_be_date

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MAX_SECONDS_FROM_ORIGIN = 9e12
"""Seconds between an origin and a date, as far as calendars go."""
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
COMMON_ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "Europe/Athens",
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Santiago",
    "America/Sao_Paulo",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Asia/Jerusalem",
    "Asia/Tehran",
)
"""Zones by which a repeated hour is recognised; one for each rule that is much used."""


class UnstatedUnit(str):
    """A unit that stands where nobody names one."""


UNSTATED_UNIT = UnstatedUnit("s")


@dataclass(frozen=True)
class Clock:
    """The unit of time, and the instant at which it is zero (None: times are plain numbers)."""

    unit: str = "s"
    origin: Any = None
    is_said: bool = field(default=False, compare=False, repr=False)
    """Whether somebody named the unit: seconds are what plain numbers have where nobody does."""

    def read(self, raw: ArrayLike, what: str, rows: RowNames = PLAIN_ROWS) -> np.ndarray:
        """Return times as floats; plain numbers are taken to be in the clock's unit, from its origin on."""
        if is_duration(raw):
            return np.asarray(pd.Index(raw).total_seconds()) / self.seconds
        if not is_calendar(raw):
            return read_numbers(raw, what, rows)
        if self.origin is None:
            raise DataError(f"{what} is a date, but the times of this experiment are numbers. Give a number.")
        return self._elapsed(as_calendar(raw, what, rows), what)

    def _elapsed(self, index: pd.DatetimeIndex, what: str) -> np.ndarray:
        if (index.tz is None) != (self.origin.tz is None):
            has, others = ("with a", "none") if index.tz is not None else ("without a", "one")
            raise DataError(
                f"{what}: given {has} time zone, but other times of this experiment have {others}. "
                f"Use .tz_localize('Europe/Berlin') or .tz_convert(None) on one of them."
            )
        return np.asarray((index - self.origin).total_seconds()) / self.seconds

    @property
    def seconds(self) -> float:
        """Return the length of the unit; only needed where dates or durations are converted."""
        if self.unit not in UNITS:
            raise DataError(
                f"unit of time is {self.unit!r}; for dates it must be one of {', '.join(map(repr, UNITS))}."
            )
        return UNITS[self.unit]

    def instant(self, value: object, what: str) -> float:
        """Return one time: a number, a date, or a date as ISO text; without a time zone it is taken in that of the
        data.

        A duration, ``"2 days"``, counts from time zero, as a number does.
        """
        if is_length(value):
            return self.duration(value, what)
        if isinstance(value, str) or hasattr(value, "year") or isinstance(value, np.datetime64):
            zone = None if self.origin is None else self.origin.tz
            dates = pd.Index([value]) if self.origin is None else as_calendar(pd.Index([value]), what, PLAIN_ROWS)
            if zone is not None and dates.tz is None:
                dates = localize(dates, zone, what, PLAIN_ROWS)
            return float(self.read(dates, what)[0])
        return read_number(value, what)

    def duration(self, value: object, what: str) -> float:
        """Return a length of time in the clock's unit: a number, a ``Timedelta``, or text such as ``"1h"``, ``"1
        day"``.
        """
        if not (isinstance(value, str) or is_length(value)):
            return read_number(value, what)
        try:
            length = pd.Timedelta(value)
        except (ValueError, OverflowError):
            length = pd.NaT
        if pd.isna(length):
            raise DataError(f"{what} is {value!r}; give a number, or a duration such as '15min', '1h' or '1 day'.")
        return float(length.total_seconds()) / self.seconds

    def changed_back(self, times: np.ndarray) -> str:
        """Return the remedy for local times that repeat or go back by an hour or less: the clock was put back."""
        if self.origin is None or self.origin.tz is not None:
            return ""
        steps = np.diff(times) * self.seconds
        at = np.flatnonzero(steps <= 0)
        if not at.size or steps[at].min() < -3600.0:
            return ""
        dates = self.dates(times[at + 1])
        zone = next((z for z in COMMON_ZONES if _happens_twice(dates, z)), None)
        if zone is None and not _is_one_hour_of_a_night(dates):
            return ""
        sign = f"so it was in {zone}" if zone else "in Europe, for example"
        zone = zone or "Europe/Berlin"
        return (
            f"That is what local times do at the end of summer time ({sign}): every row is a measurement of its own, "
            f"so neither sort nor drop them, but say the zone, from_csv(…, zone='{zone}') or --zone {zone}, or "
            f"times.tz_localize('{zone}', ambiguous='infer')."
        )

    def show(self, t: float) -> str:
        """Return a time for messages: ``t = 3.5`` or the date."""
        if self.origin is None or not np.isfinite(t):
            return f"t = {t:.9g}"
        try:
            return str(self.stamp(t))
        except DataError:
            return f"t = {t:.9g}"

    def brief(self, t: float) -> str:
        """Return a time for tables: a number, or the date without the zone, and without seconds where there are
        none.
        """
        if self.origin is None or not np.isfinite(t):
            return f"{t:g}"
        stamp = self.stamp(t)
        return f"{stamp:%Y-%m-%d %H:%M}" if stamp.floor("min") == stamp else f"{stamp.tz_localize(None)}"

    def stamp(self, t: float) -> pd.Timestamp:
        """Return the date of a time."""
        try:
            return self.origin + pd.Timedelta(seconds=round(float(t) * self.seconds, 6))
        except (ValueError, OverflowError):
            raise DataError(f"t = {t:.9g} {self.unit} is beyond all dates that there are.") from None

    def dates(self, times: np.ndarray) -> pd.DatetimeIndex:
        """Return the ``DatetimeIndex`` of times, in the zone of the data; None where they are plain numbers.

        Rounded to microseconds, so that a tenth of an hour is six minutes. A time that is not finite has no date.
        """
        if self.origin is None:
            return None
        elapsed = np.asarray(times, dtype=float) * self.seconds
        known = np.isfinite(elapsed)
        if np.abs(elapsed[known]).max(initial=0.0) > MAX_SECONDS_FROM_ORIGIN:
            raise DataError(f"Times reach {np.abs(elapsed[known]).max():.3g} s, beyond all dates that there are.")
        counted = np.where(known, np.round(np.where(known, elapsed, 0.0) * 1e6), 0.0).astype("timedelta64[us]")
        found = pd.DatetimeIndex(self.origin.as_unit("us") + pd.TimedeltaIndex(counted))
        return found if known.all() else found.where(known)

    @property
    def zone(self) -> str:
        """Return the name of the time zone, ``"Europe/Berlin"``; empty where there is none."""
        return "" if self.origin is None or self.origin.tz is None else str(self.origin.tz)

    @property
    def label(self) -> str:
        """Return the label of a time axis: ``time [h]``, or ``time, Europe/Berlin`` for dates."""
        if self.origin is None:
            return f"time [{self.unit}]" if self.unit else "time"
        return f"time, {self.zone}" if self.zone else "time"


def make_clock(unit: Any, times: Mapping[str, Any]) -> Clock:
    """Return the clock for all times of an experiment: the first calendar among them gives the origin."""
    if not isinstance(unit, str) or not unit:
        raise DataError(f"unit of time is {unit!r}; give one of {', '.join(map(repr, UNITS))}.")
    dates = [what for what, raw in times.items() if is_calendar(raw)]
    numbers = [what for what in times if what not in dates]
    if dates and numbers:
        raise DataError(f"{dates[0]} are dates, but {numbers[0]} are numbers. Give all of one kind.")
    if not dates:
        return Clock(str(unit), is_said=unit is not UNSTATED_UNIT)
    index = as_calendar(times[dates[0]], dates[0], PLAIN_ROWS)
    return Clock(str(unit), next(iter(index[~index.isna()]), None), unit is not UNSTATED_UNIT)


def is_calendar(raw: Any) -> bool:
    """Dates, or text that must be dates; durations count as numbers."""
    if isinstance(raw, pd.DatetimeIndex):
        return True
    array = raw if hasattr(raw, "dtype") else as_array(raw)
    if pd.api.types.is_datetime64_any_dtype(array):
        return True
    if array.dtype.kind in "biufcm" or not array.size:
        return False
    first = next((cell for cell in np.asarray(array).ravel() if cell is not None), None)
    return may_be_date(first)


def is_length(value: object) -> bool:
    """Return a ``Timedelta``, or text that is one, ``"15min"`` or ``"1 day"``; not a date, and not a number as text."""
    if isinstance(value, pd.Timedelta | np.timedelta64 | datetime.timedelta):
        return True
    if not isinstance(value, str) or is_numeric(value) or not any(c.isalpha() for c in value):
        return False
    try:
        return not pd.isna(pd.Timedelta(value))
    except (ValueError, OverflowError):
        return False


def is_duration(raw: object) -> bool:
    return getattr(getattr(raw, "dtype", None), "kind", "") == "m"


def _happens_twice(dates: pd.DatetimeIndex, zone: str) -> bool:
    """Return whether a zone puts its clock back over each of these local times."""
    try:
        return bool(dates.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").isna().all())
    except (KeyError, ValueError, TypeError):  # a computer without a data base of zones
        return False


def _is_one_hour_of_a_night(dates: pd.DatetimeIndex) -> bool:
    """Return whether local times repeat within one hour, each once, in a night of the months in which clocks are put
    back.
    """
    hours = dates.floor("h")
    nights = len(set(hours)) == len(set(hours.date)) and len(set(dates)) == len(dates)
    return bool(nights and (hours.hour <= 3).all() and hours.month.isin([2, 3, 4, 5, 9, 10, 11]).all())


def localize(index: pd.DatetimeIndex, zone: Any, what: str, rows: RowNames) -> pd.DatetimeIndex:
    """Return local times of a zone as instants; an hour that happens twice is told apart by the order of rows."""
    if index.tz is not None:
        raise DataError(f"{what} already have the time zone {index.tz}; leave zone={zone!r} out.")
    try:
        known = index.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    except (KeyError, ValueError, TypeError):
        raise DataError(
            f"zone is {zone!r}, which is not a known time zone; give one such as 'Europe/Berlin'."
        ) from None
    bad = np.flatnonzero(known.isna() & ~index.isna())
    if not bad.size:
        return known
    try:
        return index.tz_localize(zone, ambiguous="infer", nonexistent="raise")
    except ValueError:
        raise DataError(
            f"{what} hold {index[bad[0]]} in {rows.listed(bad.tolist())}, which does not exist or happens twice in "
            f"{zone} (the clock was changed). Store times in UTC, or with their offset as in 02:30+02:00."
        ) from None
