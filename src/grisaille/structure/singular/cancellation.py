"""Removes terms that cancel in sums of equations, so that rounding does not count as a term.

Equations written as sums of others are taken apart by combining them. A symbol or a relation of which the combination
contains 1e-16 would else be solved for, differentiated, or asked for as a derivative of an input. A share cancels where
the parts have one and their sum has none; where no part has any, as a symbol has none that stands in a relation only,
nothing has cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np

from grisaille.structure.equations import Equations
from grisaille.structure.switching_pieces import separate_relations

SIZE_FACTORS = (1.0, 0.1, 1.0, 0.01)
"""Points are drawn at these parts of typical sizes: an exponential that hides every other term at one does not at
all.
"""
TIME_FACTORS = (1.0, 1e3, 1.0, 1e6)
"""And at these sizes of time: what changes in years is constant during the first seconds."""
CANCELLATION_ROUNDING = 1e-12
"""Of the largest share in a part."""


def without_cancelling_terms(equations: Equations, parts: Sequence[ca.SX]) -> list[ca.SX]:
    """Return the parts of a sum without relations, unknowns and signals whose shares in it cancel up to rounding."""
    smooth, pieces = separate_relations(parts, _moving(equations, parts))
    kept = []
    for piece in reversed(pieces):
        cancels = _relation_cancels(equations, smooth, piece.symbol)
        stands_for = ca.SX(0) if cancels else piece.relation.value
        smooth = ca.substitute(smooth, [piece.symbol], [stands_for])
        kept += [] if cancels else [piece.relation.value]
    rounded = _cancelling_symbols(equations, smooth, ca.vertcat(*kept) if kept else ca.SX(0, 1))
    return list(ca.substitute(smooth, rounded, [ca.SX(0)] * len(rounded))) if rounded else list(smooth)


def vanishes(equations: Equations, parts: Sequence[ca.SX]) -> bool:
    """Return whether a sum is zero at random points, up to the rounding of its parts and their derivatives."""
    symbols = ca.symvar(ca.vertcat(*parts))
    if not symbols:
        return False
    v, size = ca.vertcat(*symbols), typical_sizes(equations, symbols)
    column = ca.vertcat(*parts)
    for values, slopes in _values(equations, [column, ca.jacobian(column, v)], symbols):
        terms = np.hstack([values, slopes * size])
        largest = np.abs(terms).max(initial=0.0)
        if not np.isfinite(terms).all() or (np.abs(terms.sum(axis=0)) > CANCELLATION_ROUNDING * largest).any():
            return False
    return True


def typical_sizes(equations: Equations, symbols: Sequence[ca.SX]) -> np.ndarray:
    """Return nominal values of unknowns, one for everything else."""
    variables = equations.model.variables
    names = [m.name if (m := equations.jets.meaning(s)) else "" for s in symbols]
    return np.array([float(variables[n].nominal or 1.0) if n in variables else 1.0 for n in names])


def random_point(
    equations: Equations, symbols: Sequence[ca.SX], random: np.random.Generator, sample: int, low: float = 0.3
) -> np.ndarray:
    """Return values of symbols, of a size that changes from sample to sample."""
    size = SIZE_FACTORS[sample % len(SIZE_FACTORS)] * typical_sizes(equations, symbols)
    instant = equations.jets.time.element_hash()
    for k, symbol in enumerate(symbols):
        if symbol.element_hash() == instant:
            size[k] = TIME_FACTORS[sample % len(TIME_FACTORS)]
    return np.asarray(size * random.uniform(low, 1.7, len(symbols)))


def _moving(equations: Equations, parts: Sequence[ca.SX]) -> ca.SX:
    found = [s for s in ca.symvar(ca.vertcat(*parts)) if equations.jets.meaning(s) is not None]
    return ca.vertcat(*found) if found else ca.SX(0, 1)


def _relation_cancels(equations: Equations, parts: Sequence[ca.SX], symbol: ca.SX) -> bool:
    """Return whether the parts change with a piece and their sum does not."""
    column = ca.vertcat(*parts)
    change = ca.substitute(column, symbol, ca.SX(1)) - ca.substitute(column, symbol, ca.SX(0))
    found = [_cancels(value)[0] for (value,) in _values(equations, [change], ca.symvar(change))]
    return all(found)


def _cancelling_symbols(equations: Equations, parts: Sequence[ca.SX], relations: ca.SX) -> list[ca.SX]:
    """Return unknowns and signals that a sum contains up to rounding only; not those that a relation in it still
    needs.
    """
    needed = {s.element_hash() for s in ca.symvar(relations)}
    own = [s for s in ca.vertsplit(_moving(equations, parts)) if s.element_hash() not in needed and s.numel()]
    if not own:
        return []
    column = ca.vertcat(*parts)
    slopes = ca.jacobian(column, ca.vertcat(*own))
    found = [_cancels(value) for (value,) in _values(equations, [slopes], ca.symvar(column))]
    return [s for s, gone in zip(own, np.all(found, axis=0), strict=True) if gone]


def _cancels(shares: np.ndarray) -> np.ndarray:
    """For each column of shares, one row for each part: whether there are any, and their sum is rounding."""
    largest = np.abs(shares).max(axis=0)
    return np.asarray(
        (largest > 0) & (np.abs(shares.sum(axis=0)) <= CANCELLATION_ROUNDING * largest) & np.isfinite(largest)
    )


def _values(
    equations: Equations, formulas: Sequence[ca.SX], symbols: Sequence[ca.SX]
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield formulas at random points; those where they have no finite value are left out, unless there is no other."""
    vector = ca.vertcat(*symbols) if symbols else ca.SX(0, 1)
    function = ca.Function("values", [vector], [ca.densify(f) for f in formulas])
    random, found = np.random.default_rng(5), []
    for sample in range(len(SIZE_FACTORS)):
        values = function.call([random_point(equations, symbols, random, sample)])
        found.append(
            tuple(np.array(part.full()).reshape(f.shape, order="F") for part, f in zip(values, formulas, strict=True))
        )
    finite = [values for values in found if all(np.isfinite(part).all() for part in values)]
    yield from finite or found
