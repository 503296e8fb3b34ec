"""Checks of values, times and names; each refusal says what, where, by how much and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.rows import PLAIN_ROWS, RowNames
from grisaille.experiment.sampled_signals import HOLDS, SampledSignal, Signal
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    pass

MIN_REGULAR_SAMPLES = 4
"""From so many equally spaced samples on, a held input counts as logged, so that its record has an end."""
SENTENCE_STARTS = frozenset("the times input output start constant weight every unit".split())
"""Words that may begin a sentence; names of arguments are left as they are written."""


@contextmanager
def naming_experiment(name: str | None) -> Iterator[None]:
    """Put the experiment's name before messages of errors raised inside."""
    try:
        yield
    except DataError as error:
        text = str(error)
        if name:
            raise DataError(f"Experiment '{name}': {text}") from None
        is_word = text.split(" ")[0] in SENTENCE_STARTS
        raise DataError(text[0].upper() + text[1:] if is_word else text) from None


def read_numbers(values: ArrayLike, what: str, rows: RowNames = PLAIN_ROWS) -> np.ndarray:
    """Return a one-dimensional array of floats; None and NA become NaN, anything else that is no number is refused."""
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(values.astype(float), np.nan)
    array = as_array(values)
    if array.ndim != 1:
        raise DataError(
            f"{what} has {array.ndim} dimensions, {array.shape}; a signal has one value per time. Give columns of "
            f"a matrix one by one, as 'y[0]', 'y[1]', … for a vector of the model."
        )
    if array.dtype.kind in "biuf":
        return array.astype(float)
    return np.array([_number(cell, what, rows, k) for k, cell in enumerate(array.tolist())], dtype=float)


def as_array(values: Any) -> np.ndarray:
    """Return any values as an array; rows of different lengths become objects."""
    try:
        return np.asarray(values)
    except ValueError:
        array = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            array[k] = value
        return array


def _number(cell: Any, what: str, rows: RowNames, k: int) -> float:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return np.nan
    hold = "hold" if "times" in what.split(" ")[:2] else "holds"
    if isinstance(cell, str | bytes | complex) or np.iscomplexobj(cell):
        raise DataError(f"{what} {hold} {cell!r} in {rows.at(k)}, which is not a number. {_text_hint(cell)}")
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} {hold} {cell!r} ({type(cell).__name__}) in {rows.at(k)}; give numbers.") from None


def _text_hint(cell: object) -> str:
    if isinstance(cell, str | bytes):
        return "Convert text to numbers first; NaN marks what was not measured."
    return "Give its real and imaginary parts as two signals."


def read_number(value: Any, what: str) -> float:
    """Return one finite number."""
    if isinstance(value, bool | str | complex | np.complexfloating) or as_array(value).ndim != 0:
        raise DataError(f"{what} is {value!r}; give a number.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} is {value!r}; give a number.") from None
    if not np.isfinite(number):
        raise DataError(f"{what} is {number}; give a finite number.")
    return number


def check_times(
    times: np.ndarray, what: str, rows: RowNames, show: Callable[[float], str], otherwise: str = ""
) -> None:
    """Times are known and increase; ``show`` writes a time as the user gave it, ``otherwise`` is another remedy."""
    if times.size == 0:
        raise DataError(f"{what} are empty; give at least one.")
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise DataError(
            f"{what} hold {times[bad[0]]} in {rows.listed(bad.tolist())}; every row needs a time. Drop such rows, or "
            f"fill their times in."
        )
    steps = np.diff(times)
    same, back = np.flatnonzero(steps == 0) + 1, np.flatnonzero(steps < 0) + 1
    if back.size:
        k = int(back[0])
        remedy = otherwise or (
            "Sort the rows by time, or read several runs with by= and the column that tells them apart."
        )
        raise DataError(
            f"{what} go back in {rows.listed(back.tolist())}: {show(times[k])} follows {show(times[k - 1])}. {remedy}"
        )
    if same.size:
        k = int(same[0])
        raise DataError(
            f"{what} repeat in {rows.listed(same.tolist())}: {show(times[k])} stands twice. "
            + (otherwise or "Keep one of the rows; repeated measurements go into experiments of their own.")
        )


def check_input(values: np.ndarray, what: str, rows: RowNames) -> None:
    """Inputs are known at every sample."""
    check_bounded(values, what, rows)
    bad = np.flatnonzero(np.isnan(values))
    if bad.size:
        raise DataError(
            f"{what} is missing (NaN) in {rows.listed(bad.tolist())}, but inputs must be known everywhere. Say what "
            f"is believed there by fill='hold', 'interpolate' or a number, or end the experiment before it."
        )


def check_output(values: np.ndarray, what: str, rows: RowNames) -> None:
    """Outputs are finite where measured, and measured somewhere."""
    check_bounded(values, what, rows)
    if not np.isfinite(values).any():
        raise DataError(f"{what} has no measured value in {len(values)} rows; leave it out of outputs=.")


def check_bounded(values: np.ndarray, what: str, rows: RowNames) -> None:
    bad = np.flatnonzero(np.isinf(values))
    if bad.size:
        raise DataError(
            f"{what} is infinite in {rows.listed(bad.tolist())}. Put NaN where an output was not measured; inputs need "
            f"a finite value."
        )


def check_length(values: np.ndarray, times: np.ndarray, what: str, axis: str) -> None:
    if len(values) != len(times):
        raise DataError(
            f"{what} has {len(values)} values for {len(times)} {axis}. Give one value for each, or its own times as "
            f"(times, values)."
        )


def check_holds(hold: str | Mapping[str, str], inputs: Iterable[str]) -> dict[str, str]:
    """Return how each input continues between samples."""
    names = list(inputs)
    if not isinstance(hold, Mapping):
        if not isinstance(hold, str) or hold not in HOLDS:
            raise DataError(f"hold is {hold!r}; it must be 'zoh', 'foh' or 'spline', or a dict of them by input.")
        return dict.fromkeys(names, hold)
    for name, how in hold.items():
        if name not in names:
            raise DataError(f"hold= names '{name}', which is not among inputs=. {suggestion(str(name), names)}")
        if not isinstance(how, str) or how not in HOLDS:
            raise DataError(f"hold for input '{name}' is {how!r}; it must be 'zoh', 'foh' or 'spline'.")
    return {name: hold.get(name, "zoh") for name in names}


def check_cover(
    inputs: Mapping[str, Signal],
    hold: Mapping[str, str],
    outputs: Mapping[str, SampledSignal],
    t0: float,
    rows_of: Callable[[SampledSignal], RowNames],
    show: Callable[[float], str],
) -> None:
    """Every input is known from the start to the last sample of every output."""
    end = max(float(y.times[-1]) for y in outputs.values())
    slack = 1e-9 * max(end - t0, 1e-300)
    for name, signal in inputs.items():
        if not isinstance(signal, SampledSignal):
            continue
        known = f"input '{name}' is known from {show(signal.times[0])}"
        if signal.times[0] > t0 + slack:
            raise DataError(
                f"{known} on, but the experiment starts at {show(t0)}: extend the input to the start, or set t0= and "
                f"drop the outputs before it."
            )
        last = _known_until(signal, hold[name])
        for output, y in outputs.items():
            beyond = np.flatnonzero(y.times > last + slack)
            if beyond.size:
                raise DataError(
                    f"output '{output}' is sampled at {show(y.times[beyond[0]])} ({rows_of(y).at(int(beyond[0]))}; "
                    f"{beyond.size} of {len(y.times)} samples), outside the span of the inputs: {known} to "
                    f"{show(signal.times[-1])}. Extend the input (repeat its last value at the end if it was held "
                    f"there), or cut the output."
                )


def _known_until(signal: SampledSignal, hold: str) -> float:
    """Joined inputs end at the last sample; a held one holds on, but a regular record only for one interval."""
    if len(signal.times) == 1:
        return np.inf
    if hold != "zoh":
        return float(signal.times[-1])
    steps = np.diff(signal.times)
    is_regular = len(signal.times) >= MIN_REGULAR_SAMPLES and steps.max() < 1.01 * steps.min()
    return float(signal.times[-1] + steps.max()) if is_regular else np.inf


def skipped_by(length: float, begin: float, outputs: Mapping[str, SampledSignal], said: object) -> int:
    """Return how many first samples of every output lie within a duration of the beginning."""
    counts = {name: int(np.searchsorted(y.times, begin + (1 - 1e-9) * length)) for name, y in outputs.items()}
    if not length >= 0:
        raise DataError(f"skip is {said!r}; a duration that is left out is zero or more.")
    if len(set(counts.values())) > 1:
        (a, first), (b, other) = sorted(counts.items(), key=lambda item: item[1])[:: len(counts) - 1]
        raise DataError(
            f"skip={said!r} would leave out {first} samples of '{a}' and {other} of '{b}', but it counts samples, the "
            f"same number of each output. Give NaN for samples that are not to be compared, or weights of zero."
        )
    return next(iter(counts.values()))


def check_skip(skip: Any, outputs: Mapping[str, SampledSignal]) -> int:
    if isinstance(skip, bool) or not isinstance(skip, int | np.integer) or skip < 0:
        raise DataError(
            f"skip is {skip!r}; it counts samples: give a whole number, 0 or more, or a duration such as '2h'."
        )
    for name, samples in outputs.items():
        if not np.isfinite(samples.values[skip:]).any():
            raise DataError(
                f"skip = {skip} leaves nothing of output '{name}', which has {len(samples.values)} samples, "
                f"{np.isfinite(samples.values).sum()} of them measured. Skip fewer."
            )
    return int(skip)


def check_label(name: object) -> str | None:
    """Return the name of an experiment: text without ``@``, which separates it from the names of parameters."""
    if name is None:
        return None
    if not isinstance(name, str) or not name.strip():
        raise DataError(f"The name of an experiment is {name!r}; give a text such as name='A'.")
    if "@" in name:
        raise DataError(
            f"The name of an experiment, '{name}', contains '@', which separates it from parameters as in 'k@A'. "
            f"Choose a name without it."
        )
    return name


def check_text(value: object, what: str, example: str) -> None:
    if not isinstance(value, str):
        raise DataError(f"{what} is {_brief(value)}; give a text such as {example}.")


def check_mapping(value: object, what: str, example: str) -> dict[str, Any]:
    """Return a dict with texts as keys."""
    if not isinstance(value, Mapping):
        raise DataError(f"{what}= is {_brief(value)}; give a dict by name, such as {example}.")
    for name in value:
        if not isinstance(name, str) or not name:
            raise DataError(f"{what}= has the key {name!r}; keys are the names in the model, as text.")
    return dict(value)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"
