"""One sampled signal, and what it is between its samples.

``zoh``: a sample at t_k holds from t_k on, up to the next one (continuous from the right) and beyond the last;
``foh``: straight lines; ``spline``: the cubic spline with not-a-knot ends. Simulation reads inputs the same way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

HOLDS = ("zoh", "foh", "spline")


class SampledSignal(NamedTuple):
    """Values at increasing times; for independent samples the times are row numbers."""

    times: np.ndarray
    values: np.ndarray


Signal = float | SampledSignal


def protect_samples(times: np.ndarray, values: np.ndarray) -> SampledSignal:
    """Return samples whose arrays cannot be written to."""
    return SampledSignal(read_only(times), read_only(values))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written to; an array that already is one is taken as it stands."""
    if array.flags.writeable or array.base is not None:
        array = array.copy()
        array.flags.writeable = False
    return array


def evaluate(signal: Signal, hold: str, at: np.ndarray) -> np.ndarray:
    """Return the signal at any times; NaN where it is not known."""
    if not isinstance(signal, SampledSignal):
        return np.full(len(at), signal)
    t, y = signal
    if hold == "zoh" or len(t) == 1:
        k = np.searchsorted(t, at, side="right") - 1
        return np.asarray(np.where(k < 0, np.nan, y[np.maximum(k, 0)]))
    if hold == "foh":
        return np.asarray(np.interp(at, t, y, left=np.nan, right=np.nan))
    from scipy.interpolate import CubicSpline

    return np.asarray(CubicSpline(t, y, extrapolate=False)(at))
