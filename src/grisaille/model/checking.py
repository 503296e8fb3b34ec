"""Checks that declarations and their replacements share; every message begins with the member's name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.array_shapes import shape_of
from grisaille.model.expression import Call, Constant, Expression, as_expression, postorder

if TYPE_CHECKING:
    from grisaille.model.given import Change


def check_value(name: str, field: str, value: Change, constant: bool = False) -> None:
    """A number, a formula or None; with ``constant`` only parameters may occur in the formula."""
    if value is None:
        return
    if isinstance(value, list | tuple | np.ndarray):
        shape = shape_of(f"{name}: {field}", value)
        raise ModelError(f"{name}: {field} has {math.prod(shape)} entries; declare a vector with size={shape}.")
    try:
        expression = as_expression(value)
    except ModelError as error:
        raise ModelError(f"{name}: {field} must be a number or a formula. {error}") from None
    for leaf in postorder((expression,)) if constant else ():
        kind = leaf_kind(leaf)
        if kind in ("variable", "discrete", "input", "disturbance", "output", "time"):
            raise ModelError(
                f"{name}: {field} may depend on parameters only, but `{expression}` contains the {kind} `{leaf}`."
            )


def leaf_kind(leaf: Expression) -> str:
    """Return ``"parameter"``, ``"variable"``, …; ``""`` for numbers and operations."""
    if hasattr(leaf, "kind"):
        return str(leaf.kind)
    return "time" if not isinstance(leaf, Call | Constant) else ""


def check_bounds(name: str, bounds: Any) -> tuple[float, float] | None:
    """(low, high) as floats, open sides as infinities."""
    if bounds is None:
        return None
    try:
        if isinstance(bounds, str):
            raise TypeError
        low, high = bounds
        pair = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError, ModelError):
        raise ModelError(f"{name}: bounds must be a pair of numbers (low, high), got {bounds!r}.") from None
    if not pair[0] < pair[1]:
        raise ModelError(f"{name}: the bounds are reversed or empty: {pair[0]:g} is not below {pair[1]:g}.")
    return pair


def check_inside(name: str, value: Any, bounds: tuple[float, float] | None) -> None:
    """A number must lie within its bounds."""
    number = value.value if isinstance(value, Constant) else value
    if bounds is None or number is None or isinstance(number, Expression):
        return
    if not bounds[0] <= float(number) <= bounds[1]:
        raise ModelError(
            f"{name}: the value {float(number):g} lies outside its bounds [{bounds[0]:g}, {bounds[1]:g}]. "
            "Change the value or widen the bounds."
        )
