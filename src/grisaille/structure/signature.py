"""How often each equation must be differentiated: Pryce's signature method, equivalent to Pantelides' algorithm.

σ_ij is the highest order with which unknown j occurs in equation i (−∞ where it does not). A transversal of maximal
Σσ gives the smallest offsets c ≥ 0, d ≥ 0 with

    d_j − c_i ≥ σ_ij   everywhere,   equality on the transversal.

Equation i is differentiated c_i times; the unknowns of the resulting system are the derivatives x_j^(d_j). The
differential index is max c + 1 if some d_j = 0, else max c.

Reference: J. D. Pryce, A simple structural analysis method for DAEs, BIT 41 (2001).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.numerics.assignment import SMALL_SIZE, best_assignment

Signature = Sequence[Mapping[int, int]]
"""For each equation: unknown → σ."""


@dataclass(frozen=True)
class Offsets:
    equations: tuple[int, ...]
    """c_i: how often equation i is differentiated."""
    unknowns: tuple[int, ...]
    """d_j: the order of unknown j in the differentiated system."""
    transversal: tuple[int, ...]
    """The unknown matched with each equation."""

    @property
    def index(self) -> int:
        highest = max(self.equations, default=0)
        return highest + (1 if any(d == 0 for d in self.unknowns) else 0)

    def is_tight(self, equation: int, unknown: int, order: int) -> bool:
        """Return whether the entry belongs to the system Jacobian."""
        return self.unknowns[unknown] - self.equations[equation] == order


def solve_offsets(signature: Signature) -> Offsets:
    """Return the canonical offsets. Assumes that a perfect matching exists (``matching.decompose`` says so)."""
    n = len(signature)
    transversal = _best_transversal(signature, n)
    c, d = [0] * n, [0] * n
    changed = True
    while changed:
        changed = False
        for i, row in enumerate(signature):
            for j, order in row.items():
                if d[j] < order + c[i]:
                    d[j] = order + c[i]
                    changed = True
        for i, row in enumerate(signature):
            needed = d[transversal[i]] - row[transversal[i]]
            if needed != c[i]:
                c[i] = needed
                changed = True
    return Offsets(tuple(c), tuple(d), tuple(transversal))


MAX_DENSE_EQUATIONS = 300
"""Equations up to which the assignment is solved with all pairs, which is quicker then; beyond with those there are."""


def _best_transversal(signature: Signature, n: int) -> list[int]:
    if n > MAX_DENSE_EQUATIONS:
        return _sparse_transversal(signature, n)
    absent = -1e6 * (n + 1)
    gain = np.full((n, n), absent)
    for i, row in enumerate(signature):
        for j, order in row.items():
            gain[i, j] = order
    if n <= SMALL_SIZE:
        return best_assignment(gain.tolist())
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(gain, maximize=True)
    return [int(j) for j in columns]


def _sparse_transversal(signature: Signature, n: int) -> list[int]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    begin = np.concatenate(([0], np.cumsum([len(row) for row in signature])))
    columns = np.array([j for row in signature for j in row])
    # an explicit zero would be no entry
    gain = 1.0 + np.array([order for row in signature for order in row.values()])
    _, partner = min_weight_full_bipartite_matching(csr_array((gain, columns, begin), shape=(n, n)), maximize=True)
    return [int(j) for j in partner]
