"""A law cut off at limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws import checks
from grisaille.laws.derivatives import Derivatives
from grisaille.laws.law import Law


@dataclass(frozen=True)
class Truncated(Law):
    """A law cut off at limits, with the probability outside spread over what is left.

    below, above : the limits, in the unit of the parameter; None for none
    of : the law, such as ``gr.Normal(1.0, 0.5)``; it counts in its own measure
    """

    below: float | None = None
    above: float | None = None
    of: Law = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for side in ("below", "above"):
            checks.location(self, side)
        if not isinstance(self.of, Law):
            raise ModelError(f"Truncated: of must be a law such as gr.Normal(mean, std), got {self.of!r}.")
        low, high = self.support
        if not low < high:
            raise ModelError(f"Truncated: nothing is left of {self.of!r} between {low:g} and {high:g}.")
        if not self.is_open and not self._mass > 0:
            raise ModelError(
                f"Truncated: {self.of!r} has no probability between {low:g} and {high:g} that can be told from zero."
            )

    @property
    def measure(self) -> Literal["value", "log"]:  # type: ignore[override]
        return self.of.measure

    @property
    def is_open(self) -> bool:
        return self.of.is_open

    @property
    def is_flat(self) -> bool:
        return self.of.is_flat

    @property
    def kinks(self) -> tuple[float, ...]:
        low, high = self.support
        return tuple(k for k in self.of.kinks if low < k < high)

    def refuse_open(self) -> None:
        self.of.refuse_open()

    def at(self, location: Any) -> Truncated:
        return Truncated(self.below, self.above, self.of.at(location))

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.of.support
        return (
            low if self.below is None else max(low, self.below),
            high if self.above is None else min(high, self.above),
        )

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.asarray(self.of.distribution(np.array(self.support)), dtype=float)

    @property
    def _mass(self) -> float:
        return float(self._ends[1] - self._ends[0])

    def formula(self, value: Any) -> Any:
        return self.of.formula(value) - math.log(self._mass)

    @property
    def mode(self) -> float:
        return float(np.clip(self.of.mode, *self.support))

    def standardised(self, value: Any) -> Any:
        return self.of.standardised(value)

    def residual(self, value: float) -> tuple[float, float] | None:
        return self.of.residual(value)

    def derivatives(self, value: Any, **parameters: Any) -> Derivatives:
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

    def distribution(self, value: Any) -> np.ndarray:
        inside = self.of.distribution(np.clip(value, *self.support))
        return np.asarray(np.clip((inside - self._ends[0]) / self._mass, 0.0, 1.0))

    def quantile(self, probability: Any) -> np.ndarray:
        return self.of.quantile(self._ends[0] + self._mass * np.asarray(probability, dtype=float))
