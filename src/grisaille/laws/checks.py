"""What the numbers of a law may be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grisaille.errors import ModelError


def finite(law: Any, field: str) -> None:
    """Refuse what is no finite number, and keep it as a float."""
    value = getattr(law, field)
    if getattr(value, "is_formula", False):
        return
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"{type(law).__name__}: {field} must be a finite number, got {value!r}.")
    object.__setattr__(law, field, float(value))


def positive(law: Any, field: str) -> None:
    """Refuse what is no positive number, and keep it as a float."""
    finite(law, field)
    if not getattr(getattr(law, field), "is_formula", False) and not getattr(law, field) > 0:
        raise ModelError(f"{type(law).__name__}: {field} must be positive, got {getattr(law, field)!r}.")


def location(law: Any, field: str, *, is_positive: bool = False) -> None:
    """Check a location, which may be left open."""
    if getattr(law, field) is not None:
        (positive if is_positive else finite)(law, field)


def array(name: str, values: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return numbers of a joint law as an array."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"MultivariateNormal: {name} must be numbers, got {values!r}.") from None
    if not np.all(np.isfinite(found)):
        raise ModelError(f"MultivariateNormal: {name} must be finite.")
    return found
