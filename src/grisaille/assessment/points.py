"""Points of profiles: the least deviance with some unknowns held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Point:
    """The minimum over the unknowns that are not held."""

    theta: np.ndarray
    """All unknowns."""
    deviance: float
    failure: str = ""
