"""Robust losses: their criterion, the errors of their estimates, and a noise level that outliers do not change.

    criterion   ½ Σ c² ρ(z),   z = (r / c)²,  r standardized, c where the loss sets in; priors count with their squares
    score       ψ = ρ'(z) r,   slope ψ' = ρ'(z) + 2 z ρ''(z)
    covariance  C = (Σ ψ' JJᵀ)⁻¹ (Σ ψ² JJᵀ) (Σ ψ' JJᵀ)⁻¹
    level       σ = 1.4826 median |e|, which for normal errors is the standard deviation

Losses that bend back (Cauchy, arctan) have ψ' < 0 far out, as it must be.
Reference: P. J. Huber, E. M. Ronchetti, Robust Statistics (2009), sections 5.1 and 7.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grisaille.estimation.residuals.robust_weights import middle_level
from grisaille.estimation.uncertainty import inverse_information, sandwich_product, without_undetermined

Formula = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    """ρ and its first two derivatives, as functions of z."""

    value: Formula
    slope: Formula
    bend: Formula


LOSSES = {
    "linear": Loss(lambda z: z, np.ones_like, np.zeros_like),
    "soft_l1": Loss(lambda z: 2 * (np.sqrt(1 + z) - 1), lambda z: (1 + z) ** -0.5, lambda z: -0.5 * (1 + z) ** -1.5),
    "huber": Loss(
        lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.maximum(z, 1)) - 1),
        lambda z: np.where(z <= 1, 1.0, np.maximum(z, 1) ** -0.5),
        lambda z: np.where(z <= 1, 0.0, -0.5 * np.maximum(z, 1) ** -1.5),
    ),
    "cauchy": Loss(np.log1p, lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "arctan": Loss(np.arctan, lambda z: 1 / (1 + z**2), lambda z: -2 * z / (1 + z**2) ** 2),
}


def score(loss: str, scale: float, residuals: np.ndarray) -> np.ndarray:
    """Return ψ = ρ'(z) r."""
    return np.asarray(LOSSES[loss].slope((residuals / scale) ** 2) * residuals)


def root_weights(loss: str, scale: float, count: int, residuals: np.ndarray) -> np.ndarray:
    """Return √ψ′ of so many residuals, zero where it is negative; what follows are priors, which count in full."""
    z, form, found = (residuals / scale) ** 2, LOSSES[loss], np.ones(len(residuals))
    found[:count] = np.sqrt(np.maximum(form.slope(z) + 2 * z * form.bend(z), 0.0))[:count]
    return found


def of_data(loss: str, count: int) -> Formula:
    """Return ρ, ρ' and ρ'' of so many residuals, as SciPy asks for them; what follows are priors, which are squares."""
    form, plain = LOSSES[loss], LOSSES["linear"]

    def rho(z: np.ndarray) -> np.ndarray:
        data, beliefs = z[:count], z[count:]
        parts = ((form.value, plain.value), (form.slope, plain.slope), (form.bend, plain.bend))
        return np.array([np.concatenate([of(data), by(beliefs)]) for of, by in parts])

    return rho


def robust_covariance(
    jacobian: np.ndarray, residuals: np.ndarray, free: np.ndarray, loss: str, scale: float, beliefs: np.ndarray
) -> np.ndarray:
    """Return the sandwich of a robust loss, with its small-sample factor N/(N − n); ``beliefs``: the rows of priors."""
    z, form = (residuals / scale) ** 2, LOSSES[loss]
    slope = form.slope(z) + 2 * z * form.bend(z)
    information = (jacobian * slope[:, None]).T @ jacobian + beliefs.T @ beliefs
    bread, undetermined = inverse_information(information, free)
    scored = jacobian * (form.slope(z) * residuals)[:, None]
    return without_undetermined(sandwich_product(bread, scored, beliefs, int(free.sum())), undetermined)


def robust_level(errors: np.ndarray) -> float:
    """Return σ from the middle of the errors; their root mean square where more than half of them vanish."""
    middle, all_of_them = middle_level(errors), float(np.sqrt(np.mean(errors**2)))
    return middle if middle > 1e-9 * all_of_them else all_of_them
