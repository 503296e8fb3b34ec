"""The start of a record that was not part of the fit.

A start that was estimated belongs to the record it was estimated from. Another one begins

- as that record did, where it is a part of the same run from the same instant on;
- in the state which that record leads to, where it continues it;
- otherwise in a state that its own first samples tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.unknowns import parameter_guesses, resolve_unknowns
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.experiment_content import ALL_STATES
from grisaille.experiment.sampled_signals import SampledSignal, evaluate
from grisaille.experiment.signal_checks import read_number
from grisaille.model.names import suggestion
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.estimation.estimator import Estimator
    from grisaille.estimation.fitted import Fitted

FIRST, SHARE = 10, 0.25
"""First samples of each output that tell one unknown start, and the most of a record that is used up by it."""
MAX_GAP_INTERVALS = 1.5
"""Usual intervals between the end of a record and the beginning of one that continues it."""
SPAN_ROUNDING = 1e-9
"""Of a span or a value: differences that do not count."""

CONTINUED_TEXT = "in the state that '{}' leads to"

Start = str | Mapping[str, float]


@dataclass(frozen=True)
class ContinuedRecord:
    """A record as a filter continues it: where it begins, and the distribution of all states there."""

    experiment: Experiment
    method: Estimator
    how: str


@dataclass(frozen=True)
class RecordStart:
    """A record with a known start, how it was found, and how many first samples of each output were used for it."""

    experiment: Experiment
    how: str
    used: int = 0
    carried: ContinuedRecord | None = None
    """What a filter takes over from the record before; None where it begins with nothing but the start."""

    def following(self, fit: Fitted) -> ContinuedRecord:
        """Return the record as the fit's method follows it."""
        return self.carried or ContinuedRecord(self.experiment, fit.method, self.how)


def start_of_record(
    fit: Fitted, experiment: Experiment, start: Start = "auto", samples: int | None = None
) -> RecordStart:
    """Return the record as the fitted model begins it.

    start : ``"auto"``, ``"declared"`` (what the record and the model say, whatever was estimated), or values by name,
        the others as by ``"auto"``
    samples : how many first ones tell the start, whatever record was fitted; None: as many as need be, if at all
    """
    given = _read(fit, start)
    if samples is not None:
        return _told_by_so_many(fit, experiment, start, given, samples)
    if experiment.is_static or any(experiment is e for e in fit.experiments):
        return RecordStart(experiment, "as it was fitted")
    record = _with_starts(experiment, given)
    if start == "declared":
        kept = {n: v for n, v in record.start.items() if _is_number(v)}
        return RecordStart(record.replace(start=kept), "from the declared start")
    for own in fit.experiments:
        shift = _shift(own, record)
        if shift is None or own.is_static or own.constants != record.constants:
            continue
        if _is_same_run(own, record, shift):
            known = {u.target: float(v) for u, v in _own(fit, own, "start")}
            how = f"as '{own.name}' does, from the {'estimated' if known else 'declared'} start"
            begun = RecordStart(_with_constants(fit, own, _with_starts(record, known, keep=True)), how)
            return replace(begun, carried=_carried_on(fit, own, record, shift) if not given else None)
        if _continues(own, record, shift):
            return _continued(fit, own, record, shift)
    _refuse_local(fit, record)
    wanted = _wanted(fit, record)
    return _told_by_itself(fit, record, wanted) if wanted else RecordStart(record, "from the declared start")


def _told_by_so_many(
    fit: Fitted, experiment: Experiment, start: Start, given: dict[str, float], samples: int
) -> RecordStart:
    """Return the record with starts of all states that are not given, estimated from a number of first samples."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise EstimationError(
            f"start_samples is {samples!r}; give how many first samples determine the start, 1 or more."
        )
    if start == "declared":
        raise EstimationError(
            f"start_samples={samples} says that samples determine the start, and start='declared' that "
            f"nothing does. Leave "
            f"one of them out; experiment.replace(skip={samples}) leaves samples out of the score."
        )
    if experiment.is_static:
        raise EstimationError(f"start_samples={samples} is given, but rows of a static experiment have no start.")
    _refuse_local(fit, experiment)
    record = _with_starts(experiment, given)
    known = {n for n, v in record.start.items() if _is_number(v)} if given else set()
    wanted = [n for n in _targets(fit, record, [ALL_STATES]) if n not in known]
    if not wanted:
        raise EstimationError(f"start_samples={samples} is given, but start= gives every state. Leave one of them out.")
    rest = {n: v for n, v in record.start.items() if n in given}
    return _told_by_itself(fit, record.replace(start=rest), wanted, int(samples))


def _read(fit: Fitted, start: Start) -> dict[str, float]:
    if isinstance(start, Mapping):
        variables = structure_of(fit.initial_model).model.variables
        for name in start:
            if name not in variables:
                hint = suggestion(str(name), variables)
                raise EstimationError(f"start= names '{name}', which is not a variable of {fit.model_name}. {hint}")
        return {n: read_number(v, f"start of '{n}'") for n, v in start.items()}
    if start not in ("auto", "declared"):
        raise EstimationError(f"start is {start!r}; give 'auto', 'declared' or values by name, such as {{'x': 0.1}}.")
    return {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def _with_starts(record: Experiment, values: Mapping[str, float], keep: bool = False) -> Experiment:
    """Return the record with numbers for some starts; ``keep``: not for those that it knows itself."""
    known = {n: v for n, v in record.start.items() if _is_number(v)}
    rest = {n: v for n, v in record.start.items() if n not in values and not (n == ALL_STATES and keep)}
    return record.replace(start={**rest, **values, **(known if keep else {})}) if values or keep else record


def _own(fit: Fitted, own: Experiment, kind: str) -> list[tuple[Unknown, float]]:
    """Return estimates that belong to one record."""
    pairs = zip(fit.estimate.unknowns, fit.estimate.theta.tolist(), strict=True)
    return [(u, v) for u, v in pairs if u.kind == kind and u.experiment is not None and u.experiment == own.name]


def _with_constants(fit: Fitted, own: Experiment, record: Experiment) -> Experiment:
    """Return the record with the parameters that the fitted one has for itself."""
    values = {u.target: v for u, v in _own(fit, own, "parameter")}
    return record.replace(constants={**values, **record.constants}) if values else record


def _refuse_local(fit: Fitted, record: Experiment) -> None:
    """Refuse parameters that every record has for itself: they are not known for a new one."""
    shared = {u.target for u in fit.estimate.unknowns if u.kind == "parameter" and u.experiment is None}
    for u in fit.estimate.unknowns:
        local = u.kind == "parameter" and u.experiment is not None and u.experiment != record.name
        mine = {v.target for v in fit.estimate.unknowns if v.experiment == record.name}
        if local and u.target not in {*shared, *mine, *record.constants}:
            raise EstimationError(
                f"'{u.target}' was estimated for each experiment ({u.name}, …), and '{record.name or 'this one'}' is "
                f"none of them: give its value, experiment.replace(constants={{'{u.target}': …}})."
            )


def _wanted(fit: Fitted, record: Experiment) -> list[str]:
    """Return unknown starts: those the record leaves open, and those that were estimated for other records."""
    known = {n for n, v in record.start.items() if _is_number(v)}
    open_ones = [n for n, v in record.start.items() if not _is_number(v)]
    estimated = [u.target for u in fit.estimate.unknowns if u.kind == "start"]
    return [n for n in dict.fromkeys([*open_ones, *estimated]) if n not in known]


def _shift(own: Experiment, record: Experiment) -> float | None:
    """Return what is added to times of the record to have those of a fitted one; None where they cannot be compared."""
    a, b = own.clock, record.clock
    if a.unit != b.unit or (a.origin is None) != (b.origin is None):
        return None
    if a.origin is None:
        return 0.0
    if (a.origin.tz is None) != (b.origin.tz is None):
        return None
    return float((b.origin - a.origin).total_seconds()) / a.seconds


def _is_same_run(own: Experiment, record: Experiment, shift: float) -> bool:
    """Return the same instant of start, the same inputs, and no measurement that contradicts."""
    assert own.t0 is not None and record.t0 is not None
    span = float(max(own.output_times[-1], record.output_times[-1] + shift) - own.t0)
    if abs(record.t0 + shift - own.t0) > SPAN_ROUNDING * max(span, 1e-300):
        return False
    return _same_inputs(own, record, shift) and _same_outputs(own, record, shift)


def _same_inputs(own: Experiment, record: Experiment, shift: float) -> bool:
    if set(own.inputs) != set(record.inputs) or dict(own.hold) != dict(record.hold):
        return False
    times = own.output_times[own.output_times <= record.output_times[-1] + shift]
    for name, signal in own.inputs.items():
        mine, other = (
            evaluate(s, own.hold[name], at) for s, at in ((signal, times), (record.inputs[name], times - shift))
        )
        both = np.isfinite(mine) & np.isfinite(other)
        size = float(np.abs(mine[both]).max(initial=0.0))
        if np.abs(mine[both] - other[both]).max(initial=0.0) > SPAN_ROUNDING * size:
            return False
    return True


def _same_outputs(own: Experiment, record: Experiment, shift: float) -> bool:
    """Return whether outputs are equal where both were measured; without a common instant they are not the same run."""
    for name, mine in own.outputs.items():
        if name not in record.outputs:
            continue
        other = record.outputs[name]
        later = other.times[0] + shift > mine.times[-1]
        _, here, there = np.intersect1d(mine.times, other.times + shift, return_indices=True)
        a, b = mine.values[here], other.values[there]
        both = np.isfinite(a) & np.isfinite(b)
        if not later and not both.any():
            return False
        if not np.array_equal(a[both], b[both]):
            return False
    return True


def _continues(own: Experiment, record: Experiment, shift: float) -> bool:
    """Return whether a record begins later, not after a pause, and contradicts nothing."""
    assert own.t0 is not None and record.t0 is not None
    times = own.output_times
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    begin = record.t0 + shift
    last = float(times[-1]) + MAX_GAP_INTERVALS * usual
    return own.t0 < begin <= last and set(own.inputs) == set(record.inputs) and _same_outputs(own, record, shift)


def _continued(fit: Fitted, own: Experiment, record: Experiment, shift: float) -> RecordStart:
    """Return the state that the fitted record leads to."""
    assert record.t0 is not None
    begin = record.t0 + shift
    names = _targets(fit, record, [ALL_STATES])
    outputs = {n: _until(y, begin) for n, y in own.outputs.items()}
    joined = own.replace(
        inputs={n: _joined(s, record.inputs[n], begin, shift) for n, s in own.inputs.items()},
        outputs=outputs, weights=None, skip=0, start={n: v for n, v in own.start.items() if _is_number(v)},
    )  # fmt: skip
    ahead = fit.method.ahead
    path = fit.simulated(joined) if ahead is None else ahead.filtered_means(fit, joined, names)
    values = {n: float(path[n].sel(time=begin, method="nearest")) for n in names}
    values = {n: v for n, v in values.items() if np.isfinite(v)}  # under a flat prior some may not be told yet
    begun, how = _with_constants(fit, own, _with_starts(record, values, keep=True)), CONTINUED_TEXT.format(own.name)
    # a start that somebody knows, the record or whoever asks, is not what the filter says
    if ahead is None or any(map(_is_number, record.start.values())):
        return RecordStart(begun, how)
    return RecordStart(begun, how, carried=ContinuedRecord(begun, ahead.continuing(fit, joined), how))


def _carried_on(fit: Fitted, own: Experiment, record: Experiment, shift: float) -> ContinuedRecord | None:
    """Continue with a part of the same run that was measured later: a filter begins with the state at the end of the
    fitted part.
    """
    first = float(record.output_times[0])
    if fit.method.ahead is None or first + shift <= float(own.output_times[-1]):
        return None
    return _continued(fit, own, record.replace(t0=first, start={}), shift).carried


def _until(y: SampledSignal, begin: float) -> tuple[np.ndarray, np.ndarray]:
    """Return what was measured before, and nothing at the beginning of the other record."""
    kept = y.times < begin
    return np.append(y.times[kept], begin), np.append(y.values[kept], np.nan)


def _joined(signal: Any, other: Any, begin: float, shift: float) -> Any:
    if not isinstance(signal, SampledSignal):
        return signal
    later = other if isinstance(other, SampledSignal) else SampledSignal(np.array([begin - shift]), np.array([other]))
    kept, new = signal.times < begin, later.times + shift >= begin - SPAN_ROUNDING * max(abs(begin), 1.0)
    times = np.concatenate([signal.times[kept], later.times[new] + shift])
    values = np.concatenate([signal.values[kept], later.values[new]])
    return (times, values)


def _targets(fit: Fitted, record: Experiment, names: Sequence[str]) -> list[str]:
    """Return variables whose starts are meant; ``"*"``: as many states as may be chosen."""
    structure = structure_of(fit.initial_model)
    named = record if record.name else record.replace(name="record")
    wanted = [ALL_STATES] if ALL_STATES in names else names
    return [u.target for u in resolve_unknowns(structure, [named], [f"start({n})" for n in wanted])]


def _told_by_itself(fit: Fitted, record: Experiment, wanted: Sequence[str], samples: int | None = None) -> RecordStart:
    """Return the record with starts estimated from its first samples, everything else as fitted."""
    names = list(dict.fromkeys(_targets(fit, record, wanted)))
    asked = ", ".join(f"start({n})" for n in names)
    times = record.output_times
    usual = min(max(FIRST * len(names), len(names) + 2), max(int(SHARE * len(times)), len(names) + 2))
    count = usual if samples is None else samples
    remedy = f"Give start={{'{names[0]}': …}}, or start='declared'."
    who = f"Experiment '{record.name}'" if record.name else "The experiment"
    where = f"{who} begins in an unknown state ({asked})"
    if len(times) <= count:
        raise EstimationError(f"{where}, and {len(times)} samples are too few to estimate it and to test. {remedy}")
    end = float(times[count - 1])
    outputs = {n: (y.times[y.times <= end], y.values[y.times <= end]) for n, y in record.outputs.items()}
    outputs = {n: (t, y) for n, (t, y) in outputs.items() if np.isfinite(y).any()}
    if not outputs:
        raise EstimationError(f"{where}, and nothing was measured in its first {count} samples. {remedy}")
    known = {n: v for n, v in record.start.items() if _is_number(v)}
    head = record.replace(outputs=outputs, weights=None, skip=0, start=known, name=record.name or "record")
    try:
        found = estimate_starts(fit, head, names)
    except INDEPENDENT_OF_VALUES:
        raise  # no other values of the unknowns would help
    except GrisailleError as error:
        raise EstimationError(
            f"{where}, and its first {count} samples do not determine it: {error} {remedy}"
        ) from error
    lost = [n for n, (_, error) in found.items() if not np.isfinite(error)]
    if lost:
        raise EstimationError(f"{where}, and its first {count} samples say nothing about start({lost[0]}). {remedy}")
    values = {n: value for n, (value, _) in found.items()}
    told = ", ".join(f"{n} = {v:.4g}" for n, v in values.items())
    return RecordStart(
        _with_starts(record, values, keep=True), f"in a state that its first {count} samples tell ({told})", count
    )


def estimate_starts(fit: Fitted, head: Experiment, names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return starts and their standard errors, at the fitted values of everything else."""
    model, method = fit.settled_model, fit.method.validator
    structure = structure_of(model)
    unknowns = parameter_guesses(structure.model, resolve_unknowns(structure, [head], [f"start({n})" for n in names]))
    found = method.estimate(method.pose(FitRequest(model, structure, [head], unknowns).with_starts()))
    if not found.converged:
        raise EstimationError(f"no minimum was found ({found.status}).")
    errors = np.sqrt(np.clip(np.diag(found.covariance), 0.0, None))
    return {u.target: (float(v), float(e)) for u, v, e in zip(found.unknowns, found.theta, errors, strict=True)}
