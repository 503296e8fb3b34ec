"""A law of values that are recorded in steps, as encoders and displays do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.laws import checks, wrapper
from grisaille.laws.cells import cells_of, rounded_information, rounded_moments
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import for_each
from grisaille.laws.law_derivatives import Derivatives

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import ByPair, Formula, Values


MULTIPLE_TOLERANCE = 0.01
"""Of a step: a value that is further from a multiple has not been rounded to it."""
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Rounded(wrapper._Wrapper):
    """A law of values that have been rounded to the nearest multiple of a step: P = F(y + step/2) − F(y − step/2).

    step : in the unit of the values; a number or a column of the data
    of : the law of what is rounded, such as ``gr.Normal(std=0.1)``; its location is that of this law, the prediction
        before it is rounded
    """

    step: float
    of: Law

    has_atoms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.positive(self, "step")
        wrapper.check_of(
            self,
            ("Rounded", "what is rounded twice is not rounded to the nearest multiple: give the coarser step alone."),
            (
                "Censored",
                "values are rounded first, then censored: write gr.laws.Censored(below, above, gr.laws.Rounded(…)).",
            ),
        )

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return False

    @property
    def support(self) -> tuple[Any, Any]:
        low, high = self.of.support
        return self._nearest(low), self._nearest(high)

    def formula(self, value: Formula) -> Formula:
        return self._numbers(np.asarray(value, dtype=float))

    def _numbers(self, value: np.ndarray) -> Formula:
        return self.of.log_interval(*self._cell(value))

    def by_arguments_between(self, value: np.ndarray, names: tuple[str, ...]) -> Derivatives:
        low, high, half = self._cell(np.asarray(value, dtype=float))
        found = self.of.interval_by_arguments(low, high, wrapper.inner_names(names), half)
        return Derivatives(names, found.value, found.gradient, found.hessian)

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        return self.of.log_interval(*self._ends(low, high))

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        found = self.of.interval_by_arguments(*self._ends(low, high), wrapper.inner_names(names))
        return Derivatives(tuple(names), found.value, found.gradient, found.hessian)

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        low, high, _ = for_each(self, low, high)
        return cells_of(self).information_within(self._index_up(low), self._index_down(high), names)

    def moments_within(self, low: Values, high: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low, high, _ = for_each(self, low, high)
        value, one, two = cells_of(self).moments_within(self._index_up(low), self._index_down(high))
        return value, one * self.step, two * np.square(self.step)

    def _information(self, names: tuple[str, ...]) -> ByPair | None:
        return rounded_information(self, names)

    def after(self, limit: Values) -> Values:
        return (self._index_down(limit) + 1.0) * self.step

    def before(self, limit: Values) -> Values:
        return (self._index_up(limit) - 1.0) * self.step

    def distribution(self, value: ArrayLike) -> np.ndarray:
        end = (self._index_down(np.asarray(value, dtype=float)) + 0.5) * self.step
        return np.asarray(self.of.distribution_below(end))

    def distribution_below(self, value: ArrayLike) -> np.ndarray:
        end = (self._index_up(np.asarray(value, dtype=float)) - 0.5) * self.step
        return np.asarray(self.of.distribution_below(end))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        return np.asarray(self._nearest(self.of.quantile(probability)))

    @property
    def mean(self) -> Values:
        return rounded_moments(self)[0]

    @property
    def deviation(self) -> Values:
        return rounded_moments(self)[1]

    def refused_arguments(self) -> tuple[int, str] | None:
        step = np.ravel(self.step)
        is_none = ~(step > 0)
        if is_none.any():
            at = int(np.argmax(is_none))
            return at, f"step = {step[at]:g} is not positive"
        return super().refused_arguments()

    def refused_values(self, value: ArrayLike) -> tuple[int, str] | None:
        x = np.asarray(value, dtype=float)
        away = np.abs(x / self.step - np.round(x / self.step))
        is_between = np.isfinite(x) & (away > MULTIPLE_TOLERANCE)
        if is_between.any():
            at = int(np.argmax(is_between))
            step = float(np.broadcast_to(self.step, x.shape).flat[at])
            return at, f"is {x.flat[at]:.10g}; rounded values are multiples of step = {step:g}"
        return super().refused_values(value)

    def _cell(self, value: np.ndarray) -> tuple[Values, Values, Values]:
        """Return what is rounded to values: ends and half the width."""
        half = 0.5 * np.asarray(self.step, dtype=float)
        return value - half, self.of.before(value + half), half

    def _ends(self, low: Values, high: Values) -> tuple[Values, Values]:
        """Return what is rounded to values from low to high."""
        first = (self._index_up(np.asarray(low, dtype=float)) - 0.5) * self.step
        return first, self.of.before((self._index_down(np.asarray(high, dtype=float)) + 0.5) * self.step)

    def _nearest(self, value: Values) -> Values:
        return np.floor(np.asarray(value, dtype=float) / self.step + 0.5) * self.step

    def _index_up(self, value: Values) -> Values:
        return np.ceil(np.asarray(value, dtype=float) / self.step - TIE_TOLERANCE)

    def _index_down(self, value: Values) -> Values:
        return np.floor(np.asarray(value, dtype=float) / self.step + TIE_TOLERANCE)
