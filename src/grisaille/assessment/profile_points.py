"""Points of profiles: the least deviance with some unknowns held, and the deviance around a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ProfilePoint:
    """The minimum over the unknowns that are not held."""

    theta: np.ndarray
    """All unknowns."""
    deviance: float
    failure: str = ""


@dataclass(frozen=True)
class LocalQuadratic:
    """Half the deviance at a point, with its gradient and (expected) curvature by the unknowns.

    Transformed where that makes it a sum of squares: a linear model then has θ ± t · standard error exactly.
    """

    value: float
    slope: np.ndarray
    curvature: np.ndarray
    failure: str = ""
