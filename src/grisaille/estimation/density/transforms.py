"""Bounded unknowns as coordinates on the whole line, with the logarithm of the Jacobian.

    two bounds a, b    θ = a + (b − a) / (1 + e^−ξ)      log dθ/dξ = log (b − a) − |ξ| − 2 log (1 + e^−|ξ|)
    lower bound a      θ = a + e^ξ                       log dθ/dξ = ξ
    upper bound b      θ = b − e^−ξ                      log dθ/dξ = −ξ
    none               θ = ξ                             log dθ/dξ = 0

θ grows with ξ. Reference: Stan Reference Manual, "Constraint Transforms" (their upper bound falls with ξ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

MAX_EXPONENT = 700.0
"""Exponent."""


@dataclass(frozen=True)
class Transform:
    """Of one unknown."""

    lower: float
    upper: float

    @property
    def kind(self) -> Literal["logit", "log", "log from above", "identity"]:
        """Return which of the four it is."""
        if np.isfinite(self.lower) and np.isfinite(self.upper):
            return "logit"
        if np.isfinite(self.lower):
            return "log"
        return "log from above" if np.isfinite(self.upper) else "identity"

    def outer(self, xi: float) -> float:
        """Return θ, inside the bounds also after rounding."""
        if self.kind == "identity":
            return xi
        if self.kind == "logit":
            share = 0.5 + 0.5 * float(np.tanh(xi / 2))
            inside = self.lower + (self.upper - self.lower) * share
        elif self.kind == "log":
            inside = self.lower + float(np.exp(min(xi, MAX_EXPONENT)))
        else:
            inside = self.upper - float(np.exp(min(-xi, MAX_EXPONENT)))
        return min(max(inside, self.lower), self.upper)

    def inner(self, value: float) -> float:
        """Return ξ; infinite on a bound."""
        with np.errstate(divide="ignore"):
            if self.kind == "logit":
                return float(np.log(value - self.lower) - np.log(self.upper - value))
            if self.kind == "log":
                return float(np.log(value - self.lower))
            return float(-np.log(self.upper - value)) if self.kind == "log from above" else value

    def jacobian(self, xi: float) -> tuple[float, float, float]:
        """Return dθ/dξ, its logarithm, and the slope of that by ξ."""
        if self.kind == "identity":
            return 1.0, 0.0, 0.0
        if self.kind == "logit":
            logarithm = float(np.log(self.upper - self.lower) - abs(xi) - 2 * np.log1p(np.exp(-abs(xi))))
            return float(np.exp(logarithm)), logarithm, -float(np.tanh(xi / 2))
        side = 1.0 if self.kind == "log" else -1.0
        return float(np.exp(min(side * xi, MAX_EXPONENT))), side * xi, side


@dataclass(frozen=True)
class Transforms:
    """The transforms of all unknowns, in their order."""

    each: tuple[Transform, ...]

    @classmethod
    def between(cls, bounds: Sequence[tuple[float, float]]) -> Transforms:
        """Return those of unknowns with these bounds."""
        return cls(tuple(Transform(float(a), float(b)) for a, b in bounds))

    def outer(self, xi: np.ndarray) -> np.ndarray:
        """Return θ."""
        return np.array([t.outer(float(v)) for t, v in zip(self.each, xi, strict=True)])

    def inner(self, theta: np.ndarray) -> np.ndarray:
        """Return ξ."""
        return np.array([t.inner(float(v)) for t, v in zip(self.each, theta, strict=True)])

    def jacobian(self, xi: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return dθ/dξ of each unknown, the sum of their logarithms, and its gradient by ξ."""
        found = np.array([t.jacobian(float(v)) for t, v in zip(self.each, xi, strict=True)]).reshape(-1, 3)
        return found[:, 0], float(found[:, 1].sum()), found[:, 2]
