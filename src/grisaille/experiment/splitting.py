"""One experiment cut in two: the first part to estimate with, the second to test with.

At the cut the state is not known. The second part therefore either runs through the first one from the known start
without being compared there, or begins at the cut with starts that are given or unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.experiment_content import ALL_STATES
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.experiment.signal_checks import check_mapping, read_number
from grisaille.experiment.times.clock import is_length

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

Parts = tuple["Experiment", "Experiment"]


def split(
    experiment: Experiment, fraction: Any, time: Any, restart: bool | Mapping[str, Any], seed: int | None
) -> Parts:
    """Return (train, test)."""
    if (fraction is None) == (time is None):
        raise DataError("split takes a fraction, split(0.7), or the time of the cut, split(time=…): one of them.")
    if experiment.is_static:
        return _split_rows(experiment, fraction, time, restart, seed)
    if seed is not None:
        raise DataError("seed= deals out independent rows; an experiment in time is cut at one instant.")
    if time is None:
        times = experiment.output_times
        cut = float(times[_count(fraction, len(times))])
    else:
        cut = _checked_cut(experiment, experiment.clock.instant(time, "time of the cut"))
    train = _part(experiment, lambda t: t < cut, suffix="train", inputs=_until(experiment, cut))
    return train, _test(experiment, cut, restart)


def _count(fraction: Any, n: int) -> int:
    if isinstance(fraction, str) or hasattr(fraction, "year") or is_length(fraction):
        said = repr(str(fraction))
        raise DataError(f"split: {said} is no fraction; for the time of the cut write split(time={said}).")
    share = read_number(fraction, "fraction")
    if not 0 < share < 1:
        raise DataError(f"split: the fraction is {share:g}; give one between 0 and 1, or split(time={share:g}).")
    if n < 2:
        raise DataError("split: the experiment has a single row and cannot be cut.")
    return int(np.clip(round(share * n), 1, n - 1))


def _checked_cut(experiment: Experiment, cut: float) -> float:
    times, show = experiment.output_times, experiment.clock.show
    if not times[0] < cut <= times[-1]:
        raise DataError(
            f"split: the cut at {show(cut)} leaves one part empty; outputs are sampled from {show(times[0])} to "
            f"{show(times[-1])}."
        )
    return cut


def _test(experiment: Experiment, cut: float, restart: bool | Mapping[str, Any]) -> Experiment:
    if restart is False:
        return _part(experiment, lambda t: t >= cut, suffix="test", skip=0)
    times = experiment.output_times
    begin = float(times[times >= cut][0])
    unknown = {**dict.fromkeys(experiment.start), ALL_STATES: None}
    start = unknown if restart is True else check_mapping(restart, "restart", "{'x': 0.1}")
    return _part(
        experiment, lambda t: t >= cut, suffix="test", skip=0, t0=begin, start=start, inputs=_from(experiment, begin)
    )


def _part(
    experiment: Experiment, chosen: Callable[[np.ndarray], np.ndarray], suffix: str, **changes: Any
) -> Experiment:
    """Return the outputs at the chosen times; an output with nothing to compare there is left out."""
    skip = changes.get("skip", experiment.skip)
    outputs: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    marks: dict[str, Any] = {}
    for name, (times, values) in experiment.outputs.items():
        kept = chosen(times)
        if np.isfinite(values[kept][skip:]).any():
            outputs[name] = (times[kept], values[kept])
            weight = experiment.weights[name]
            weights[name] = weight[kept] if isinstance(weight, np.ndarray) else weight
            if name in experiment.marks:
                marks[name] = experiment.marks[name][kept]
    units = {n: u for n, u in experiment.units.items() if n in outputs or n in experiment.inputs}
    label = f"{experiment.name} ({suffix})" if experiment.name else None
    changes = {"marks": marks, **changes}
    return experiment.replace(**{"outputs": outputs, "weights": weights, "units": units, "name": label, **changes})


def _until(experiment: Experiment, cut: float) -> dict[str, Any]:
    """Return inputs up to their first sample at or after the cut; a spline depends on all of its samples."""
    return _cut_inputs(experiment, lambda t: slice(0, int(np.searchsorted(t, cut)) + 1))


def _from(experiment: Experiment, begin: float) -> dict[str, Any]:
    """Return inputs from their last sample at or before the beginning on."""
    return _cut_inputs(experiment, lambda t: slice(int(np.searchsorted(t, begin, side="right")) - 1, None))


def _cut_inputs(experiment: Experiment, part: Callable[[np.ndarray], slice]) -> dict[str, Any]:
    def one(name: str, signal: Any) -> Any:
        if not isinstance(signal, SampledSignal) or experiment.hold[name] == "spline":
            return signal
        kept = part(signal.times)
        return (signal.times[kept], signal.values[kept])

    return {name: one(name, signal) for name, signal in experiment.inputs.items()}


def _split_rows(experiment: Experiment, fraction: Any, time: Any, restart: Any, seed: int | None) -> Parts:
    if time is not None or restart is not False:
        raise DataError("split: rows of a static experiment have neither time nor start; use split(fraction, seed=…).")
    n = len(experiment.output_times)
    count = _count(fraction, n)
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    return _rows(experiment, np.sort(order[:count]), "train"), _rows(experiment, np.sort(order[count:]), "test")


def _rows(experiment: Experiment, rows: np.ndarray, suffix: str) -> Experiment:
    inputs = {n: s.values[rows] if isinstance(s, SampledSignal) else s for n, s in experiment.inputs.items()}
    outputs = {n: y.values[rows] for n, y in experiment.outputs.items()}
    weights = {n: w[rows] if isinstance(w, np.ndarray) else w for n, w in experiment.weights.items()}
    marks = {n: m[rows] for n, m in experiment.marks.items()}
    name = f"{experiment.name} ({suffix})" if experiment.name else None
    return experiment.replace(inputs=inputs, outputs=outputs, weights=weights, marks=marks, name=name, skip=0)
