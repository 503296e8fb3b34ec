"""Trajectories by NumPy alone: what data of the zoo are made of.

Fixed Runge–Kutta steps, many per sample; disturbances are constant over a step (low-pass noise, exactly discretised) or
added after it (white noise).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

STEPS = 40
"""Between two samples."""

Rate = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


def follow(rate: Rate, start: list[float], times: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """States at ``times`` of x' = rate(t, x, w), one row each.

    noise : (number of small steps, number of disturbances), held over each small step
    """
    x = np.array(start, dtype=float)
    rows, k = [x], 0
    for a, b in pairwise(times):
        h = (b - a) / STEPS
        for i in range(STEPS):
            w = noise[k] if noise is not None else np.zeros(0)
            x, k = _runge_kutta(rate, a + i * h, x, w, h), k + 1
        rows.append(x)
    return np.array(rows)


def _runge_kutta(rate: Rate, t: float, x: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
    """Stages at the ends of a step stay inside it, where held inputs jump."""
    inside = 1e-9 * h
    a = rate(t + inside, x, w)
    b = rate(t + h / 2, x + h / 2 * a, w)
    c = rate(t + h / 2, x + h / 2 * b, w)
    d = rate(t + h - inside, x + h * c, w)
    return np.asarray(x + h / 6 * (a + 2 * b + 2 * c + d))


def white(random: np.random.Generator, times: np.ndarray, scale: float) -> np.ndarray:
    """White noise of intensity scale² as it acts over small steps: an average over each."""
    h = np.repeat(np.diff(times) / STEPS, STEPS)
    return np.asarray(scale / np.sqrt(h) * random.normal(size=len(h)))


def lowpass(random: np.random.Generator, times: np.ndarray, bandwidth: float, scale: float) -> np.ndarray:
    """b/(s + b) of white noise, stationary from the beginning: variance scale² b/2."""
    h = np.repeat(np.diff(times) / STEPS, STEPS)
    deviation = scale * np.sqrt(bandwidth / 2)
    w, path = deviation * random.normal(), []
    for step in h:
        path.append(w)
        a = np.exp(-bandwidth * step)
        w = a * w + deviation * np.sqrt(1 - a * a) * random.normal()
    return np.array(path)


def held(times: np.ndarray, values: np.ndarray) -> Callable[[float], float]:
    """A signal that keeps each value until the next."""
    return lambda t: float(values[np.searchsorted(times, t, side="right") - 1])
