"""Residuals as large as a robust criterion counts them: what its fits are judged by.

    e* = s ψ(e / s) / √(E ψ(z)²),     s = 1.4826 median |e|,     z ~ N(0, 1)

ψ, the score of the loss, is r near zero and grows no more, or falls back, far out. Data in which ψ stands for r are
those that least squares would have fitted alike (Huber's pseudo-observations): their root mean square, R² and
correlations are not those of a few outliers, and without outliers the root mean square is σ.
Reference: P. J. Huber, E. M. Ronchetti, Robust Statistics (2009), section 7.6.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MAD_TO_SIGMA = 1.482602218505602
"""1 / Φ⁻¹(3/4)."""
Score = Callable[[np.ndarray], np.ndarray]


def middle_level(errors: np.ndarray) -> float:
    """Return σ from the middle of the errors, which for normal ones is their standard deviation."""
    return MAD_TO_SIGMA * float(np.median(np.abs(errors))) if len(errors) else 0.0


def weigh_robustly(errors: np.ndarray, score: Score) -> np.ndarray:
    """Return errors as large as a loss with this score counts them."""
    level = middle_level(errors)
    return np.asarray(level / np.sqrt(_mean_square(score)) * score(errors / level)) if level > 0 else errors


def _mean_square(score: Score) -> float:
    """Return E ψ(z)² of a standard normal z."""
    z = np.linspace(-8.0, 8.0, 1601)
    density = np.exp(-(z**2) / 2)
    return float(np.sum(score(z) ** 2 * density) / np.sum(density))
