"""Makes the record of an experiment from what users give: numbers, arrays on ``time``, ``(t, values)``, Series.

A Series brings its index as times. One that is indexed by plain row numbers 0, 1, …, or like ``time`` itself, is an
array: its index says nothing about time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from grisaille.errors import DataError
from grisaille.experiment import signal_checks
from grisaille.experiment.censored_cells import Marks, read_marks, without_marks
from grisaille.experiment.experiment_content import ALL_STATES, ExperimentContent, Start
from grisaille.experiment.filling import Fill, fill_gaps, read_fills
from grisaille.experiment.rows import PLAIN_ROWS, RowNames
from grisaille.experiment.sampled_signals import SampledSignal, Signal, protect_samples, read_only
from grisaille.experiment.times.clock import UNSTATED_UNIT, Clock, is_length, make_clock
from grisaille.laws import Law
from grisaille.laws.law_content import refuse_no_prior
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from grisaille.experiment.times.clock import UnstatedUnit


class RawSignal(NamedTuple):
    """A signal as given: its own times (None: those of the experiment) and values (a scalar or an array)."""

    times: Any
    values: Any

    @property
    def is_number(self) -> bool:
        return self.times is None and signal_checks.as_array(self.values).ndim == 0


@dataclass(frozen=True)
class RowAxis:
    """The meaning of rows: times shared by signals without their own, or row numbers of independent samples."""

    times: np.ndarray | None
    clock: Clock
    rows: RowNames
    is_static: bool

    def rows_of(self, samples: SampledSignal) -> RowNames:
        """Return the names of rows, for signals on the shared times."""
        return self.rows if samples.times is self.times else PLAIN_ROWS

    def signal(self, raw: RawSignal, what: str) -> tuple[np.ndarray, np.ndarray, RowNames]:
        """Return times, values and the names of rows of one signal."""
        if raw.times is not None:
            times = self.clock.read(raw.times, f"times of {what}")
            signal_checks.check_times(
                times, f"times of {what}", PLAIN_ROWS, self.clock.show, self.clock.changed_back(times)
            )
            values = signal_checks.read_numbers(raw.values, what)
            signal_checks.check_length(values, times, what, "times of its own")
            return times, values, PLAIN_ROWS
        if self.times is None:
            raise DataError(
                f"{what} is an array without times, while other signals have their own. Give time=, or (times, values)."
            )
        if raw.is_number:
            values = np.full(
                len(self.times), np.nan if raw.values is None else signal_checks.read_number(raw.values, what)
            )
        else:
            values = signal_checks.read_numbers(raw.values, what, self.rows)
        signal_checks.check_length(values, self.times, what, "rows" if self.is_static else "times")
        return self.times, values, self.rows


class RawRecord(NamedTuple):
    """An experiment as users give it: the arguments of ``Experiment``, not yet looked at."""

    time: Any = None
    inputs: Any = MappingProxyType({})
    outputs: Any = MappingProxyType({})
    name: str | None = None
    hold: Any = "zoh"
    constants: Any = MappingProxyType({})
    start: Any = MappingProxyType({})
    t0: Any = None
    weights: Any = None
    skip: Any = 0
    unit: UnstatedUnit | str = UNSTATED_UNIT
    units: Any = MappingProxyType({})
    fill: Any = None
    marks: Any = MappingProxyType({})


def read_experiment(given: RawRecord, clock: Clock | None = None, rows: RowNames = PLAIN_ROWS) -> ExperimentContent:
    """Return the checked record; ``rows`` names the rows of ``time`` in messages."""
    with signal_checks.naming_experiment(signal_checks.check_label(given.name)):
        given_inputs = _raw_signals(given.inputs, "inputs", given.time)
        given_outputs, marked = _without_marks(_raw_signals(given.outputs, "outputs", given.time))
        _check_names(given_inputs, given_outputs)
        axis = _read_axis(given.time, given_inputs, given_outputs, given.unit, clock, rows)
        read_outputs = {n: _read_output(n, raw, axis) for n, raw in given_outputs.items()}
        holds, fills = signal_checks.check_holds(given.hold, given_inputs), read_fills(given.fill, given_inputs)
        read_inputs = {n: _read_input(n, raw, axis, fills[n]) for n, raw in given_inputs.items()}
        begin = _read_t0(given.t0, axis, read_outputs)
        if begin is not None:
            signal_checks.check_cover(read_inputs, holds, read_outputs, begin, axis.rows_of, axis.clock.show)
        return ExperimentContent(
            name=given.name,
            is_static=axis.is_static,
            inputs=MappingProxyType(read_inputs),
            outputs=MappingProxyType(read_outputs),
            hold=MappingProxyType(holds),
            constants=MappingProxyType(_read_constants(given.constants)),
            start=MappingProxyType(_read_starts(given.start, axis.is_static)),
            t0=begin,
            weights=MappingProxyType(_read_weights(given.weights, read_outputs, axis)),
            skip=signal_checks.check_skip(_read_skip(given.skip, axis, begin, read_outputs), read_outputs),
            units=MappingProxyType(_read_units(given.units, {*read_inputs, *read_outputs})),
            clock=axis.clock,
            marks=MappingProxyType(read_marks(given.marks, marked, read_outputs)),
        )


def _raw_signals(signals: Any, what: str, time: Any) -> dict[str, RawSignal]:
    one = what[:-1]
    given = signal_checks.check_mapping(signals, what, f"{{'{one[0]}': values}}")
    return {name: _raw(value, f"{one} '{name}'", time) for name, value in given.items()}


def _without_marks(outputs: Mapping[str, RawSignal]) -> tuple[dict[str, RawSignal], dict[str, Marks]]:
    """Return outputs with numbers for cells such as ``<0.1``, and the marks of those that have any."""
    found, marks = {}, {}
    for name, raw in outputs.items():
        values, marked = without_marks(raw.values)
        found[name] = raw if marked is None else RawSignal(raw.times, values)
        if marked is not None:
            marks[name] = marked
    return found, marks


def _raw(value: Any, what: str, time: Any) -> RawSignal:
    if hasattr(value, "dims") and hasattr(value, "to_series"):
        value = value.to_series() if value.ndim == 1 else value.values
    if isinstance(value, pd.Series):
        return RawSignal(None, value.array) if _is_rows(value.index, time) else RawSignal(value.index, value.array)
    if isinstance(value, str):
        raise DataError(f"{what} is the text {value!r}. Names of columns belong to from_csv and from_frame.")
    if callable(value):
        raise DataError(f"{what} is a function; data are samples. Give (t, f(t)) with the hold that suits it.")
    if isinstance(value, tuple) and len(value) == 2:
        if any(signal_checks.as_array(part).ndim != 1 for part in value):
            raise DataError(f"{what} is the pair {value!r}; a pair means (times, values), both arrays. Use a list.")
        return RawSignal(*value)
    return RawSignal(None, value)


def _is_rows(index: pd.Index, time: object) -> bool:
    """Return whether an index only numbers rows."""
    if isinstance(time, pd.Series) and index.equals(time.index):
        return True
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None


def _check_names(inputs: Mapping[str, RawSignal], outputs: Mapping[str, RawSignal]) -> None:
    if not outputs:
        raise DataError(
            "outputs= is empty: an experiment needs at least one measured signal. To run a model without data, "
            "use gr.simulate."
        )
    both = [name for name in inputs if name in outputs]
    if both:
        raise DataError(f"'{both[0]}' is both an input and an output; what is known exactly is an input only.")


def _read_axis(
    time: Any,
    inputs: Mapping[str, RawSignal],
    outputs: Mapping[str, RawSignal],
    unit: UnstatedUnit | str,
    clock: Clock | None,
    rows: RowNames,
) -> RowAxis:
    signals = {**{f"output '{n}'": s for n, s in outputs.items()}, **{f"input '{n}'": s for n, s in inputs.items()}}
    own = {f"times of {what}": raw.times for what, raw in signals.items() if raw.times is not None}
    time = time.to_series() if hasattr(time, "dims") and hasattr(time, "to_series") else time
    raw_time = time.array if isinstance(time, pd.Series) else time
    if raw_time is not None and signal_checks.as_array(raw_time).ndim != 1:
        raise DataError(
            f"time= has {signal_checks.as_array(raw_time).ndim} dimensions; give a one-dimensional array of times."
        )
    clock = clock or make_clock(unit, own if raw_time is None else {"the times": raw_time, **own})
    if raw_time is not None:
        times = clock.read(raw_time, "the times", rows)
        signal_checks.check_times(times, "the times", rows, clock.show, clock.changed_back(times))
        return RowAxis(read_only(times), clock, rows, False)
    if own:
        return RowAxis(None, clock, rows, False)
    lengths = [len(raw.values) for raw in signals.values() if not raw.is_number]
    return RowAxis(read_only(np.arange(float(lengths[0] if lengths else 1))), clock, rows, True)


def _read_input(name: str, raw: RawSignal, axis: RowAxis, fill: Fill) -> Signal:
    what = f"input '{name}'"
    if raw.is_number:
        return signal_checks.read_number(raw.values, what)
    times, values, rows = axis.signal(raw, what)
    if axis.is_static and fill is not None:
        raise DataError("fill= fills gaps in time, but rows of a static experiment are independent samples.")
    given = fill_gaps(SampledSignal(times, values), fill, what, rows)
    signal_checks.check_input(given.values, what, rows)
    return SampledSignal(times, read_only(given.values)) if given.times is times else protect_samples(*given)


def _read_output(name: str, raw: RawSignal, axis: RowAxis) -> SampledSignal:
    what = f"output '{name}'"
    times, values, rows = axis.signal(raw, what)
    signal_checks.check_output(values, what, rows)
    return protect_samples(times, values)


def _read_t0(t0: object, axis: RowAxis, outputs: Mapping[str, SampledSignal]) -> float | None:
    if axis.is_static:
        if t0 is not None:
            raise DataError(f"t0 = {t0!r} is given without time=: rows of a static experiment have no start.")
        return None
    first = min(float(y.times[0]) for y in outputs.values())
    if axis.times is not None:
        first = min(first, float(axis.times[0]))
    if t0 is None:
        return first
    begin = axis.clock.instant(t0, "t0")
    if begin > first:
        raise DataError(
            f"t0 is {axis.clock.show(begin)}, after the first row at {axis.clock.show(first)}. The start holds at or "
            f"before the first row: drop the rows before it, or leave first samples out of the comparison with skip=."
        )
    return begin


def _read_skip(skip: Any, axis: RowAxis, begin: float | None, outputs: Mapping[str, SampledSignal]) -> Any:
    """Return a duration from the beginning as a number of samples."""
    if begin is None or not is_length(skip):
        return skip
    return signal_checks.skipped_by(axis.clock.duration(skip, "skip"), begin, outputs, skip)


def _read_constants(constants: Mapping[str, float]) -> dict[str, float]:
    given = signal_checks.check_mapping(constants, "constants", "{'T': 300.0}")
    return {name: signal_checks.read_number(value, f"constant '{name}'") for name, value in given.items()}


def _read_starts(start: Any, is_static: bool) -> dict[str, Start]:
    given = signal_checks.check_mapping(start, "start", "{'x': 0.1}")
    if given and is_static:
        raise DataError(
            f"start= names '{next(iter(given))}', but without time= rows are independent and have no start."
        )
    return {name: _read_start(name, value) for name, value in given.items()}


def _read_start(name: str, value: Any) -> Start:
    if name == ALL_STATES and value is not None:
        raise DataError(
            f"start of '*', every state, is {value!r}; it can only be None, unknown. Name variables otherwise."
        )
    if name.startswith("start("):
        raise DataError(f"start= names '{name}'; write the variable itself, '{name[6:].rstrip(')')}'.")
    if isinstance(value, Law):
        refuse_no_prior(f"start of '{name}'", value)
    if value is None or isinstance(value, Law):
        return value
    if signal_checks.as_array(value).ndim != 0 or isinstance(value, str | bool):
        raise DataError(
            f"start of '{name}' is {value!r}; give a number (known), None (unknown) or a prior such as "
            f"gr.Normal(mean, std)."
        )
    return signal_checks.read_number(value, f"start of '{name}'")


def _read_weights(weights: Any, outputs: Mapping[str, SampledSignal], axis: RowAxis) -> dict[str, float | np.ndarray]:
    if isinstance(weights, Mapping):
        for name in weights:
            if name not in outputs:
                raise DataError(
                    f"weights= names '{name}', which is not among outputs=. {suggestion(str(name), outputs)}"
                )
    per_output = weights if isinstance(weights, Mapping) else dict.fromkeys(outputs, weights)
    read = {name: _read_weight(name, per_output.get(name), samples, axis) for name, samples in outputs.items()}
    there = (np.isfinite(samples.values) & (np.nan_to_num(read[name]) > 0) for name, samples in outputs.items())
    if not any(map(np.any, there)):
        raise DataError("every weight of a measured sample is zero: nothing would be compared with the model.")
    return read


def _read_weight(name: str, weight: object, samples: SampledSignal, axis: RowAxis) -> float | np.ndarray:
    what = f"weight of output '{name}'"
    if weight is None:
        return 1.0
    if signal_checks.as_array(weight).ndim == 0:
        number = signal_checks.read_number(weight, what)
        if number < 0:
            raise DataError(f"{what} is {number:g}; weights multiply residuals and are 0 or more.")
        return number
    raw = _raw(weight, what, None)
    if raw.times is not None and not np.array_equal(axis.clock.read(raw.times, f"times of the {what}"), samples.times):
        raise DataError(f"{what} has other times than the output; give one weight for each sample.")
    rows = axis.rows_of(samples)
    values = signal_checks.read_numbers(raw.values, what, rows)
    signal_checks.check_length(values, samples.times, what, "samples")
    bad = np.flatnonzero(np.isfinite(samples.values) & ~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        raise DataError(
            f"{what} is {values[bad[0]]:g} in {rows.listed(bad.tolist())}; weights multiply residuals and are finite, "
            f"0 or more, wherever the output is measured."
        )
    return read_only(values)


def _read_units(units: Mapping[str, str], signals: set[str]) -> dict[str, str]:
    given = signal_checks.check_mapping(units, "units", "{'u': 'N'}")
    for name, unit in given.items():
        if name not in signals:
            raise DataError(f"units= names '{name}', which is no signal here. {suggestion(name, sorted(signals))}")
        if not isinstance(unit, str):
            raise DataError(f"unit of '{name}' is {unit!r}; give a text such as 'm/s2'.")
    return {name: unit for name, unit in given.items() if unit}
