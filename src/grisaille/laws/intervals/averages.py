"""Probabilities of intervals with their derivatives by the arguments of a law.

With s = ∂ log p/∂ arguments, averaged over what lies in the interval,

    ∂ log P = E s            ∂² log P = E [∂s + s sᵀ] − E s E sᵀ

of every law and every argument, in the middle and far out, continuous and of counts. Ends that have several dimensions
are taken one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.laws.intervals.interval_quadrature import average
from grisaille.laws.law_arguments import rows_of, shape_of
from grisaille.laws.law_derivatives import Derivatives

if TYPE_CHECKING:
    from collections.abc import Callable

    from grisaille.laws.measured import Measured


Half = np.ndarray | None
"""Half the width of intervals, where it is known better than from their ends."""
COARSE_STEP = 0.2
"""Of the quadrature of informations: relative errors below 1e-6."""


def log_mass(law: Measured, low: np.ndarray, high: np.ndarray, half: Half = None) -> np.ndarray:
    """Return log P of intervals, of counts all from low to high."""
    return _each(law, low, high, lambda law, x: np.zeros((*x.shape, 0)), 0, half=half)[0]


def mass_by_arguments(
    law: Measured, low: np.ndarray, high: np.ndarray, names: tuple[str, ...], half: Half = None
) -> Derivatives:
    """Return log P of intervals with its gradient and Hessian."""
    k = len(names)

    def parts(law: Measured, x: np.ndarray) -> np.ndarray:
        at = law.by_arguments_between(x, names)
        s = at.gradient
        second = at.hessian + s[..., :, None] * s[..., None, :]
        return np.concatenate([s, second.reshape(*x.shape, k * k)], axis=-1)

    value, means = _each(law, low, high, parts, k + k * k, half=half)
    slope, second = means[..., :k], means[..., k:].reshape(*low.shape, k, k)
    return Derivatives(names, value, slope, second - slope[..., :, None] * slope[..., None, :])


def squared_scores(
    law: Measured, low: np.ndarray, high: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return log P of intervals and E[s sᵀ] of what lies in them."""
    k = len(names)

    def squares(law: Measured, x: np.ndarray) -> np.ndarray:
        s = law.by_arguments_between(x, names).gradient
        return np.asarray((s[..., :, None] * s[..., None, :]).reshape(*x.shape, k * k))

    value, means = _each(law, low, high, squares, k * k, COARSE_STEP)
    return value, means.reshape(*low.shape, k, k)


def moments(law: Measured, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log P of intervals, and the means of values and of their squares in them."""
    value, means = _each(law, low, high, lambda law, x: np.stack([x, x * x], axis=-1), 2)
    return value, means[..., 0], means[..., 1]


def _each(
    law: Measured,
    low: np.ndarray,
    high: np.ndarray,
    of: Callable[[Measured, np.ndarray], np.ndarray],
    size: int,
    step: float = 0.125,
    half: Half = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return averages over intervals of any shape that contains the law's."""
    shape, own = low.shape, shape_of(law)
    if own:
        rows = np.broadcast_to(np.arange(int(np.prod(own))).reshape(own), shape).ravel()
        law = rows_of(law, rows, int(np.prod(own)))
    value, means = average(law, low.ravel(), high.ravel(), of, size, step, None if half is None else half.ravel())
    return value.reshape(shape), np.nan_to_num(means).reshape(*shape, size)
