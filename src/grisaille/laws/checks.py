"""Checks of the parameters of laws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import ModelError
from grisaille.laws.law_arguments import is_formula

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.laws.joint import Smoothness
    from grisaille.laws.law import Law


def finite(law: Law | Smoothness, field: str) -> None:
    """Refuse what is no finite number, and keep it as a float; a formula is kept as it is."""
    value = getattr(law, field)
    if is_formula(value):
        return
    if isinstance(value, bool | str) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"{type(law).__name__}: {field} must be a finite number, got {value!r}.")
    object.__setattr__(law, field, float(value))


def positive(law: Law | Smoothness, field: str) -> None:
    """Refuse what is no positive number, and keep it as a float; the sign of a formula is known later."""
    finite(law, field)
    if is_number(getattr(law, field)) and not getattr(law, field) > 0:
        raise ModelError(f"{type(law).__name__}: {field} must be positive, got {getattr(law, field)!r}.")


def is_number(value: object) -> bool:
    """Return whether a field that has been checked is a number, not left open and no formula."""
    return value is not None and not is_formula(value)


def location(law: Law | Smoothness, field: str, *, is_positive: bool = False) -> None:
    """Check a location, which may be left open."""
    if getattr(law, field) is not None:
        (positive if is_positive else finite)(law, field)


def array(name: str, values: ArrayLike) -> np.ndarray:
    """Return numbers of a joint law as an array."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"MultivariateNormal: {name} must be numbers, got {values!r}.") from None
    if not np.all(np.isfinite(found)):
        raise ModelError(f"MultivariateNormal: {name} must be finite.")
    return found
