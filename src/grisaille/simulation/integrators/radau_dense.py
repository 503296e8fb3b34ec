"""Values inside an implicit step, as accurate as the steps; the twin of gr_radau_dense.h, which explains the choices.

::

    q(s) = H(s) + s² (1 − s)² (a + b s),   s = (t − t_n)/h

has the values and slopes of the last two steps at their three ends; the collocation polynomial, with and without the
leading term of its error, says how far ``q`` can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from grisaille.simulation.integrators.radau import C, collocation_weights
from grisaille.simulation.integrators.steps import Floats


@dataclass
class Previous:
    """The start of the step before: value, slope, h³ w''' and their derivatives."""

    h: float
    y: Floats
    f: Floats
    third: Floats
    S: Floats
    SF: Floats


def third_derivative(Z: Floats) -> Floats:
    """h³ times the third derivative of the collocation polynomial."""
    a, b, _ = C
    weights = 6.0 / np.array([a * (a - b) * (a - 1.0), b * (b - a) * (b - 1.0), (1.0 - a) * (1.0 - b)])
    return np.asarray(weights @ Z)


def quintic_weights(s: float, ratio: float) -> Floats:
    """Weights of y_0, h f_0, y_1, h f_1, y_−1, h f_−1 in q(s); ``ratio`` = h_previous / h, 0 without a step before."""
    weights = np.append(_cubic(s), [0.0, 0.0])
    if not ratio > 0:
        return weights
    there = ratio**2 * (1.0 + ratio) ** 2
    steep = -2.0 * ratio * (1.0 + ratio) * (1.0 + 2.0 * ratio)
    g = (np.eye(6)[4] - np.append(_cubic(-ratio), [0.0, 0.0])) / there
    b = (np.eye(6)[5] - np.append(_cubic_slope(-ratio), [0.0, 0.0]) - steep * g) / there
    return np.asarray(weights + (s * (1.0 - s)) ** 2 * (g + b * (ratio + s)))


def mix(weights: Floats, h: float, start: Floats, slope: Floats, end: Floats, end_slope: Floats, before: Floats | None,
        before_slope: Floats | None) -> Floats:  # fmt: skip
    """q from the six vectors; the last two may be missing."""
    q = weights[0] * start + weights[1] * h * slope + weights[2] * end + weights[3] * h * end_slope
    if before is None or before_slope is None:
        return np.asarray(q)
    return np.asarray(q + weights[4] * before + weights[5] * h * before_slope)


def doubt(q: Floats, y: Floats, Z: Floats, third: Floats, h: float, s: float, previous: Previous | None,
          scale: Floats) -> float:  # fmt: skip
    """Disagreement of ``q`` with the collocation polynomial, the better of plain and mended, in units of ``scale``."""
    if q.size == 0:
        return 0.0
    nx = q.size
    plain = (q - (y + collocation_weights(s) @ Z)[:nx]) / scale[:nx]
    if previous is None:
        return math.sqrt(float(np.mean(plain**2)))
    # the third derivative belongs to the mean of the stages, at 0.6 h
    shape = s * (((0.25 * s - 0.6) * s + 0.45) * s - 0.1) / 6.0 * h / (0.4 * previous.h + 0.6 * h)
    mended = plain - shape * (third - previous.third * (h / previous.h) ** 3)[:nx] / scale[:nx]
    return math.sqrt(min(float(np.mean(plain**2)), float(np.mean(mended**2))))


def _cubic(s: float) -> Floats:
    return np.array([(1 + 2 * s) * (1 - s) ** 2, s * (1 - s) ** 2, s * s * (3 - 2 * s), s * s * (s - 1)])


def _cubic_slope(s: float) -> Floats:
    return np.array([6 * s * (s - 1), (1 - s) * (1 - 3 * s), 6 * s * (1 - s), s * (3 * s - 2)])
