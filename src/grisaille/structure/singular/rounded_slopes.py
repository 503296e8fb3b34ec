"""Slopes that are rounding: what is left of an unknown whose terms cancel in an equation.

An equation that contains x several times, by itself or through an eliminated variable, may not contain it at all:
3 x − 3 (x + y), or 0.1 x + 0.2 x − 0.3 x. In numbers 1e-16 of it is left, which must not be divided by: everything
computed from such a pivot is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.structure.singular.cancellation import random_point
from grisaille.structure.singular.scaling import equilibrated_triplets
from grisaille.structure.switching_pieces import is_affine

if TYPE_CHECKING:
    from grisaille.structure.blocks import BlockUnknown
    from grisaille.structure.equations import Equations

SUSPICIOUS_SLOPE = 1e-7
"""Slopes below this part of their equation's largest are looked at; in units of nominal values, or in those in which
each unknown has a slope of one somewhere."""
SLOPE_ROUNDING = 1e-12
"""Of the terms that a slope is the sum of."""
SIZE_FACTORS = (1.0, 1e-3, 1e-6, 1e-9)
"""Of typical sizes, at which slopes are evaluated until their terms are finite: exp(1e5 x) is not at x = 1."""


def without_rounded_slopes(
    equations: Equations,
    before: Sequence[ca.SX],
    after: Sequence[ca.SX],
    definitions: Sequence[tuple[ca.SX, ca.SX]],
    unknowns: Sequence[BlockUnknown],
) -> list[ca.SX]:
    """Return ``after``, which is ``before`` with definitions inserted, without terms of unknowns that are rounding."""
    result = list(after)
    if not after or not unknowns:
        return result
    symbols = [u.symbol for u in unknowns]
    slopes = ca.jacobian(ca.vertcat(*after), ca.vertcat(*symbols))
    nominal = np.array([u.nominal for u in unknowns])
    suspicious = _suspicious(equations, slopes, nominal)
    if not suspicious:
        return result
    for part in SIZE_FACTORS:
        values = _sizes(equations, slopes, part)
        terms = _terms(equations, before, definitions, symbols, sorted({i for i, _ in suspicious}), part)
        for i, j in suspicious:
            if values[i, j] <= SLOPE_ROUNDING * terms[i, j] < np.inf and is_affine(result[i], symbols[j]):
                result[i] = ca.substitute(result[i], symbols[j], ca.SX(0))
        suspicious = [(i, j) for i, j in suspicious if not np.isfinite(terms[i, j])]
        if not suspicious:
            break
    return result


def _suspicious(equations: Equations, slopes: ca.SX, nominal: np.ndarray) -> list[tuple[int, int]]:
    """Return entries that may be divided by, numbers or formulas of parameters, and are small beside others of their
    row.
    """
    if not slopes.nnz():
        return []
    rows, columns = (np.array(side) for side in slopes.sparsity().get_triplet())
    raw = _sizes(equations, ca.vertcat(*slopes.nonzeros())).ravel()
    small = np.zeros(len(raw), dtype=bool)
    for unit in (nominal, _own_units(raw, rows, columns, slopes.shape)):
        sizes, largest = raw * unit[columns], np.zeros(slopes.shape[0])
        np.maximum.at(largest, rows, sizes)
        small |= (sizes > 0) & (sizes <= SUSPICIOUS_SLOPE * largest[rows])
    known = {p.element_hash() for p in equations.parameters.values()}
    return [
        (int(rows[k]), int(columns[k]))
        for k in np.flatnonzero(small)
        if all(s.element_hash() in known for s in ca.symvar(slopes.nz[int(k)]))
    ]


def _own_units(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return units of unknowns that make their largest slopes equal, whatever the units of the equations are."""
    sizes = equilibrated_triplets(values, rows, columns, shape)[2]
    return np.asarray(np.divide(1.0, sizes, out=np.ones_like(sizes), where=sizes > 0))


def _terms(
    equations: Equations,
    before: Sequence[ca.SX],
    definitions: Sequence[tuple[ca.SX, ca.SX]],
    symbols: Sequence[ca.SX],
    rows: Sequence[int],
    part: float,
) -> np.ndarray:
    """For these equations and each unknown x the sum of |∂r/∂y · ∂y/∂x| over all ways to x, of which some lead through
    definitions y; zero in other rows, infinite where it overflows."""
    n = len(symbols)
    v = [*symbols, *(name for name, _ in definitions)]
    formulas = [*(before[i] for i in rows), *(formula for _, formula in definitions)]
    ways = _absolute_slopes(equations, formulas, v, part)
    share, terms = np.zeros((len(definitions), n)), np.zeros((len(before), n))
    for k in range(len(definitions)):  # a definition may use those before it
        row = ways[len(rows) + k]
        share[k] = row[:n] + _sum_of_ways(row[n:], share)
    for place, i in enumerate(rows):
        terms[i] = ways[place, :n] + _sum_of_ways(ways[place, n:], share)
    return np.where(np.isfinite(terms), terms, np.inf)


def _sum_of_ways(slopes: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Σ slopes_k share_kj; what overflows in one column says nothing of the others."""
    used = np.flatnonzero(slopes)
    return np.asarray(_products(slopes[used, None], share[used]).sum(axis=0))


def _products(a: np.ndarray | float, b: np.ndarray) -> np.ndarray:
    """Return a·b, with 0·∞ = 0: what does not occur."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.where((a == 0) | (b == 0), 0.0, a * b))


def _absolute_slopes(
    equations: Equations, formulas: Sequence[ca.SX], variables: Sequence[ca.SX], part: float
) -> np.ndarray:
    """Σ |∂| over all occurrences of each variable in each formula, at a random point: (formulas, variables).

    Forward differentiation with absolute values, so that occurrences that cancel add up.
    """
    symbols = ca.symvar(ca.vertcat(*formulas))
    position = {s.element_hash(): k for k, s in enumerate(variables)}
    point = part * np.ravel(random_point(equations, symbols, np.random.default_rng(3), 0))
    function = ca.Function("formulas", [ca.vertcat(*symbols)] if symbols else [], [ca.densify(f) for f in formulas])
    slots: dict[int, tuple[float, np.ndarray]] = {}
    result = np.zeros((len(formulas), len(variables)))
    nothing = np.zeros(len(variables))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(function.n_instructions()):
            operation, inputs = function.instruction_id(k), function.instruction_input(k)
            outputs = function.instruction_output(k)
            if operation == ca.OP_OUTPUT:
                result[outputs[0]] = slots[inputs[0]][1]
            elif operation == ca.OP_CONST:
                slots[outputs[0]] = function.instruction_constant(k), nothing
            elif operation == ca.OP_INPUT:
                at = position.get(symbols[inputs[1]].element_hash())
                slope = nothing if at is None else np.eye(1, len(variables), at)[0]
                slots[outputs[0]] = float(point[inputs[1]]), slope
            else:
                slots[outputs[0]] = _applied(operation, [slots[i] for i in inputs])
    return result


def _applied(operation: int, operands: Sequence[tuple[float, np.ndarray]]) -> tuple[float, np.ndarray]:
    """Return an operation on values with absolute slopes."""
    numbers = [value for value, _ in operands]
    value, *partial = (float(v) for v in _with_slopes(operation, len(operands))(*numbers))
    slopes = [_products(abs(p), slope) for p, (_, slope) in zip(partial, operands, strict=True) if slope.any()]
    return value, np.sum(slopes, axis=0) if slopes else operands[0][1] * 0.0


@cache
def _with_slopes(operation: int, count: int) -> ca.Function:
    """Return the value of an elementary operation and its derivatives by each operand."""
    operands = [ca.SX.sym(f"operand{k}") for k in range(count)]
    value = ca.SX.unary(operation, *operands) if count == 1 else ca.SX.binary(operation, *operands)
    return ca.Function("operation", operands, [value, *(ca.densify(ca.jacobian(value, o)) for o in operands)])


def _sizes(equations: Equations, formulas: ca.SX, part: float = 1.0) -> np.ndarray:
    """Return absolute values of formulas at a random point; zero where they have none."""
    symbols = ca.symvar(formulas)
    vector = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
    point = part * random_point(equations, symbols, np.random.default_rng(3), 0)
    values = np.abs(np.array(ca.Function("slopes", [vector], [formulas])(point).full()))
    return np.where(np.isfinite(values), values, 0.0)
