"""A law cut off at limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import wrapper
from grisaille.laws.count_quantiles import count_quantile
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import broadcast_together, is_filled, is_formula, rows_of
from grisaille.laws.law_derivatives import Derivatives
from grisaille.laws.probabilities import quantiles_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import Formula, Values


MIN_PROBABILITY = 1e-10
"""Of a probability."""


@dataclass(frozen=True)
class Truncated(wrapper._Wrapper):
    """A law cut off at limits, with the probability outside spread over what is left: p / (F(above) − F(below)).

    below, above : the limits, in the unit of the values; of counts they belong to what is left. None for none; in laws
        of measurements also columns of the data
    of : the law, such as ``gr.Normal(1.0, 0.5)``; its location is that of this law, and as a prior it counts in its own
        measure
    """

    below: float | None = None
    above: float | None = None
    of: Law = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        wrapper.check_limits(self)
        wrapper.check_of(
            self,
            (
                "Censored",
                "values are cut off first, then censored: write gr.laws.Censored(below, above, gr.laws.Truncated(…)).",
            ),
        )
        if any(is_formula(v) for v in self.arguments.values()):
            return
        low, high = self.support
        if not low < high:
            raise ModelError(f"Truncated: nothing is left of {self.of!r} between {low:g} and {high:g}.")
        if not self.is_open and not self._mass > 0:
            raise ModelError(
                f"Truncated: {self.of!r} has no probability between {low:g} and {high:g} that can be "
                f"distinguished from zero."
            )

    @property
    def is_flat(self) -> bool:
        return self.of.is_flat

    @property
    def kinks(self) -> tuple[float, ...]:
        low, high = self.support
        return tuple(k for k in self.of.kinks if low < k < high)

    @property
    def support(self) -> tuple[Any, Any]:
        low, high = self.of.support
        if is_filled(self):
            below, above = self.limits
            return np.maximum(low, below), np.minimum(high, above)
        return (
            low if self.below is None else max(low, self.below),
            high if self.above is None else min(high, self.above),
        )

    @property
    def limits(self) -> tuple[Values, Values]:
        """Return the limits, infinite where there is none."""
        return wrapper.limit(self.below, -np.inf), wrapper.limit(self.above, np.inf)

    def refused_arguments(self) -> tuple[int, str] | None:
        return wrapper.refused_limits(self) or super().refused_arguments()

    @property
    def peak(self) -> Values | None:
        inside = self.of.peak
        return None if inside is None else np.clip(inside, *self.support)

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.asarray(self.of.distribution(np.array(self.support)), dtype=float)

    @property
    def _mass(self) -> float:
        return float(self._ends[1] - self._ends[0])

    @property
    def _is_prior(self) -> bool:
        """Return whether it is continuous with numbers as arguments: closed forms of one law."""
        return not self.is_discrete and not self.has_atoms and not is_filled(self)

    def formula(self, value: Formula) -> Formula:
        return self.of.formula(value) - math.log(self._mass)

    def _numbers(self, value: np.ndarray) -> Formula:
        if self._is_prior:
            return self.formula(value)
        return self.of.log_formula(value) - self.of.log_interval(*self.limits)

    def log_density(self, value: ArrayLike) -> np.ndarray:
        if self._is_prior:
            return super().log_density(value)
        x, (low, high) = np.asarray(value, dtype=float), self.limits
        found = self.of.log_density(x) - self.of.log_interval(low, high)
        return np.where((x >= low) & (x <= high) | np.isnan(x), found, -np.inf)

    def by_arguments_between(self, value: np.ndarray, names: tuple[str, ...]) -> Derivatives:
        inner = wrapper.inner_names(names)
        at, whole = self.of.by_arguments_between(value, inner), self.of.interval_by_arguments(*self.limits, inner)
        return Derivatives(names, self.log_density(value), at.gradient - whole.gradient, at.hessian - whole.hessian)

    def log_interval(self, low: Values, high: Values, half: Values | None = None) -> np.ndarray:
        return np.asarray(self.of.log_interval(*self._within(low, high, half)) - self.of.log_interval(*self.limits))

    def interval_by_arguments(
        self, low: Values, high: Values, names: Sequence[str], half: Values | None = None
    ) -> Derivatives:
        inner, (low, high, half) = wrapper.inner_names(names), self._within(low, high, half)
        at, whole = (
            self.of.interval_by_arguments(low, high, inner, half),
            self.of.interval_by_arguments(*self.limits, inner),
        )
        return Derivatives(
            tuple(names), at.value - whole.value, at.gradient - whole.gradient, at.hessian - whole.hessian
        )

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        inner, (low, high, _) = wrapper.inner_names(names), self._within(low, high, None)
        log_p, squares = self.of.information_within(low, high, inner)
        at, whole = self.of.interval_by_arguments(low, high, inner), self.of.interval_by_arguments(*self.limits, inner)
        s, t = at.gradient, whole.gradient
        shift = (
            t[..., :, None] * t[..., None, :] - s[..., :, None] * t[..., None, :] - t[..., :, None] * s[..., None, :]
        )
        return log_p - whole.value, squares + shift

    def moments_within(self, low: Values, high: Values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        low, high, _ = self._within(low, high, None)
        log_p, one, two = self.of.moments_within(low, high)
        return log_p - self.of.log_interval(*self.limits), one, two

    def _within(self, low: Values, high: Values, half: Values | None) -> tuple[Values, Values, Values | None]:
        """Return what an interval has in common with what is left, and half its width where that is known."""
        below, above = self.limits
        first, last = np.maximum(low, below), np.minimum(high, above)
        if half is not None:
            half = np.where((first > low) | (last < high), 0.5 * (last - first), half)
        return first, last, half

    def after(self, limit: Values) -> Values:
        return self.of.after(limit)

    def before(self, limit: Values) -> Values:
        return self.of.before(limit)

    @property
    def mode(self) -> float:
        return float(np.clip(self.of.mode, *self.support))

    def standardised(self, value: Formula) -> Any:
        return self.of.standardised(value)

    def residual(self, value: float) -> tuple[float, float] | None:
        return self.of.residual(value)

    def derivatives(self, value: ArrayLike, **parameters: Any) -> Derivatives:
        """Return log p with its derivatives by the value and by the parameters of the law that is cut off.

        With s = ∂ log f/∂p of the whole, ∂ log Z = E s and ∂² log Z = E (∂s + s sᵀ) − E s E sᵀ over what is left.
        """
        if any(np.ndim(v) for v in parameters.values()):
            raise ModelError("Truncated: derivatives at arrays of parameters are not available.")
        law = type(self.of)(**{**self.of.parameters, **parameters})
        here, (slope, bend) = law.derivatives(value), Truncated(self.below, self.above, law)._of_mass()
        shift = math.log(Truncated(self.below, self.above, law)._mass)
        gradient, hessian = here.gradient.copy(), here.hessian.copy()
        gradient[..., 1:] -= slope
        hessian[..., 1:, 1:] -= bend
        return Derivatives(here.names, here.value - shift, gradient, hessian)

    def _of_mass(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first and second derivatives of log Z by the parameters."""
        from scipy.integrate import quad_vec

        n = len(self.of.parameters)

        def moments(x: float) -> np.ndarray:
            at = self.of.derivatives(x)
            s = at.gradient[1:]
            second = at.hessian[1:, 1:] + np.outer(s, s)
            return np.asarray(np.exp(at.value) / self._mass * np.concatenate([s, second.ravel()]))

        low, high = (float(q) for q in self.of.quantile(np.clip(self._ends, 1e-300, 1 - 1e-16)))
        low, high = max(low, self.support[0]), min(high, self.support[1])
        found = np.asarray(quad_vec(moments, low, high, epsabs=1e-12, epsrel=1e-11)[0])
        slope, second = found[:n], found[n:].reshape(n, n)
        return slope, second - np.outer(slope, slope)

    def distribution(self, value: ArrayLike) -> np.ndarray:
        if not self._is_prior:
            return self._share(np.asarray(value, dtype=float))
        inside = self.of.distribution(np.clip(value, *self.support))
        return np.asarray(np.clip((inside - self._ends[0]) / self._mass, 0.0, 1.0))

    def distribution_below(self, value: ArrayLike) -> np.ndarray:
        if self._is_prior:
            return self.distribution(value)
        return self._share(self.of.before(np.asarray(value, dtype=float)))

    def _share(self, value: Values) -> np.ndarray:
        """Return the probability from the lower limit to values, or one less that from there to the upper one."""
        low, high = self.limits
        whole = self.of.log_interval(low, high)
        with np.errstate(all="ignore"):
            below = np.exp(self.of.log_interval(low, np.minimum(value, high)) - whole)
            above = np.exp(self.of.log_interval(np.maximum(self.of.after(value), low), high) - whole)
        found = np.where(below > 0.5, 1 - above, below)
        return np.where(value < low, 0.0, np.where(value >= high, 1.0, found))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        p = np.asarray(probability, dtype=float)
        if self._is_prior:
            return self.of.quantile(self._ends[0] + self._mass * p)
        if self.is_discrete:
            return count_quantile(self, p)
        low, high = self.limits
        first, mass = self.of.distribution_below(low), np.exp(self.of.log_interval(low, high))
        found = np.clip(self.of.quantile(first + mass * p), low, high)
        return found if self.has_atoms else self._made_exact(found, p)

    def _made_exact(self, found: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return quantiles that are searched for where those of the whole law have lost digits, far out."""
        law, x, shape = broadcast_together(self, found)
        p = np.ravel(np.broadcast_to(p, shape))
        rows = np.flatnonzero(np.abs(law.distribution(x) - p) > MIN_PROBABILITY)
        if len(rows):
            x = x.copy()
            x[rows] = quantiles_of(rows_of(law, rows, len(x)), p[rows])
        return x.reshape(shape)
