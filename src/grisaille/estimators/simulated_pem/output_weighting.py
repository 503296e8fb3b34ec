"""The weighting matrix of several outputs: given as Λ⁻¹, or Λ estimated as the covariance of their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grisaille.errors import EstimationError

MIN_EIGENVALUE = 1e-4
"""Smallest eigenvalue of the correlations of errors that is used as it is."""


def given_weighting(wanted: Any, outputs: Sequence[str]) -> np.ndarray | None:
    """Return Λ⁻¹ as the user gave it; None where it is to be estimated."""
    if wanted is None or isinstance(wanted, str):
        return None
    matrix, q = np.atleast_2d(np.asarray(wanted, dtype=float)), len(outputs)
    if matrix.shape != (q, q) or not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
        raise EstimationError(
            f"weighting= must be a symmetric positive definite {q} × {q} matrix, for {', '.join(outputs)} in this "
            f"order; leave it out to have it estimated."
        )
    return matrix


def positive_definite(level: np.ndarray, count: np.ndarray, diagonal: bool) -> np.ndarray:
    """Return Λ from mean products of errors over ``count`` common samples: without correlations that few samples tell,
    and shrunk towards the diagonal where it would be singular.
    """
    size = np.sqrt(np.maximum(np.diag(level), 1e-300))
    enough = count >= 10 * len(level)
    correlation = np.where(enough & (not diagonal), level / np.outer(size, size), 0.0)
    np.fill_diagonal(correlation, 1.0)
    lowest = float(np.linalg.eigvalsh(correlation).min())
    if lowest < MIN_EIGENVALUE:
        # s R + (1 − s) I has the smallest eigenvalue s·lowest + 1 − s
        s = (1 - MIN_EIGENVALUE) / (1 - lowest)
        correlation = s * correlation + (1 - s) * np.eye(len(level))
    return np.asarray(correlation * np.outer(size, size))
