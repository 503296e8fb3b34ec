"""Supplied functions that are not written in Modelica."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grisaille.modelica.standard import fourier, powers, random_numbers
from grisaille.modelica.tables import Guarded
from grisaille.modelica.values import Unfit, Value, is_number

if TYPE_CHECKING:
    from grisaille.modelica.values import Truth


def _error_function(u: Value) -> float:
    if not is_number(u):
        raise Unfit("the error function of what is only known during a simulation is not supported")
    return math.erf(u)


def _ensured(value: Value, holds: Truth, message: str) -> tuple[Value]:
    """Return a value of a formula that is one only where a condition holds."""
    if holds is False:
        raise Unfit(message)
    return (value if holds is True else Guarded(value, holds, message),)


NATIVE: dict[str, Callable[..., Any]] = {
    **random_numbers.NATIVE,
    **fourier.NATIVE,
    "Modelica.Math.Special.erf": _error_function,
    "ensured": _ensured,
    "sum_of_powers": powers.sum_of_powers,
    "sums_of_powers": powers.sums_of_powers,
}
"""By the name of the external function, or of a function that exports do not bring."""
