"""Slopes that are rounding: what is left of an unknown where definitions are inserted and its terms cancel.

An equation that contains x by itself and through an eliminated variable may not contain it at all, 3 x − 3 (x + y). In
numbers 1e-16 of it is left, which must not be divided by: everything computed from such a pivot is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.structure.pieces import is_affine
from grisaille.structure.singular.cancellation import random_point

if TYPE_CHECKING:
    from grisaille.structure.blocks import Unknown
    from grisaille.structure.equations import Equations

SUSPICIOUS = 1e-7
"""Slopes below this part of their equation's largest are looked at; in units of nominal values."""
ROUNDING = 1e-12
"""Of the terms that a slope is the sum of."""


def without_rounded_slopes(
    equations: Equations,
    before: Sequence[ca.SX],
    after: Sequence[ca.SX],
    definitions: Sequence[tuple[ca.SX, ca.SX]],
    unknowns: Sequence[Unknown],
) -> list[ca.SX]:
    """``after``, which is ``before`` with definitions inserted, without terms of unknowns that are rounding."""
    result = list(after)
    if not definitions or not after or not unknowns:
        return result
    symbols = [u.symbol for u in unknowns]
    slopes = ca.jacobian(ca.vertcat(*after), ca.vertcat(*symbols))
    nominal = np.array([u.nominal for u in unknowns])
    suspicious = _suspicious(equations, slopes, nominal)
    if not suspicious:
        return result
    values = _sizes(equations, slopes)
    terms = _terms(equations, before, definitions, symbols)
    for i, j in suspicious:
        if values[i, j] <= ROUNDING * terms[i, j] and is_affine(result[i], symbols[j]):
            result[i] = ca.substitute(result[i], symbols[j], ca.SX(0))
    return result


def _suspicious(equations: Equations, slopes: ca.SX, nominal: np.ndarray) -> list[tuple[int, int]]:
    """Entries that may be divided by, numbers or formulas of parameters, and are small beside others of their row."""
    if not slopes.nnz():
        return []
    rows, columns = (np.array(side) for side in slopes.sparsity().get_triplet())
    sizes = _sizes(equations, ca.vertcat(*slopes.nonzeros())).ravel() * nominal[columns]
    largest = np.zeros(slopes.shape[0])
    np.maximum.at(largest, rows, sizes)
    known = {p.element_hash() for p in equations.parameters.values()}
    return [
        (int(rows[k]), int(columns[k]))
        for k in np.flatnonzero((sizes > 0) & (sizes <= SUSPICIOUS * largest[rows]))
        if all(s.element_hash() in known for s in ca.symvar(slopes.nz[int(k)]))
    ]


def _terms(
    equations: Equations, before: Sequence[ca.SX], definitions: Sequence[tuple[ca.SX, ca.SX]], symbols: Sequence[ca.SX]
) -> np.ndarray:
    """For each equation and unknown x the sum of |∂r/∂y · ∂y/∂x| over all ways through definitions y."""
    n, count = len(symbols), len(before)
    v = ca.vertcat(*symbols, *(name for name, _ in definitions))
    ways = _sizes(equations, ca.jacobian(ca.vertcat(*before, *(formula for _, formula in definitions)), v))
    share = np.zeros((len(definitions), n))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows tells nothing
        for k in range(len(definitions)):  # a definition may use those before it
            row = ways[count + k]
            share[k] = row[:n] + row[n:] @ share
        terms = ways[:count, :n] + ways[:count, n:] @ share
    return np.where(np.isfinite(terms), terms, 0.0)


def _sizes(equations: Equations, formulas: ca.SX) -> np.ndarray:
    """Absolute values of formulas at a random point; zero where they have none."""
    symbols = ca.symvar(formulas)
    vector = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
    point = random_point(equations, symbols, np.random.default_rng(3), 0)
    values = np.abs(np.array(ca.Function("slopes", [vector], [formulas])(point).full()))
    return np.where(np.isfinite(values), values, 0.0)
