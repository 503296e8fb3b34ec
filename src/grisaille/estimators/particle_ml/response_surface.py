"""A quadratic through noisy values of a log-likelihood, and its maximum with what the noise leaves open of it.

    ℓ(z) ≈ a + gᵀz − ½ zᵀHz,       z* = H⁻¹g

in coordinates z in which the curvature is about one. Values far below the best one count less, because a quadratic does
not hold there. Reference: E. L. Ionides et al., J. R. Soc. Interface 14 (2017) 20170126 (what Monte Carlo errors do to
maxima and intervals).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MODEL_ERROR = 0.08
"""Of how far a value lies below the best one: what a quadratic may miss of it."""
MIN_CURVATURE, MAX_CURVATURE = 0.02, 25.0
"""In z, where one is expected."""
MIN_NOISE = 1e-6


@dataclass(frozen=True, eq=False)
class ResponseSurface:
    """a, g and H with the covariance of (a, g, upper triangle of H)."""

    constant: float
    gradient: np.ndarray
    hessian: np.ndarray
    covariance: np.ndarray
    noise: float
    """Standard deviation of a value around the surface."""

    @property
    def is_peak(self) -> bool:
        """Whether it has a maximum."""
        return bool(np.linalg.eigvalsh(self.hessian).min() > MIN_CURVATURE)

    @property
    def curvature(self) -> np.ndarray:
        """Return H with eigenvalues between the limits."""
        values, vectors = np.linalg.eigh(self.hessian)
        return np.asarray((vectors * np.clip(values, MIN_CURVATURE, MAX_CURVATURE)) @ vectors.T)

    @property
    def step(self) -> np.ndarray:
        """Return z*, or the way uphill."""
        return np.asarray(np.linalg.solve(self.curvature, self.gradient))

    def step_error(self, seed: int = 0, draws: int = 200) -> np.ndarray:
        """Return the covariance of z* that follows from the noise."""
        n = len(self.gradient)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        random, steps = np.random.default_rng(seed), []
        centre = np.concatenate([[self.constant], self.gradient, self.hessian[np.triu_indices(n)]])
        for _ in range(draws):
            drawn = centre + root @ random.standard_normal(len(centre))
            surface = _from_coefficients(drawn, n, self.covariance, self.noise)
            steps.append(surface.step)
        return np.atleast_2d(np.cov(np.array(steps).T))


def coefficient_count(n: int) -> int:
    """Return how many coefficients a quadratic of n unknowns has."""
    return 1 + n + n * (n + 1) // 2


def fit_surface(z: np.ndarray, values: np.ndarray, noise: float) -> ResponseSurface | None:
    """Return the surface through values at points z, (m, n); None where there are too few.

    noise : standard deviation of a value
    """
    is_there = np.isfinite(values)
    z, values = z[is_there], values[is_there]
    m, n = z.shape
    if m < coefficient_count(n) + 2:
        return None
    X = _design(z)
    # what is far below the best value is not described by a quadratic
    drop = np.maximum(np.quantile(values, 1 - min(0.2, 5 / m)) - values, 0.0)
    weight = 1 / (max(noise, MIN_NOISE) ** 2 + (MODEL_ERROR * drop) ** 2)
    root = np.sqrt(weight / weight.max())
    coefficients, _, rank, _ = np.linalg.lstsq(root[:, None] * X, root * values, rcond=1e-12)
    if rank < X.shape[1]:
        return None
    residual = root * (values - X @ coefficients)
    variance = float(residual @ residual) / (m - X.shape[1])
    inverse = np.linalg.pinv((root[:, None] * X).T @ (root[:, None] * X))
    return _from_coefficients(coefficients, n, variance * inverse, float(np.sqrt(variance)))


def _design(z: np.ndarray) -> np.ndarray:
    """Return columns 1, z, −½ z_i², −z_i z_j."""
    n = z.shape[1]
    rows, columns = np.triu_indices(n)
    products = -z[:, rows] * z[:, columns] * np.where(rows == columns, 0.5, 1.0)
    return np.column_stack([np.ones(len(z)), z, products])


def _from_coefficients(coefficients: np.ndarray, n: int, covariance: np.ndarray, noise: float) -> ResponseSurface:
    hessian = np.zeros((n, n))
    rows, columns = np.triu_indices(n)
    hessian[rows, columns] = hessian[columns, rows] = coefficients[1 + n :]
    return ResponseSurface(float(coefficients[0]), coefficients[1 : 1 + n], hessian, covariance, noise)


def design_points(count: int, n: int, radius: float, seed: int) -> np.ndarray:
    """Return points z in a ball, most of them near its surface, spread evenly."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    drawn = qmc.Sobol(n + 1, seed=seed).random(1 << int(np.ceil(np.log2(max(count, 2)))))[:count]
    normals = ndtri(np.clip(drawn[:, :n], 1e-9, 1 - 1e-9))
    directions = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(radius * directions * (0.15 + 0.85 * drawn[:, n:] ** 0.5))
