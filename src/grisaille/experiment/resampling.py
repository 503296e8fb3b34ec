"""An experiment on other times.

Each new time t_k has the window [(t_{k−1} + t_k)/2, (t_k + t_{k+1})/2), at the ends as wide outwards as inwards.
Samples with weights wᵢ have together the weight w = √Σ wᵢ² around their mean Σ wᵢ² yᵢ / w², because
Σ wᵢ²(yᵢ − ŷ)² = w²(ȳ − ŷ)² + const for a prediction ŷ that is the same for all of them. The mean belongs to the mean
time of its samples, Σ wᵢ² tᵢ / w²: t_k where the window is filled evenly, another instant at the ends of a record,
beside a gap, and by half a sample where samples lie between the windows' ends evenly. What changes evenly over a window
is then not shifted in time; what bends over it is averaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.censored_cells import compared_marks
from grisaille.experiment.rows import PLAIN_ROWS
from grisaille.experiment.sampled_signals import SampledSignal, evaluate
from grisaille.experiment.signal_checks import as_array, check_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grisaille.experiment.experiment import Experiment

MAX_TIMES = 10_000_000
SAME_TIME = 1e-9
"""Of a window: times that differ by less are the same."""


def resample(experiment: Experiment, step: Any, times: np.ndarray | Sequence[float] | None, outputs: str) -> Experiment:
    """Return the experiment at every ``step``, or at ``times``."""
    if experiment.is_static:
        raise DataError("resample: rows of a static experiment are independent samples, not samples in time.")
    if (step is None) == (times is None):
        raise DataError("resample takes a step, resample(60.0), or times=…: one of them.")
    if outputs not in ("mean", "nearest"):
        raise DataError(f"resample: outputs is {outputs!r}; it must be 'mean' or 'nearest'.")
    if step is not None and as_array(step).ndim != 0:
        step, times = None, step
    at = _regular(experiment, step) if step is not None else _given(experiment, times)
    reduced = {name: _reduce(experiment, name, at, outputs) for name in experiment.outputs}
    return experiment.replace(
        inputs={name: _sampled(experiment, name, at) for name in experiment.inputs},
        outputs={name: (times, values) for name, (times, values, _, _) in reduced.items()},
        weights={name: weights for name, (_, _, weights, _) in reduced.items()},
        marks={name: marks for name, (_, _, _, marks) in reduced.items() if name in experiment.marks},
        skip=0,
    )


def _regular(experiment: Experiment, step: Any) -> np.ndarray:
    width, times = experiment.clock.duration(step, "step"), experiment.output_times
    span = float(times[-1] - times[0])
    if not 0 < width <= span or span / width > MAX_TIMES:
        raise DataError(
            f"resample: the step is {width:g}; outputs span {span:g} {experiment.clock.unit}, so give a positive step "
            f"below that (and not more than {MAX_TIMES} of them)."
        )
    return np.asarray(times[0] + width * np.arange(int(span / width * (1 + 1e-12)) + 1))


def _given(experiment: Experiment, times: Any) -> np.ndarray:
    at, show = experiment.clock.read(times, "times to resample at"), experiment.clock.show
    check_times(at, "times to resample at", PLAIN_ROWS, show)
    old = experiment.output_times
    if len(at) < 2:
        raise DataError("resample: give at least two times; windows end halfway between them.")
    if at[0] < old[0] or at[-1] > old[-1]:
        raise DataError(
            f"resample: {show(at[0])} to {show(at[-1])} reaches beyond the outputs, which span {show(old[0])} to "
            f"{show(old[-1])}."
        )
    return at


def _sampled(experiment: Experiment, name: str, at: np.ndarray) -> float | tuple[np.ndarray, np.ndarray]:
    """Return values at the new times, and at ``t0`` when that lies before them."""
    signal = experiment.inputs[name]
    if not isinstance(signal, SampledSignal):
        return signal
    points = np.union1d(at, [experiment.t0]) if experiment.t0 is not None else at
    return (points, evaluate(signal, experiment.hold[name], points))


Reduced = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Times, values, weights and marks."""


def _reduce(experiment: Experiment, name: str, at: np.ndarray, how: str) -> Reduced:
    """Return one output near the new times, each value at the time of the samples that it comes from."""
    times, values, weights = experiment.measurements(name)
    marks = compared_marks(experiment, name)
    if how == "mean" and marks.any():
        count = int((marks != 0).sum())
        raise DataError(
            f"resample: {count} sample{'s' * (count > 1)} of output '{name}' are known by a limit alone, such as "
            f"'<0.1', and have no mean: use outputs='nearest', which keeps single samples with their limits."
        )
    middle = (at[1:] + at[:-1]) / 2 - 1e-9 * np.diff(at)  # a sample halfway goes to the later time, rounding or not
    edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    window = np.searchsorted(edges, times, side="right") - 1
    inside = (window >= 0) & (window < len(at))
    chosen = _mean if how == "mean" else _nearest
    picked = chosen(times[inside], values[inside], weights[inside], marks[inside], window[inside], at)
    own, new_values, new_weights, new_marks = picked
    if not np.isfinite(new_values).any():
        raise DataError(f"resample: no measured sample of output '{name}' lies near the new times.")
    is_same = np.abs(own - at) < SAME_TIME * np.diff(edges)
    return np.where(is_same, at, own), new_values, new_weights, new_marks


def _mean(
    times: np.ndarray, values: np.ndarray, weights: np.ndarray, marks: np.ndarray, window: np.ndarray, at: np.ndarray
) -> Reduced:
    square = np.bincount(window, weights**2, minlength=len(at))
    total = np.bincount(window, weights**2 * values, minlength=len(at))
    away = np.bincount(window, weights**2 * (times - at[window]), minlength=len(at))
    own = at + np.divide(away, square, out=np.zeros(len(at)), where=square > 0)
    means = np.divide(total, square, out=np.full(len(at), np.nan), where=square > 0)
    return own, means, np.sqrt(square), np.zeros(len(at))


def _nearest(
    times: np.ndarray, values: np.ndarray, weights: np.ndarray, marks: np.ndarray, window: np.ndarray, at: np.ndarray
) -> Reduced:
    own, new_values, new_weights, new_marks = at.copy(), np.full(len(at), np.nan), np.zeros(len(at)), np.zeros(len(at))
    far_first = np.argsort(-np.abs(times - at[window]), kind="stable")  # the last to be written is the nearest
    own[window[far_first]] = times[far_first]
    new_values[window[far_first]] = values[far_first]
    new_weights[window[far_first]] = weights[far_first]
    new_marks[window[far_first]] = marks[far_first]
    return own, new_values, new_weights, new_marks
