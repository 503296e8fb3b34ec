"""The marginal likelihood of the data by Laplace's method, one formula for both bases.

    −log L ≈ J* + ½ log|H| − ½ log|G| + ½ Σ log|2π R_k|

J* is the least criterion over trajectories at given unknowns, H its curvature there and G that of the disturbances
alone, the normaliser of the path's density: for a state with constant drift Π (2π Q Δt)^{-1/2} over its increments.
Exact for linear models on fine meshes. A basis gives the determinants and how they move with θ, at a given trajectory
and along the best one (``laplace``: splines, ``direct.marginal``: elements).

References: J. Heald, J. Stark, Physical Review Letters 84 (2000) 2366; M. Onsager, S. Machlup, Physical Review 91
(1953) 1505.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Marginal:
    """−log L, its gradient by θ, and what levels' information rests on: the slope of the determinants alone."""

    value: float
    slope: Floats
    freedom: Floats


def minus_log_likelihood(least: float, curvature: float, prior: float, spread: float) -> float:
    """Of J*, log|H|, log|G| and ½ Σ log|2πR|."""
    return least + 0.5 * (curvature - prior) + spread
