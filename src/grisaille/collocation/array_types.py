"""Kinds of arrays, and what is called on the way of a search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Better = Callable[[Floats], None] | None
"""Called with θ of every point that is gone on from."""
