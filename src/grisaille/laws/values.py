"""Kinds of values that laws are made of and evaluated at."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import casadi as ca

Values: TypeAlias = np.ndarray | float
"""One number, or one for each sample."""
Formula: TypeAlias = "ca.SX | np.ndarray | float"
"""What a log-density is made of: numbers where it is evaluated, a symbol where it is differentiated."""
ByPair: TypeAlias = dict[tuple[str, str], Values]
"""Second derivatives or information that are not zero, by the names of two arguments."""
