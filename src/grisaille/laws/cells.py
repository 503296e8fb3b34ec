"""The number of the step that a rounded value is: a law of whole numbers, whose sums are those over counts.

The expected information of a rounded value is such a sum, at a cost that does not grow with the number of steps. For
the normal law it depends on step/std alone where the step is at most a standard deviation: what depends on the place
of the mean between two steps is of the order exp(−2 π² std²/step²).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.laws import wrapper
from grisaille.laws.intervals.interval_pieces import peak_of
from grisaille.laws.intervals.normal_intervals import normal_moments
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import shape_of
from grisaille.laws.law_derivatives import Derivatives
from grisaille.laws.normal import Normal

if TYPE_CHECKING:
    from grisaille.laws.rounded import Rounded
    from grisaille.laws.values import ByPair, Formula, Values


SMOOTH_STEP = 0.9
"""Step in standard deviations below which the place of the mean does not matter: to 1e-10."""
SUMMED_DEVIATIONS = 9.0
"""Standard deviations on either side that are summed."""
PLACE_SPACING = 0.5
"""Standard deviations between the places that stand for all where the place does not matter; the error is e⁻⁷⁹."""


@dataclass(frozen=True)
class _Cells(wrapper._Wrapper):
    """The whole numbers y / step of a rounded law."""

    step: float
    of: Law

    has_atoms: ClassVar[bool] = False

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return True

    @property
    def has_steps(self) -> bool:  # type: ignore[override]
        return self.of.is_discrete

    @property
    def support(self) -> tuple[Any, Any]:
        low, high = (np.asarray(end, dtype=float) / self.step for end in self.of.support)
        return np.floor(low + 0.5), np.floor(high + 0.5)

    @property
    def peak(self) -> Values | None:
        return peak_of(self.of, shape_of(self)) / self.step

    def formula(self, value: Formula) -> Formula:
        return self.of.log_interval(*self._cell(value))

    def by_arguments_between(self, value: np.ndarray, names: tuple[str, ...]) -> Derivatives:
        low, high, half = self._cell(value)
        return self.of.interval_by_arguments(low, high, wrapper.inner_names(names), half)

    def _cell(self, value: Any) -> tuple[Values, Values, Values]:
        step = np.asarray(self.step, dtype=float)
        return (value - 0.5) * step, self.of.before((value + 0.5) * step), 0.5 * step


def cells_of(law: Rounded) -> _Cells:
    """Return the law of the numbers of the steps."""
    found: _Cells = object.__new__(_Cells)
    object.__setattr__(found, "step", law.step)
    object.__setattr__(found, "of", law.of)
    return found


def rounded_information(law: Rounded, names: tuple[str, ...]) -> ByPair | None:
    """Return the expected information of a rounded normal value; None of other laws."""
    if type(law.of) is not Normal:
        return None
    shape = shape_of(law)
    given: Any = (law.of.mean, law.of.std, law.step)
    mean, std, step = (np.ravel(np.broadcast_to(v, shape)) for v in given)
    width, found = step / std, np.zeros((3, mean.size))
    is_smooth = width <= SMOOTH_STEP
    if is_smooth.any():
        distinct, again = np.unique(width[is_smooth], return_inverse=True)
        places = (
            np.arange(-SUMMED_DEVIATIONS, SUMMED_DEVIATIONS + PLACE_SPACING, PLACE_SPACING)[:, None] + 0.0 * distinct
        )
        found[:, is_smooth] = (_summed(places, distinct) * (PLACE_SPACING / distinct))[:, again]
    rows = np.flatnonzero(~is_smooth)
    if len(rows):
        cells = _numbers_near(mean[rows], std[rows], step[rows])
        found[:, rows] = _summed((cells * step[rows] - mean[rows]) / std[rows], width[rows])
    found = (found / std**2).reshape(3, *shape)
    pairs = (("of.mean", "of.mean"), ("of.mean", "of.std"), ("of.std", "of.std"))
    return dict(zip(pairs, found, strict=True))


def rounded_moments(law: Rounded) -> tuple[Values, Values]:
    """Return mean and standard deviation: of a normal law in narrow steps W. F. Sheppard's, std² + step²/12."""
    cells, shape = cells_of(law), shape_of(law)
    if type(law.of) is not Normal:
        return cells.mean * law.step, cells.deviation * law.step
    law.refuse_open()
    given: Any = (law.of.mean, law.of.std, law.step)
    mean, std, step = (np.ravel(np.broadcast_to(v, shape)) for v in given)
    found, spread = mean.astype(float), np.sqrt(std**2 + step**2 / 12)
    rows = np.flatnonzero(step > SMOOTH_STEP * std)
    if len(rows):
        numbers = _numbers_near(mean[rows], std[rows], step[rows])
        flat, half = ((numbers * step[rows] - mean[rows]) / std[rows]).ravel(), 0.5 * step[rows] / std[rows]
        half = np.broadcast_to(half, numbers.shape).ravel()
        share = np.exp(normal_moments(flat - half, flat + half, half)[0]).reshape(numbers.shape)
        away = numbers * step[rows] - mean[rows]
        shift = (share * away).sum(axis=0)
        found[rows], spread[rows] = mean[rows] + shift, np.sqrt((share * (away - shift) ** 2).sum(axis=0))
    return found.reshape(shape), spread.reshape(shape)


def _numbers_near(mean: np.ndarray, std: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the numbers of all steps that a normal value can be rounded to, (q, N)."""
    first = np.floor((mean - SUMMED_DEVIATIONS * std) / step)
    return np.asarray(first + np.arange(np.ceil(2 * SUMMED_DEVIATIONS / SMOOTH_STEP) + 3)[:, None])


def _summed(places: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return Σ P s sᵀ per std², three of it, over cells (q, N) of the standard normal law."""
    flat, half = places.ravel(), np.broadcast_to(0.5 * width, places.shape).ravel()
    log_p, (one, two, *_) = normal_moments(flat - half, flat + half, half)
    parts = np.exp(log_p) * np.nan_to_num(np.stack([one * one, one * (two - 1), (two - 1) ** 2]))
    return np.asarray(parts.reshape(3, *places.shape).sum(axis=1))
