"""The differential index from the derivative array, where the signature alone does not tell it.

The equations and their first ν derivatives, F_ν = (f, f', …, f^(ν)) = 0, determine the highest derivatives x_j^(s_j) of
the unknowns (s_j the highest order written, at least one) if no vector of the null space of

    J_ν = ∂F_ν / ∂(x_j^(m), m ≥ s_j)

moves them:  rank J_ν = n + rank of the columns with m > s_j. The smallest such ν is the differential index. Ranks are
taken numerically at random values of all symbols, which any right-hand side added to the equations makes consistent.

Reference: K. Brenan, S. Campbell, L. Petzold, Numerical Solution of Initial-Value Problems in DAEs (1996), section 2.5.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.structure.equations import Equations
from grisaille.structure.singular.cancellation import typical_sizes
from grisaille.structure.singular.scaling import rank

MAX_ROWS = 800
"""Rows of the largest array that is formed."""
SAMPLED_POINTS = 2


def index_by_array(equations: Equations, most: int) -> int | None:
    """Return the smallest ν up to ``most`` that determines the derivatives; None where none does or arrays are too
    large.
    """
    jets, names = equations.jets, equations.unknowns
    rows = [row.residual for row in equations.rows]
    highest = dict.fromkeys(names, 1)
    for row in rows:
        highest.update({n: max(highest[n], order) for n, order in jets.unknowns(row).items()})
    array: list[ca.SX] = []
    for order in range(most + 1):
        array += rows
        if len(array) > MAX_ROWS:
            return None
        first = [jets.symbol(n, highest[n]) for n in names]
        later = [jets.symbol(n, highest[n] + k) for k in range(1, order + 1) for n in names]
        if _determines(equations, ca.vertcat(*array), first, later):
            return order
        rows = [jets.differentiate(row) for row in rows]
    return None


def _determines(equations: Equations, array: ca.SX, first: list[ca.SX], later: list[ca.SX]) -> bool:
    jacobian = ca.densify(ca.jacobian(array, ca.vertcat(*first, *later)))
    symbols = ca.symvar(jacobian)
    size = typical_sizes(equations, symbols)
    function = ca.Function("array", [ca.vertcat(*symbols)] if symbols else [ca.SX(0, 1)], [jacobian])
    random = np.random.default_rng(20011)
    found = []
    for attempt in range(6 * SAMPLED_POINTS):
        low = 0.3 if attempt < 3 * SAMPLED_POINTS else -1.3
        J = np.array(function(size * random.uniform(low, 1.7, len(symbols))).full())
        if np.isfinite(J).all():
            found.append(rank(J) == len(first) + rank(J[:, len(first) :]))
        if len(found) == SAMPLED_POINTS:
            break
    return any(found)
