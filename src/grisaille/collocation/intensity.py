"""Disturbance intensities from known measurement noise: the misfit of the data is as large as the noise predicts.

    σ̂_j²(Q)/σ_j² = (|residuals of output j|² + tr Φ_j H⁻¹ Φ_jᵀ)/n_j     (standardised residuals),     g_j = log of it

H is the curvature of the whole inner problem, unknowns included; the trace needs only the part of H⁻¹ inside the band.
g → 0 from below also as Q → ∞, so the wanted intensity is a root, not a minimum: the first one where g falls through
zero, coming from small Q. Several intensities are bracketed one after the other, each from the output it is paired
with, and then found together: one after the other they zigzag, as each disturbance also moves what the others explain.
Where g stays below zero however small Q is, the data leave no room for a disturbance. Reference: M. S. Varziri,
Parameter Estimation in Stochastic Dynamic Models (2008), eqs. (5.15), (6.31).

How well a misfit tells an intensity follows from what the data explain of their own predictions, A = Φ H⁻¹ Φᵀ with the
trace T_j for output j. For a linear model residuals have the covariance I − A, and with x_k the logarithms of scales

    Var |r_j|² = 2 Σ_l ‖(I − A)_jl‖² ,     E ∂(n_j g_j)/∂x_k = −∂T_j/∂x_k ,     Σ_k ∂T_j/∂x_k = 2 (T_j − Σ_l ‖A_jl‖²),

so that derivatives of T are all that is needed. Few directions that the disturbance moves among many that it does not
leave a misfit that hardly changes: low-pass noise behind an integration is told three times worse than by a likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.collocation.array_types import Floats

LOWEST, HIGHEST = -10.0, 10.0
"""Natural logarithms of the scale, relative to the guess, between which a root is looked for."""
BRACKETING_STRIDE = 0.7
"""Step of the bracketing in the logarithm of the scale: a factor of two."""

STRIDE_GROWTH = 1.3
MIN_RELATIVE_CHANGE = 0.02
"""Relative change of g over a stride below which a smaller scale changes nothing any more."""
SMALL, LONG = -4.0, 0.4
"""Logarithm of a scale above which this is not believed, and the stride that counts for it."""
ROUNDS, CAP, PROBE = 20, 1.0, 0.05
"""Of the joint search: steps, the longest one and that of differences, in the logarithm of a scale."""


@dataclass(frozen=True, eq=False)
class OutputMisfit:
    """Of every output at a solution."""

    squares: Floats
    """Of standardised residuals, summed."""
    explained: Floats
    """T: variances of predictions in units of the noise, summed."""
    count: Floats

    @property
    def ratios(self) -> Floats:
        """σ̂²/σ²"""
        return np.asarray((self.squares + self.explained) / np.maximum(self.count, 1))


def errors_of_roots(misfit: OutputMisfit, slopes: Floats, paired: Sequence[int]) -> Floats:
    """Return standard deviations of the logarithms of scales that are roots of the conditions of paired outputs.

    slopes : ∂T_j/∂x_k, (outputs, scales)
    Covariances between outputs are bounded from above by their sums, ‖A_jl‖² counting for j and for l.
    """
    explained_twice = misfit.explained - 0.5 * slopes.sum(axis=1)
    scatter = 2 * np.maximum(misfit.count - 2 * misfit.explained + explained_twice, 0.0)[list(paired)]
    inverse = np.linalg.pinv(slopes[list(paired)])
    return np.asarray(np.sqrt(np.einsum("kj,j,kj->k", inverse, scatter, inverse)))


def first_root(
    g: Callable[[float], float],
    start: float,
    tolerance: float,
    stride: float = BRACKETING_STRIDE,
    highest: float = HIGHEST,
) -> tuple[float, bool]:
    """Return where g first falls through zero, from small arguments; False where it never does (g < 0 throughout, or >
    0).

    Where g stays above zero up to ``highest``, the place at which it was smallest. Strides grow: beyond its first root
    g stays below zero, so that a long one cannot miss it.
    """
    value = g(start)
    low = high = start
    smallest, place = value, start
    if value < 0:
        while value < 0:
            high, high_value = low, value
            low -= stride
            stride *= STRIDE_GROWTH
            if low < LOWEST:
                return LOWEST, False
            value = g(low)
            if (
                low < SMALL
                and high - low > LONG
                and value < 0
                and abs(value - high_value) < MIN_RELATIVE_CHANGE * abs(value)
            ):
                return low, False
        return _between(g, low, value, high, high_value, tolerance), True
    while value >= 0:
        low, low_value = high, value
        high += stride
        stride *= STRIDE_GROWTH
        if high > highest:
            return place, False
        value = g(high)
        if value < smallest:
            smallest, place = value, high
    return _between(g, low, low_value, high, value, tolerance), True


def joint_root(g: Callable[[Floats], Floats], x: Floats, tolerance: float) -> tuple[Floats, bool]:
    """Return a common root near x where every g falls with its own argument: Newton by differences, kept up by Broyden.

    False, with the best place seen, where steps stop helping or lead to a root of another kind.
    """
    value, J, fresh = g(x), None, False
    for _ in range(ROUNDS):
        if J is None:
            J, fresh = _differences(g, x, value), True
        try:
            step = -np.linalg.solve(J, value)
        except np.linalg.LinAlgError:
            return x, False
        step *= min(1.0, CAP / max(np.abs(step).max(), 1e-300))
        trial = g(x + step)
        if not np.linalg.norm(trial) < np.linalg.norm(value):
            if np.abs(step).max() < tolerance:
                return x, bool((np.diag(J) < 0).all())
            if fresh:
                return x, False
            J = None
            continue
        J = J + np.outer(trial - value - J @ step, step) / (step @ step)
        x, value, fresh = x + step, trial, False
        if np.abs(step).max() < tolerance:
            return x, bool((np.diag(J) < 0).all())
    return x, False


def _differences(g: Callable[[Floats], Floats], x: Floats, value: Floats) -> Floats:
    columns = [(g(x + PROBE * e) - value) / PROBE for e in np.eye(len(x))]
    return np.array(columns).T


def _between(g: Callable[[float], float], a: float, ga: float, b: float, gb: float, tolerance: float) -> float:
    """Return a root in a bracket (the false position method of Anderson and Björck, with bisection)."""
    for _ in range(60):
        if abs(b - a) <= tolerance or ga == gb:
            break
        c = b - gb * (b - a) / (gb - ga)
        if not min(a, b) < c < max(a, b):
            c = (a + b) / 2
        gc = g(c)
        if abs(gc) < 1e-3 * tolerance:
            return c
        if gc * gb < 0:
            a, ga = b, gb
        else:
            factor = 1 - gc / gb
            ga *= factor if factor > 0 else 0.5
        b, gb = c, gc
    return b
