"""Supplied functions that are not written in Modelica."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grisaille.modelica.standard import random_numbers
from grisaille.modelica.values import Unfit, is_number


def _error_function(u: Any) -> float:
    if not is_number(u):
        raise Unfit("the error function of what is only known during a simulation is not supported")
    return math.erf(u)


NATIVE: dict[str, Callable[..., Any]] = {
    **random_numbers.NATIVE,
    "Modelica.Math.Special.erf": _error_function,
}
"""By the name of the external function, or of a function that exports do not bring."""
