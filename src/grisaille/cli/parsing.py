"""Parses command-line arguments: ``NAME=VALUE``, ``FIRST:LAST:STEP``, models and signals."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError

if TYPE_CHECKING:
    import numpy as np


def model_of(target: str) -> Any:
    """The model of ``FILE.py:Class``, of ``FILE.bmo`` or of a problem folder."""
    path = Path(target)
    if path.is_dir() or path.name == "problem.toml":
        from grisaille.problem.linting import folder_model

        return folder_model(path)
    from grisaille.loading import load_model

    return load_model(target)


def times_of(text: str, option: str = "--times") -> np.ndarray:
    """``FIRST:LAST:STEP`` as an array; the last instant is included when a whole number of steps leads to it."""
    import numpy as np

    try:
        first, last, step = (float(part) for part in text.split(":"))
    except ValueError:
        raise DataError(f"{option} {text}: three numbers are needed, FIRST:LAST:STEP, for example 0:10:0.1.") from None
    if not (np.isfinite([first, last, step]).all() and step > 0 and last > first):
        raise DataError(f"{option} {text}: LAST must lie after FIRST and STEP must be positive.")
    steps = (last - first) / step
    whole = round(steps)
    return np.linspace(first, last, whole + 1) if abs(steps - whole) < 1e-9 * whole else np.arange(first, last, step)


def assignments(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """``NAME=VALUE``, cut at the first sign."""
    for text in texts:
        name, sign, value = text.partition("=")
        if not (sign and name.strip() and value.strip()):
            raise DataError(f"{option} {text}: write NAME=VALUE.")
    return [(name.strip(), value.strip()) for name, _, value in (text.partition("=") for text in texts)]


def numbers(option: str, texts: Sequence[str]) -> dict[str, float]:
    """``NAME=NUMBER`` by name."""
    return {name: _number(f"{option} {name}={value}", value) for name, value in assignments(option, texts)}


def values(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` with values as TOML writes them; a bare word is a text."""
    return {name: _value(value) for name, value in assignments(option, texts)}


def number_or_list(option: str, name: str, text: str) -> Any:
    """A whole number, a number, or several of them between commas."""
    if "," in text:
        return tuple(number_or_list(option, name, part.strip()) for part in text.split(",") if part.strip())
    number = _number(f"{option} {name}={text}", text)
    return int(number) if number.is_integer() and not set(text) & set(".eE") else number


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{what}: {text!r} is not a number.") from None


def signal_of(name: str, text: str, reading: Mapping[str, Any]) -> Any:
    """A number, or ``(t, values)`` from a CSV file: the named column, the one called ``name``, or the only one.

    reading : decimal, separator, encoding, as they were given
    """
    path, _, column = text.partition(":") if ".csv:" in text else (text, "", "")
    if not path.endswith(".csv"):
        return _number(f"--input {name}={text}", text)
    from grisaille.experiment.decimals import table_with_decimal

    table = table_with_decimal(Path(path), **{k: v for k, v in reading.items() if k != "dayfirst"})
    time, *others = table.columns
    column = column or (name if name in others else others[0] if len(others) == 1 else "")
    if column not in others:
        wanted = f"no column {column!r}" if column else f"several columns and none is called {name!r}"
        raise DataError(f"--input {name}={text}: {path} has {wanted}. It has: {', '.join(others)}.")
    times = table.times(time, None)
    if getattr(times, "dtype", None) is None or times.dtype.kind != "f":
        raise DataError(f"--input {name}={text}: {time!r} holds dates, but --times are numbers. Give numbers.")
    return times, table.numbers(column, f"--input {name}")


def check_ending(option: str, path: Path | None, endings: Sequence[str]) -> None:
    """Refuses a file name whose ending says nothing."""
    if path is not None and path.suffix not in endings:
        raise DataError(f"{option} {path}: files end in {' or '.join(endings)} here.")
