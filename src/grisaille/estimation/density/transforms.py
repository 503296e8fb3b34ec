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
from functools import cached_property
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

    def inner(self, value: float) -> float:
        """Return ξ; infinite on a bound."""
        with np.errstate(divide="ignore"):
            if self.kind == "logit":
                return float(np.log(value - self.lower) - np.log(self.upper - value))
            if self.kind == "log":
                return float(np.log(value - self.lower))
            return float(-np.log(self.upper - value)) if self.kind == "log from above" else value


@dataclass(frozen=True)
class Transforms:
    """The transforms of all unknowns, in their order."""

    each: tuple[Transform, ...]

    @classmethod
    def between(cls, bounds: Sequence[tuple[float, float]]) -> Transforms:
        """Return those of unknowns with these bounds."""
        return cls(tuple(Transform(float(a), float(b)) for a, b in bounds))

    @cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([t.lower for t in self.each], dtype=float), np.array([t.upper for t in self.each], dtype=float)

    @cached_property
    def _by_kind(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where there are two bounds, where one; the side of the one (−1: an upper one), and from where it counts."""
        kinds = [t.kind for t in self.each]
        both = np.flatnonzero([k == "logit" for k in kinds])
        one = np.flatnonzero([k.startswith("log") and k != "logit" for k in kinds])
        side = np.array([1.0 if kinds[k] == "log" else -1.0 for k in one])
        ends = np.array([self.each[k].lower if kinds[k] == "log" else self.each[k].upper for k in one])
        return both, one, side, ends

    def outer(self, xi: np.ndarray) -> np.ndarray:
        """Return θ, inside the bounds also after rounding."""
        both, one, side, ends = self._by_kind
        lower, upper = self._limits
        theta = np.array(xi, dtype=float)
        if len(both):
            a, b = lower[both], upper[both]
            theta[both] = a + (b - a) * (0.5 + 0.5 * np.tanh(xi[both] / 2))
        if len(one):
            theta[one] = ends + side * np.exp(np.minimum(side * xi[one], MAX_EXPONENT))
        return np.asarray(np.minimum(np.maximum(theta, lower), upper))

    def inner(self, theta: np.ndarray) -> np.ndarray:
        """Return ξ."""
        return np.array([t.inner(float(v)) for t, v in zip(self.each, theta, strict=True)])

    def jacobian(self, xi: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return dθ/dξ of each unknown, the sum of their logarithms, and its gradient by ξ."""
        both, one, side, _ = self._by_kind
        slopes, bends, total = np.ones(len(xi)), np.zeros(len(xi)), 0.0
        if len(both):
            lower, upper = self._limits
            at = xi[both]
            away = np.abs(at)
            logarithms = np.log(upper[both] - lower[both]) - away - 2 * np.log1p(np.exp(-away))
            slopes[both], bends[both] = np.exp(logarithms), -np.tanh(at / 2)
            total += float(logarithms.sum())
        if len(one):
            exponents = side * xi[one]
            slopes[one], bends[one] = np.exp(np.minimum(exponents, MAX_EXPONENT)), side
            total += float(exponents.sum())
        return slopes, total, bends
