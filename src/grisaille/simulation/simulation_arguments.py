"""The arguments of ``simulate`` as numbers: times, steps, tolerances and fixed starts, each checked by name."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError, ModelError
from grisaille.simulation.vector_names import by_name, spread_over_elements
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from grisaille.model.classes import Model

MAX_STEPS = 5_000_000
"""Of a run that is not told how many it may take."""


def as_number(what: str, value: Any, wanted: str = "a finite number") -> float:
    """Return a finite real number; texts, truth values and arrays are refused."""
    plain = value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value
    if isinstance(plain, bool) or not isinstance(plain, numbers.Real) or not np.isfinite(float(plain)):
        raise DataError(f"{what} is {value!r}; give {wanted}.")
    return float(plain)


def as_positive(what: str, value: object, wanted: str = "a positive number") -> float:
    """Return a finite number above zero."""
    number = as_number(what, value, wanted)
    if not number > 0:
        raise DataError(f"{what} is {value!r}; give {wanted}.")
    return number


def checked_times(times: ArrayLike) -> np.ndarray:
    """Return times, checked to be increasing finite numbers."""
    given = _plain_array(times)
    if given.dtype.kind in "Mm":
        raise DataError(
            "times holds dates or time spans; give numbers in the model's unit of time, such as "
            "(index - index[0]).total_seconds()."
        )
    try:
        if given.dtype.kind in "bUS" or any(isinstance(t, str) for t in (given.flat if given.dtype == object else ())):
            raise TypeError
        at = given.astype(float)
    except (TypeError, ValueError, ModelError):
        raise DataError("times must be numbers, such as np.linspace(0, 10, 101).") from None
    if at.ndim != 1 or at.size == 0:
        raise DataError("times must be a one-dimensional array with the start first, such as np.linspace(0, 10, 101).")
    bad = np.flatnonzero(~np.isfinite(at))
    if bad.size:
        raise DataError(f"times holds {at[bad[0]]} at position {bad[0]}; every time must be finite.")
    back = np.flatnonzero(np.diff(at) <= 0)
    if back.size:
        k = int(back[0])
        raise DataError(f"times must increase: position {k} is {at[k]:g} and position {k + 1} is {at[k + 1]:g}.")
    return at


def checked_breaks(breaks: Any, times: np.ndarray) -> np.ndarray:
    """Return instants at which steps end, in order; those outside the span do not matter."""
    try:
        at = np.atleast_1d(np.asarray(breaks, dtype=float)) if np.size(breaks) else np.zeros(0)
    except (TypeError, ValueError, ModelError):
        at = np.full(1, np.nan)
    if at.ndim != 1 or not np.isfinite(at).all():
        raise DataError(f"breaks is {breaks!r}; give finite instants in one dimension, such as [3.0, 3.01].")
    return np.unique(at[(at > times[0]) & (at < times[-1])])


def _plain_array(times: ArrayLike) -> np.ndarray:
    try:
        given = np.asarray(times)
    except (TypeError, ValueError, ModelError):
        raise DataError("times must be numbers, such as np.linspace(0, 10, 101).") from None
    if given.dtype.kind == "c":
        raise DataError("times must be real numbers, such as np.linspace(0, 10, 101).")
    return given


def most_steps(wanted: object) -> int:
    """Return the number of steps after which a run stops."""
    if wanted is None:
        return MAX_STEPS
    number = as_positive("max_steps", wanted, "a whole number above zero")
    if number != int(number):
        raise DataError(f"max_steps is {wanted!r}; give a whole number above zero.")
    return int(number)


def longest_step(at: np.ndarray, wanted: object) -> float:
    """Return the given longest step, or one output interval or a hundredth of the span; 0: no limit."""
    if wanted is not None:
        return as_positive("max_step", wanted)
    return float(max(np.diff(at).max(), (at[-1] - at[0]) / 100)) if at.size > 1 else 0.0


def refuse_driven(structure: Structure, model: Model, given: Mapping[str, object]) -> None:
    """Refuse a given input that a formula or a connection drives already."""
    for name in given:
        if model._content.kind(name) == "input" and name in structure.model.quantities:
            raise DataError(
                f"inputs= names '{name}', which is driven inside the model, by a formula or a connection. Leave it "
                f"out, or free it: model.replace({{'{name}': None}})."
            )


def fixed_starts_of(structure: Structure, model: Model, start: Any) -> tuple[dict[str, float], bool]:
    """Return fixed starts by variable, and whether a steady state is requested."""
    if isinstance(start, str):
        if start != "steady":
            raise DataError(f"start is {start!r}; give a dict of variables, or 'steady'.")
        return {}, True
    demands = {}
    for name, value in by_name(model, "start", start, spread_over_elements).items():
        flat = structure.model
        if not any(name in table for table in (flat.variables, flat.discretes, flat.quantities, flat.outputs)):
            raise ModelError(_not_a_variable(structure, model, name))
        demands[name] = as_number(f"start= for '{name}'", value)
    return demands, False


def _not_a_variable(structure: Structure, model: Model, name: str) -> str:
    flat = structure.model
    kind = model._content.kind(name)
    if kind:
        return (
            f"start= names '{name}', which is not a variable of {flat.name} but its {kind}; its variables: "
            f"{', '.join(list(flat.variables)[:6]) or 'none'}."
        )
    near = difflib.get_close_matches(name, list(flat.variables), n=3, cutoff=0.3)
    hint = f" Nearest: {', '.join(near)}." if near else ""
    return f"start= names '{name}', which is not a variable of {flat.name}.{hint}"


def absolute_tolerances(
    structure: Structure, model: Model, nominal: np.ndarray, rtol: float, atol: float | Mapping[str, float] | None
) -> np.ndarray:
    """Return absolute tolerance per entry of (x, z); default 1e-3 · rtol · nominal.

    Which variables are integrated is the analysis's choice, so a tolerance may be given for any; one that is computed
    from others by a formula is as accurate as they are.
    """
    if atol is None:
        return 1e-3 * rtol * nominal
    if not isinstance(atol, Mapping):
        return as_positive("atol", atol) * nominal
    system, flat = structure.system, structure.model
    result = 1e-3 * rtol * nominal
    names = [_inner(n) for n in (*system.state_names, *system.implicit_names)]
    for name, value in by_name(model, "atol", atol, spread_over_elements).items():
        if name not in flat.variables:
            raise DataError(f"atol= names '{name}', which is not a variable of {flat.name}.")
        kept = structure.equations.aliases.get(name, name).lstrip("-")
        result[[n == kept for n in names]] = as_positive(f"atol for '{name}'", value)
    return result


def _inner(text: str) -> str:
    return text[4:-1].split(",")[0] if text.startswith("der(") else text
