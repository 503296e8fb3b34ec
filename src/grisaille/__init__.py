"""Grey-box modelling with differential-algebraic equations."""

from __future__ import annotations

__version__ = "0.1.0"
