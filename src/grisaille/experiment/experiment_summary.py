"""Summarises an experiment in a table and a few sentences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.experiment.experiment_content import ALL_STATES, ExperimentContent
from grisaille.experiment.filling import gaps_of, is_logged
from grisaille.experiment.sampled_signals import SampledSignal

if TYPE_CHECKING:
    import pandas as pd

Gap = tuple[float, float]

MAX_IRREGULARITY = 0.01
MIN_FOR_STEPS, SHARE_OF_LEVELS = 20, 0.3
"""Samples, and different values among them, up to which an output counts as recorded in steps."""


@dataclass(frozen=True)
class ExperimentSummary:
    """A heading, one row per signal, and remarks; ``print`` it."""

    heading: str
    table: pd.DataFrame
    """Per signal: role, unit, samples, measured, first, last, interval, gaps, minimum, mean, maximum."""
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [self.heading, "", self.table.to_string(na_rep="", float_format="{:.4g}".format), *_bullets(self.notes)]
        )

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p>{escape(self.heading)}</p>{self.table.to_html(na_rep='')}<ul>{notes}</ul>"


def one_line(record: ExperimentContent) -> str:
    """Return ``<Experiment 'A': outputs phi; inputs u; 200 times from 0 to 10 s>``."""
    name = f" '{record.name}'" if record.name else ""
    inputs = f"; inputs {', '.join(record.inputs)}" if record.inputs else ""
    return f"<Experiment{name}: outputs {', '.join(record.outputs)}{inputs}; {_extent(record)}>"


def summarize(record: ExperimentContent) -> ExperimentSummary:
    """Return the table and the remarks."""
    import pandas as pd

    signals = {**record.outputs, **record.inputs}
    rows = {name: _row(record, name, signal) for name, signal in signals.items()}
    table = pd.DataFrame.from_dict(rows, orient="index").drop(columns=["first", "last"] if record.is_static else [])
    empty = [column for column in table if (table[column].isna() | (table[column] == "")).all()]
    name = f"Experiment '{record.name}'" if record.name else "Experiment"
    return ExperimentSummary(f"{name}: {_extent(record)}", table.drop(columns=empty), tuple(_notes(record)))


def _extent(record: ExperimentContent) -> str:
    times = np.unique(np.concatenate([y.times for y in record.outputs.values()]))
    if record.is_static:
        return f"{len(times)} independent rows"
    clock = record.clock
    span = f"from {times[0]:g} to {times[-1]:g} {clock.unit}"
    if clock.origin is None:
        return f"{len(times)} times {span}"
    zone = f", {clock.zone}" if clock.zone else ""
    return f"{len(times)} times from {clock.brief(times[0])} to {clock.brief(times[-1])}{zone} ({span})"


def _row(record: ExperimentContent, name: str, signal: float | SampledSignal) -> dict[str, Any]:
    role = "output" if name in record.outputs else "input" if record.is_static else f"input, {record.hold[name]}"
    unit = record.units.get(name, "")
    if not isinstance(signal, SampledSignal):
        return {"role": "input, number", "unit": unit, "minimum": signal, "mean": signal, "maximum": signal}
    known = signal.values[np.isfinite(signal.values)]
    row = {"role": role, "unit": unit, "samples": f"{len(signal.values)}", "measured": ""}
    if len(known) < len(signal.values):
        row["measured"] = f"{len(known)}"
    steps = np.diff(signal.times)
    show = _short if record.is_static else record.clock.brief
    row |= {"first": show(signal.times[0]), "last": show(signal.times[-1])}
    if not record.is_static and steps.size:
        row |= {"interval": _interval(steps), "gaps": _gap_count(record, name, signal)}
    return row | {"minimum": known.min(), "mean": known.mean(), "maximum": known.max()}


def _short(value: float) -> str:
    return f"{value:g}"


def _interval(steps: np.ndarray) -> str:
    low, middle, high = steps.min(), np.median(steps), steps.max()
    return _short(middle) if high - low <= MAX_IRREGULARITY * middle else f"{_short(low)} … {_short(high)}"


def _gap_count(record: ExperimentContent, name: str, signal: SampledSignal) -> str:
    return str(len(gaps_of(signal)) or "") if name in record.outputs else ""


def _notes(record: ExperimentContent) -> list[str]:
    notes = [*_input_notes(record), *_limit_notes(record), *coarse_outputs(record), *_gap_notes(record)]
    if record.t0 is not None and record.t0 < min(float(y.times[0]) for y in record.outputs.values()):
        notes.append(f"The start holds at {record.clock.show(record.t0)}, before the first row.")
    if record.skip:
        notes.append(f"The first {record.skip} sample{'s' if record.skip > 1 else ''} of each output are skipped.")
    if record.constants:
        notes.append(f"Constants: {', '.join(f'{n} = {v:g}' for n, v in record.constants.items())}.")
    if record.start:
        starts = (f"{'every state' if n == ALL_STATES else n} {_start(v)}" for n, v in record.start.items())
        notes.append(f"Start: {', '.join(starts)}.")
    weights = {n: w for n, w in record.weights.items() if isinstance(w, np.ndarray) or w != 1.0}
    if weights:
        notes.append(f"Weights: {', '.join(f'{n} {_weight(w)}' for n, w in weights.items())}.")
    return notes


def _input_notes(record: ExperimentContent) -> list[str]:
    notes = []
    end = max(float(y.times[-1]) for y in record.outputs.values())
    for name, signal in record.inputs.items():
        if not isinstance(signal, SampledSignal):
            continue
        if len(signal.values) > 1 and np.ptp(signal.values) == 0:
            notes.append(
                f"Input {name} is constant ({signal.values[0]:g}): what it does cannot be distinguished from an offset."
            )
        if not record.is_static and signal.times[-1] < end:
            notes.append(
                f"Input {name} is held from its last sample, {record.clock.show(signal.times[-1])}, to the end."
            )
    return notes


def _limit_notes(record: ExperimentContent) -> list[str]:
    notes = []
    for name, marks in record.marks.items():
        sides = [(int((marks < 0).sum()), "at or below"), (int((marks > 0).sum()), "at or above")]
        said = " and ".join(f"{count} {where}" for count, where in sides if count)
        total = int(np.isfinite(record.outputs[name].values).sum())
        notes.append(f"Output {name}: of {total} samples {said} a limit, which stands as their value.")
    return notes


def coarse_outputs(record: ExperimentContent, stepped: Collection[str] = ()) -> list[str]:
    """Return remarks on outputs that never change, or that were recorded in steps (an encoder, a converter, rounding).

    stepped : outputs whose law knows the steps
    """
    notes = []
    for name, samples in record.outputs.items():
        is_measured = np.isfinite(samples.values) & (record.marks.get(name, np.zeros(len(samples.values))) == 0)
        known = samples.values[is_measured]
        step = _step(known)
        if len(known) > 1 and np.ptp(known) == 0:
            notes.append(f"Output {name} is constant ({known[0]:g}): a sensor that hangs, or nothing happened.")
        elif step and name not in stepped:
            levels = len(np.unique(known))
            notes.append(
                f"Output {name} is recorded in steps of {step:.3g} ({levels} different values in {len(known)} "
                f"samples): that is noise of at least {step / np.sqrt(12):.2g}."
            )
    return notes


def _step(values: np.ndarray) -> float:
    """Return the step of values that all lie on a coarse grid; zero where they do not."""
    levels = np.unique(values)
    if len(values) < MIN_FOR_STEPS or len(levels) < 2 or len(levels) > SHARE_OF_LEVELS * len(values):
        return 0.0
    step = float(np.diff(levels).min())
    apart = (levels - levels[0]) / step
    return step if np.abs(apart - np.round(apart)).max() < 1e-3 else 0.0


def _gap_notes(record: ExperimentContent) -> list[str]:
    if record.is_static:
        return []
    outputs = {name: _longest(record, gaps) for name, y in record.outputs.items() if (gaps := gaps_of(y))}
    return [*(f"Output {name} has a gap {where}." for name, where in outputs.items()), *held_gaps(record)]


def held_gaps(record: ExperimentContent) -> list[str]:
    """Return remarks on logged inputs that nobody recorded for long before the last output, and that are taken to go
    on.
    """
    return [
        f"Input {name} is not recorded {_longest(record, gaps)}, and {_going_on(record, name, gaps)}. Say what it was "
        f"by fill=: 'hold', 'interpolate' or a number; where nobody knows, cut there: split(time=…, restart=True)."
        for name, gaps in unrecorded_inputs(record).items()
    ]


def unrecorded_inputs(record: ExperimentContent) -> dict[str, list[Gap]]:
    """Return where logged inputs have gaps before the last output, by input."""
    if record.is_static:
        return {}
    end = max(float(y.times[-1]) for y in record.outputs.values())
    logged = {n: s for n, s in record.inputs.items() if isinstance(s, SampledSignal) and is_logged(s)}
    found = {name: [gap for gap in gaps_of(signal) if gap[0] < end] for name, signal in logged.items()}
    return {name: gaps for name, gaps in found.items() if gaps}


def _longest(record: ExperimentContent, gaps: Sequence[Gap]) -> str:
    show = record.clock.show
    a, b = max(gaps, key=lambda gap: gap[1] - gap[0])
    return f"from {show(a)} to {show(b)}{'' if len(gaps) == 1 else f', the longest of {len(gaps)}'}"


def _going_on(record: ExperimentContent, name: str, gaps: Sequence[Gap]) -> str:
    if record.hold[name] != "zoh":
        return "goes from one sample to the next there"
    signal = record.inputs[name]
    assert isinstance(signal, SampledSignal)
    begin = max(gaps, key=lambda gap: gap[1] - gap[0])[0]
    return f"stays at {signal.values[int(np.searchsorted(signal.times, begin))]:g} there"


def _start(value: object) -> str:
    return "unknown" if value is None else f"= {value:g}" if isinstance(value, float) else f"~ {value}"


def _weight(value: object) -> str:
    return "per sample" if isinstance(value, np.ndarray) else f"× {value:g}"


def _bullets(notes: tuple[str, ...]) -> list[str]:
    return ["", *(f"- {note}" for note in notes)] if notes else []
