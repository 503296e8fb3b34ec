"""Vectors of unknowns: θ in the user's units, and ξ on the scale that they are searched on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown


class Scaled:
    """Something with unknowns."""

    unknowns: tuple[Unknown, ...]

    @property
    def guess(self) -> np.ndarray:
        return np.array([u.guess for u in self.unknowns])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([u.lower for u in self.unknowns]), np.array([u.upper for u in self.unknowns])

    def inner(self, theta: np.ndarray) -> np.ndarray:
        """Return ξ of θ."""
        return np.array([u.inner(v) for u, v in zip(self.unknowns, theta, strict=True)])

    def outer(self, xi: np.ndarray) -> np.ndarray:
        """Return θ of ξ, kept inside the bounds against rounding."""
        return np.asarray(np.clip(self.unclipped(xi), *self.bounds))

    def unclipped(self, xi: np.ndarray) -> np.ndarray:
        """Return θ of ξ, bounds or not."""
        return np.array([u.outer(v) for u, v in zip(self.unknowns, xi, strict=True)])

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        """Return dθ/dξ."""
        return np.array([u.slope(v) for u, v in zip(self.unknowns, theta, strict=True)])

    def inner_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of ξ; they are infinite where a logarithm or a logit has no end."""
        inner = [
            (
                u.inner(u.lower) if np.isfinite(u.lower) and not (u.logarithmic and u.lower <= 0) and not u.logit
                else -np.inf,
                u.inner(u.upper) if np.isfinite(u.upper) and not u.logit else np.inf,
            )
            for u in self.unknowns
        ]  # fmt: skip
        return np.array([i[0] for i in inner]), np.array([i[1] for i in inner])

    def with_guess(self, theta: np.ndarray) -> None:
        """Start from another guess."""
        self.unknowns = tuple(replace(u, guess=float(v)) for u, v in zip(self.unknowns, theta, strict=True))

    def go_on_from(self, theta: np.ndarray) -> None:
        """Start from values that a search came to, which no refusal calls the guess."""
        reached = [u.starting_from(v).is_reached for u, v in zip(self.unknowns, theta, strict=True)]
        self.with_guess(theta)
        self.unknowns = tuple(replace(u, is_reached=r) for u, r in zip(self.unknowns, reached, strict=True))
