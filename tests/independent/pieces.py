"""Integration of smooth pieces in NumPy: short steps of the classical Runge-Kutta method that end where a gap vanishes.

    y' = f(t, y, mode),   mode_k = (gap_k(t, y) > 0), kept within a piece

The end of a piece is found by bisection of the step; the step to it uses the old mode, the next one the new mode.
Independent of the package under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

Rates = Callable[[float, np.ndarray, tuple[bool, ...]], np.ndarray]
Gaps = Callable[[float, np.ndarray], Sequence[float]]


def integrate(
    rates: Rates, y0: Sequence[float], times: np.ndarray, gaps: Gaps | None = None, *, step: float = 5e-3,
    kinks: Sequence[float] = (),
) -> np.ndarray:  # fmt: skip
    """y at every time, (times, states); steps end on times and on ``kinks``, instants at which f jumps with time.

    A row at a kink is the state there, which is continuous.
    """

    def modes(t: float, y: np.ndarray) -> tuple[bool, ...]:
        return tuple(g > 0 for g in gaps(t, y)) if gaps else ()

    stops = np.union1d(times, [k for k in kinks if times[0] < k < times[-1]])
    y = np.array(y0, dtype=float)
    rows = {float(stops[0]): y}
    mode = modes(float(stops[0]), y)
    for begin, end in pairwise(stops):
        t, count = float(begin), max(1, int(np.ceil((end - begin) / step)))
        for k in range(count):
            target = float(begin + (end - begin) * (k + 1) / count)
            turns = 0
            while t < target:
                t, y, turned = _step(rates, modes, t, y, target - t, mode)
                if turned:
                    mode, turns = turned, turns + 1
                    assert turns < 20, "the reference slides along a switch: pose it otherwise"
                else:
                    t = target
        rows[float(end)] = y
    return np.array([rows[float(t)] for t in times])


def _step(
    rates: Rates, modes: Callable[[float, np.ndarray], tuple[bool, ...]], t: float, y: np.ndarray, h: float,
    mode: tuple[bool, ...],
) -> tuple[float, np.ndarray, tuple[bool, ...]]:  # fmt: skip
    """One step; ends just past the first switch, whose new mode is returned (empty where there is none)."""
    after = runge_kutta(rates, t, y, h, mode)
    if modes(t + h, after) == mode:
        return t + h, after, ()
    low, high = 0.0, h
    for _ in range(60):
        middle = 0.5 * (low + high)
        if modes(t + middle, runge_kutta(rates, t, y, middle, mode)) == mode:
            low = middle
        else:
            high = middle
    after = runge_kutta(rates, t, y, high, mode)
    return t + high, after, modes(t + high, after)


def runge_kutta(rates: Rates, t: float, y: np.ndarray, h: float, mode: tuple[bool, ...]) -> np.ndarray:
    a = rates(t, y, mode)
    b = rates(t + h / 2, y + h / 2 * a, mode)
    c = rates(t + h / 2, y + h / 2 * b, mode)
    d = rates(t + h, y + h * c, mode)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


def increasing_root(function: Callable[[float], float], target: float, low: float = -1.0, high: float = 1.0) -> float:
    """Bisection of an increasing function, to rounding."""
    while function(low) > target:
        low *= 2.0
    while function(high) < target:
        high *= 2.0
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return high


def held(instants: Sequence[float], values: Sequence[float], times: np.ndarray) -> np.ndarray:
    """A sampled signal that keeps its value until the next instant, at which the new one already holds."""
    return np.asarray(values, dtype=float)[np.searchsorted(instants, times, side="right") - 1]
