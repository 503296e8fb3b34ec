"""Densities with known moments, as targets of chains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Known:
    """A target that counts its evaluations."""

    def __init__(self, density: Density, size: int) -> None:
        self.density, self.evaluations = density, 0
        self.names = tuple(f"x{k}" for k in range(size))

    def value_and_gradient(self, xi: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        return self.density(xi)


def normal(covariance: np.ndarray, mean: np.ndarray) -> Known:
    precision = np.linalg.inv(covariance)

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        pull = precision @ (x - mean)
        return -0.5 * float((x - mean) @ pull), -pull

    return Known(density, len(mean))


BEND = 0.3


def banana() -> Known:
    """x₀ ~ N(0, 2²), x₁ | x₀ ~ N(b (x₀² − 4), 1): E x₁ = 0, Var x₁ = 1 + 32 b²."""

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        e = x[1] - BEND * (x[0] ** 2 - 4)
        return -(x[0] ** 2) / 8 - 0.5 * e**2, np.array([-x[0] / 4 + 2 * BEND * x[0] * e, -e])

    return Known(density, 2)


def banana_draws(count: int, rng: np.random.Generator) -> np.ndarray:
    x = 2 * rng.standard_normal(count)
    return np.stack([x, BEND * (x**2 - 4) + rng.standard_normal(count)], axis=1)


def funnel(width: float = 1.5) -> Known:
    """v ~ N(0, width²), x₁, x₂ | v ~ N(0, e^v)."""

    def density(x: np.ndarray) -> tuple[float, np.ndarray]:
        v, y, precision = x[0], x[1:], np.exp(-x[0])
        value = -0.5 * (v / width) ** 2 - 0.5 * precision * (y @ y) - 0.5 * len(y) * v
        slope = -v / width**2 + 0.5 * precision * (y @ y) - 0.5 * len(y)
        return float(value), np.concatenate([[slope], -precision * y])

    return Known(density, 3)


def funnel_draws(count: int, rng: np.random.Generator, width: float = 1.5) -> np.ndarray:
    v = width * rng.standard_normal(count)
    return np.column_stack([v, np.exp(v / 2)[:, None] * rng.standard_normal((count, 2))])
