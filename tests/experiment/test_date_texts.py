"""Dates as people write them, and numbers that are dates in disguise."""

from __future__ import annotations

import io
import re

import pytest

from grisaille import DataError, Experiment


def read(times: list[str], **options):
    text = "t,y\n" + "".join(f"{t},{k}\n" for k, t in enumerate(times))
    return Experiment.from_csv(io.StringIO(text), "t", [], ["y"], **{"unit": "h", **options})


@pytest.mark.parametrize(
    ("times", "options", "hours"),
    [
        (["11/02/2025", "12/02/2025", "13/02/2025"], {}, [0, 24, 48]),
        (["01/02/2025", "02/02/2025"], {"dayfirst": True}, [0, 24]),
        (["01/02/2025", "02/02/2025"], {"dayfirst": False}, [0, 744]),
        (["02/11/2025 9:00 AM", "02/12/2025 1:30 PM", "02/13/2025 12:00 AM"], {}, [0, 28.5, 39]),
        (["2025/3/1 9:00", "2025/03/01 10:00"], {}, [0, 1]),
        (["26.03.2025 9:00", "26.03.2025 10:00:00"], {}, [0, 1]),
        (["13-02-2025", "14-02-2025"], {}, [0, 24]),
    ],
)
def test_dates_that_are_read(times: list[str], options: dict[str, bool], hours: list[float]) -> None:
    assert read(times, **options).output_times.tolist() == hours


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (["01/02/2025", "02/02/2025"], "no row says whether the day or the month comes first"),
        (["13/02/2025", "02/14/2025"], "'13/02/2025' in line 2 of the table, where the day comes first"),
        (["13.02.2025", "02/14/2025"], "where the month does"),
        (["01/02/25", "02/02/25"], "without a year of four digits"),
        (["26.03.2025 13:00 PM", "27.03.2025"], "neither a number nor a date"),
        (["20250326", "20250327", "20250328"], "20250326 looks like a date"),
        (["12:30", "12:45"], "A time of day needs its date"),
        (["26-Mar-2025 10:00", "26-Mar-2025 11:00"], "Give times as numbers of one unit, or as dates: 2025-03-26"),
        (["26. März 2025", "27. März 2025"], "or as dates"),
    ],
)
def test_dates_that_are_refused(times: list[str], words: str) -> None:
    with pytest.raises(DataError, match=re.escape(words)):
        read(times)


def test_numbers_that_count_days_or_milliseconds_need_their_unit() -> None:
    text = "date,y\n45742.0,1\n45742.5,2\n"
    with pytest.raises(DataError, match="spreadsheet's count of days"):
        Experiment.from_csv(io.StringIO(text), "date", [], ["y"])
    assert Experiment.from_csv(io.StringIO(text), "date", [], ["y"], unit="d").clock.unit == "d"
    with pytest.raises(DataError, match="milliseconds since 1970"):
        read(["1742947200000", "1742947201000"], unit=None)
    for first, whose in ((45742, "a spreadsheet's"), (739702, "MATLAB's")):
        with pytest.raises(DataError, match=f"{first}.0104.* looks like {whose} count of days: give unit='d'"):
            read([f"{first + k / 96:.11g}" for k in range(1, 5)], unit=None)
    assert read(["45742.01", "45742.02", "45742.03"], unit=None).output_times[2] == 45742.03  # seconds of a long record


def test_the_whole_column_decides_for_every_run() -> None:
    text = "t,run,y\n01/02/2025,a,1\n02/02/2025,a,2\n01/02/2025,b,1\n13/02/2025,b,2\n"
    first, second = Experiment.from_csv(io.StringIO(text), "t", [], ["y"], by="run", unit="d")
    assert first.output_times.tolist() == [0, 1] and second.output_times.tolist() == [0, 12]


HOURLY = ["2024-10-27 00:00", "2024-10-27 01:00", "2024-10-27 02:00", "2024-10-27 02:00", "2024-10-27 03:00"]


def test_an_hour_that_happens_twice_asks_for_the_zone() -> None:
    with pytest.raises(
        DataError, match=r"end of summer time \(so it was in Europe/Berlin\).*zone='Europe/Berlin'"
    ) as e:
        read(HOURLY)
    assert "Keep one of the rows" not in str(e.value)
    assert read(HOURLY, zone="Europe/Berlin").output_times.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(DataError, match="America/New_York"):
        read(["2024-11-03 00:00", "2024-11-03 01:00", "2024-11-03 01:00", "2024-11-03 02:00"])
    with pytest.raises(DataError, match="Keep one of the rows"):
        read(["2024-06-12 12:00", "2024-06-12 12:00", "2024-06-12 13:00"])
