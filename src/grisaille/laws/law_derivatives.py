"""First and second derivatives of log-densities, by the value and by the parameters of a law.

A log-density is a formula of the value and of the fields of its class; CasADi differentiates it once for a class, and
the functions are evaluated over arrays.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError

if TYPE_CHECKING:
    import casadi as ca

    from grisaille.laws.measured import Measured
    from grisaille.laws.values import ByPair, Formula


@dataclass(frozen=True, eq=False)
class Derivatives:
    """A log-density with its derivatives by (value, *parameters)."""

    names: tuple[str, ...]
    """``"value"``, then the parameters in the order of the law's fields."""
    value: np.ndarray
    """(...)"""
    gradient: np.ndarray
    """(..., n)"""
    hessian: np.ndarray
    """(..., n, n)"""


def replace_fields(law: Measured, **fields: Formula) -> Any:
    """Return a copy of a law with other fields, which may be arrays or symbols: nothing is checked."""
    other = copy.copy(law)
    for name, value in fields.items():
        object.__setattr__(other, name, value)
    return other


def symbolic_formula(law: Measured, value: Formula) -> Formula:
    """Return the log-density of a symbol, where the law's formula can be written down for one."""
    import casadi as ca

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # NumPy's functions of CasADi's symbols, which are meant
            return ca.SX(law.formula(value))
    except Exception as error:
        raise ModelError(
            f"The log-density of {type(law).__name__} cannot be differentiated ({type(error).__name__}: {error}): its "
            f"formula(value) must be made of + - * / ** and NumPy's functions, without if, loops over values or arrays."
        ) from error


def differentiate(law: Measured, value: Formula, parameters: dict[str, Formula]) -> Derivatives:
    """Return the derivatives of ``law.formula`` at values and parameters that are broadcast against each other."""
    names = tuple(parameters)
    given = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (value, *parameters.values())))
    shape, n = given[0].shape, len(given)
    function = _differentiated(replace_fields(law, **dict.fromkeys(names)), names)
    count = given[0].size
    if not count:
        return Derivatives(("value", *names), *(np.zeros((*shape, *(n,) * k)) for k in range(3)))
    value_of, gradient, hessian = function(np.stack([g.ravel() for g in given]))
    return Derivatives(
        ("value", *names),
        np.array(value_of).reshape(shape),
        np.array(gradient).reshape(n, count).T.reshape(*shape, n),
        np.array(hessian).reshape(n, count, n).swapaxes(0, 1).reshape(*shape, n, n),
    )


@lru_cache(maxsize=1024)
def _differentiated(law: Measured, names: tuple[str, ...]) -> ca.Function:
    """Return the function for a law whose differentiated fields are left open."""
    import casadi as ca

    at = ca.SX.sym("at", 1 + len(names))
    formula = symbolic_formula(replace_fields(law, **{n: at[k + 1] for k, n in enumerate(names)}), at[0])
    hessian, gradient = ca.hessian(formula, at)
    return ca.Function("log_density", [at], [formula, ca.densify(gradient), ca.densify(hessian)])


def differentiate_by(law: Measured, value: Formula, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the Hessian of ``law.formula`` by some of its fields, which may be arrays."""
    numbers = {n: v for n, v in law.parameters.items() if isinstance(v, int | float | np.ndarray | np.number)}
    given = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (value, *numbers.values())))
    shape, count, k = given[0].shape, given[0].size, len(names)
    if not count or not k:
        return np.zeros((*shape, k)), np.zeros((*shape, k, k))
    function = _differentiated_by(replace_fields(law, **dict.fromkeys(numbers)), tuple(numbers), names)
    gradient, hessian = function(np.stack([g.ravel() for g in given]))
    return (
        np.array(gradient).reshape(k, count).T.reshape(*shape, k),
        np.array(hessian).reshape(k, count, k).swapaxes(0, 1).reshape(*shape, k, k),
    )


@lru_cache(maxsize=1024)
def _differentiated_by(law: Measured, numbers: tuple[str, ...], names: tuple[str, ...]) -> ca.Function:
    """Return the function of (value, *numbers) for a law whose numbers are left open."""
    import casadi as ca

    at = ca.SX.sym("at", 1 + len(numbers))
    formula = symbolic_formula(replace_fields(law, **{n: at[k + 1] for k, n in enumerate(numbers)}), at[0])
    by = ca.vertcat(*(at[1 + numbers.index(n)] for n in names))
    hessian, gradient = ca.hessian(formula, by)
    return ca.Function("log_density", [at], [ca.densify(gradient), ca.densify(hessian)])


def assemble_derivatives(names: tuple[str, ...], value: Any, first: dict[str, Any], second: ByPair) -> Derivatives:
    """Return derivatives from those that are not zero, each second one under one order of its two names."""
    parts = [*first.values(), *second.values()]
    shape = np.broadcast_shapes(np.shape(value), *(np.shape(p) for p in parts))
    gradient, hessian = np.zeros((*shape, len(names))), np.zeros((*shape, len(names), len(names)))
    place = {name: k for k, name in enumerate(names)}
    for name, part in first.items():
        if name in place:
            gradient[..., place[name]] = part
    for (one, other), part in second.items():
        if one in place and other in place:
            hessian[..., place[one], place[other]] = hessian[..., place[other], place[one]] = part
    return Derivatives(names, np.broadcast_to(np.asarray(value, dtype=float), shape), gradient, hessian)
