"""A law of values of which only those between limits are known: limits of detection, ranges of instruments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks, wrapper
from grisaille.laws.law import Law
from grisaille.laws.law_arguments import broadcast_together, refuse_held, refuse_unknown, rows_of, shape_of
from grisaille.laws.law_derivatives import Derivatives

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.values import Formula, Values


@dataclass(frozen=True)
class Censored(wrapper._Wrapper):
    """A law of values of which it is known only that they are beyond a limit, where they are.

    A value at or below ``below`` counts with log F(below), one at or above ``above`` with log(1 − F(above)), all others
    with their log-density.

    Samples that are marked in the data, such as a cell ``<0.1``, count with the limit that stands there in place of the
    law's own. ``Censored(of=…)`` takes all limits from the data; what the limits of the other samples would have been
    is not known then, so that a marked sample adds the information that is observed in it, and the others that of the
    law inside.

    below, above : the limits, in the unit of the values; numbers, columns of the data, or None for none but
        those of marked samples. A column has a number for each sample: one that no value can reach where there is no
        limit
    of : the law of what would have been measured without limits, such as ``gr.LogNormal(log_std=0.2)``; its location is
        that of this law
    """

    below: float | None = None
    above: float | None = None
    of: Law = None  # type: ignore[assignment]

    has_atoms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        wrapper.check_limits(self)
        wrapper.check_of(self, ("Censored", "give all limits to one gr.laws.Censored(below, above, of)."))
        if checks.is_number(self.below) and checks.is_number(self.above) and not self.below < self.above:  # type: ignore[operator]
            raise ModelError(f"Censored: below = {self.below:g} must be smaller than above = {self.above:g}.")

    @property
    def support(self) -> tuple[Any, Any]:
        return self.of.support

    @property
    def limits(self) -> tuple[Values, Values]:
        """Return the limits, infinite where there is none."""
        return wrapper.limit(self.below, -np.inf), wrapper.limit(self.above, np.inf)

    def formula(self, value: Formula) -> Formula:
        return self.log_formula(value)

    def log_formula(self, value: ArrayLike) -> np.ndarray:
        law, y, shape = broadcast_together(self, value)
        found = np.empty(y.shape)
        for rows, part, low, high in law._sorted(y):
            inside = part.of.log_formula(y[rows]) if low is None else part.of.log_interval(low, high)
            found[rows] = inside
        return found.reshape(shape)

    def log_density(self, value: ArrayLike) -> np.ndarray:
        self.refuse_open()
        law, y, shape = broadcast_together(self, value)
        found = np.empty(y.shape)
        for rows, part, low, high in law._sorted(y):
            found[rows] = part.of.log_density(y[rows]) if low is None else part.of.log_interval(low, high)
        return np.where(np.isnan(y), np.nan, found).reshape(shape)

    def by_arguments_between(self, value: np.ndarray, names: tuple[str, ...]) -> Derivatives:
        """Return log p or log P with derivatives, each sample's by what is known of it."""
        law, y, shape = broadcast_together(self, value)
        inner, k = wrapper.inner_names(names), len(names)
        found, gradient, hessian = np.empty(y.shape), np.empty((*y.shape, k)), np.empty((*y.shape, k, k))
        for rows, part, low, high in law._sorted(y):
            if low is None:
                some = part.of.by_arguments_between(y[rows], inner)
            else:
                some = part.of.interval_by_arguments(low, high, inner)
            found[rows], gradient[rows], hessian[rows] = some.value, some.gradient, some.hessian
        return Derivatives(names, found.reshape(shape), gradient.reshape(*shape, k), hessian.reshape(*shape, k, k))

    def _sorted(self, y: np.ndarray) -> Iterator[tuple[np.ndarray, Any, Any, Any]]:
        """Yield rows of samples, their law, and the interval that they are known to lie in; None for values."""
        below, above = (np.broadcast_to(end, y.shape) for end in self.limits)
        is_below, is_above = y <= below, y >= above
        for chosen, ends in ((is_below, (-np.inf, below)), (is_above, (above, np.inf)), (~is_below & ~is_above, None)):
            rows = np.flatnonzero(chosen)
            if len(rows):
                low, high = (None, None) if ends is None else (np.broadcast_to(e, y.shape)[rows] for e in ends)
                yield rows, rows_of(self, rows, len(y)), low, high

    def information_within(self, low: Values, high: Values, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        raise ModelError("Censored: what is censored cannot be cut again; put the other law inside gr.laws.Censored.")

    def information(self, names: Sequence[str]) -> np.ndarray:
        """Return Σ P s sᵀ of the two limits, and the information of the values between them (N, k, k)."""
        refuse_unknown(self, names)
        refuse_held(self, names)
        self.refuse_open()
        inner, (below, above) = wrapper.inner_names(names), self.limits
        inside, found = self.of.information_within(self.of.after(below), self.of.before(above), inner)
        total = np.exp(inside)[..., None, None] * np.nan_to_num(found)
        for low, high in ((-np.inf, below), (above, np.inf)):
            end = self.of.interval_by_arguments(low, high, inner)
            s = np.where(np.isfinite(end.value)[..., None], end.gradient, 0.0)
            total = total + np.exp(end.value)[..., None, None] * s[..., :, None] * s[..., None, :]
        return np.asarray(np.broadcast_to(total, (*shape_of(self), len(inner), len(inner))))

    def distribution(self, value: ArrayLike) -> np.ndarray:
        """Return P(Y ≤ y), of a value beyond a limit that at the limit."""
        y, (below, above) = np.asarray(value, dtype=float), self.limits
        return np.where(y >= above, 1.0, self.of.distribution(np.maximum(y, below)))

    def distribution_below(self, value: ArrayLike) -> np.ndarray:
        """Return P(Y < y), of a value beyond a limit that at the limit."""
        y, (below, above) = np.asarray(value, dtype=float), self.limits
        return np.where(y <= below, 0.0, self.of.distribution_below(np.minimum(y, above)))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        return np.asarray(np.clip(self.of.quantile(probability), *self.limits))

    @property
    def mean(self) -> Values:
        """Return the mean of what is recorded: of values, and of limits where they are beyond."""
        return self._moments()[0]

    @property
    def deviation(self) -> Formula:
        mean, square = self._moments()
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.maximum(square - mean**2, 0.0))

    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of what is recorded and of its square."""
        self.refuse_open()
        below, above = self.limits
        inside, one, two = self.of.moments_within(self.of.after(below), self.of.before(above))
        share = np.exp(inside)
        first, second = _times(share, one), _times(share, two)
        for low, high, end in ((-np.inf, below, below), (above, np.inf, above)):
            share = np.exp(self.of.log_interval(low, high))
            first, second = first + _times(share, end), second + _times(share, np.square(end))
        return first, second

    def refused_arguments(self) -> tuple[int, str] | None:
        return wrapper.refused_limits(self) or super().refused_arguments()

    def refused_values(self, value: ArrayLike) -> tuple[int, str] | None:
        y, (below, above) = np.asarray(value, dtype=float), self.limits
        is_beyond = (y <= below) | (y >= above)
        return self.of.refused_values(np.where(is_beyond, np.nan, y))


def _times(share: np.ndarray, value: Values) -> np.ndarray:
    """Return share · value, zero where the share is."""
    with np.errstate(invalid="ignore"):
        return np.where(share == 0, 0.0, share * value)


def censored_path(law: Law | None) -> str | None:
    """Return where in a law, ``""`` or ``"of."``, limits stand that samples may have of their own; None for nowhere."""
    path = ""
    while isinstance(law, Law):
        if isinstance(law, Censored):
            return path
        law, path = getattr(law, "of", None), f"{path}of."
    return None
