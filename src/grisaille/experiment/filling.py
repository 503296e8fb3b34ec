"""Inputs where nothing was recorded: empty cells, and hours without rows.

A held input goes on as it was, which nobody recorded: a heater stays on for as long as the logger was off. ``fill``
says what is believed instead: ``"hold"`` that, ``"interpolate"`` a straight line to the next sample, a number this
value from one usual interval after the last sample on. Samples are put there at the usual interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.rows import RowNames
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.experiment.signal_checks import read_number
from grisaille.model.names import suggestion

GAP_INTERVALS = 3.0
"""An interval so many times the usual one is called a gap."""
MIN_SAMPLES = 3
"""Samples from which on there is a usual interval."""

ALIKE, MOST = 0.1, 0.8
"""Relative differences of intervals that are usual, and the share of them that a logged signal has."""

Fill = float | str | None


def gaps_of(signal: SampledSignal) -> list[tuple[float, float]]:
    """Return stretches between known samples much longer than the usual interval of rows."""
    known = signal.times[np.isfinite(signal.values)]
    if len(known) < 2 or len(signal.times) < MIN_SAMPLES:
        return []
    usual = _usual(signal.times)
    return [(float(known[k]), float(known[k + 1])) for k in np.flatnonzero(np.diff(known) > GAP_INTERVALS * usual)]


def is_logged(signal: SampledSignal) -> bool:
    """Return whether samples were taken at a usual interval, rather than when something changed."""
    steps = np.diff(signal.times)
    return len(steps) > MIN_SAMPLES and float(np.mean(np.abs(steps / np.median(steps) - 1) < ALIKE)) > MOST


def read_fills(fill: Any, inputs: Iterable[str]) -> dict[str, Fill]:
    """Read how the missing values of each input are filled."""
    names = list(inputs)
    if isinstance(fill, Mapping):
        for name in fill:
            if name not in names:
                raise DataError(f"fill= names '{name}', which is not among inputs=. {suggestion(str(name), names)}")
        return {name: _read(fill.get(name), f"fill for input '{name}'") for name in names}
    return dict.fromkeys(names, _read(fill, "fill"))


def _read(fill: Any, what: str) -> Fill:
    if fill is None or (isinstance(fill, str) and fill in ("hold", "interpolate")):
        return fill
    if isinstance(fill, str):
        raise DataError(f"{what} is {fill!r}; give 'hold', 'interpolate' or a number.")
    return read_number(fill, what)


def fill_gaps(samples: SampledSignal, fill: Fill, what: str, rows: RowNames) -> SampledSignal:
    """Return the samples with empty cells and gaps filled as requested, at the usual interval; else unchanged."""
    if fill is None:
        return samples
    times, values = _cells(samples, fill, what, rows)
    for a, b in reversed(gaps_of(SampledSignal(times, values))):
        usual, k = _usual(samples.times), int(np.searchsorted(times, a)) + 1
        new = np.arange(a + usual, b - 0.5 * usual, usual)
        inside = np.interp(new, times, values) if fill == "interpolate" else values[k - 1] if fill == "hold" else fill
        times, values = np.insert(times, k, new), np.insert(values, k, np.broadcast_to(inside, new.shape))
    return SampledSignal(times, values)


def _cells(samples: SampledSignal, fill: Fill, what: str, rows: RowNames) -> SampledSignal:
    times, values = samples
    known = np.isfinite(values)
    if known.all() or np.isinf(values).any():
        return samples
    if isinstance(fill, float):
        return SampledSignal(times, np.where(known, values, fill))
    if not known[0] or (fill == "interpolate" and not known[-1]):
        raise DataError(
            f"{what} is missing in {rows.at(0 if not known[0] else len(values) - 1)}, where fill={fill!r} has no "
            f"sample to go by on that side. Give a number, fill={{…: 0.0}}, or leave those rows out."
        )
    if fill == "interpolate":
        return SampledSignal(times, np.interp(times, times[known], values[known]))
    return SampledSignal(times, values[np.maximum.accumulate(np.where(known, np.arange(len(values)), 0))])


def _usual(times: np.ndarray) -> float:
    return float(np.median(np.diff(times)))
