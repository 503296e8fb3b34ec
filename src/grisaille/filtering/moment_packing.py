"""What a nonlinear filter carries from instant to instant, as one column: s = (x, lower triangle of P, z).

P is symmetric, so its lower triangle is all there is, column by column; z are algebraic unknowns that stay implicit,
carried because their solution at one instant is where the next one starts from, and how well they were solved
(``implicit``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import casadi as ca
import numpy as np

from grisaille.disturbance.duals import Floats


@dataclass(frozen=True)
class Packing:
    """Sizes: n states, nz numbers of algebraic unknowns."""

    n: int
    nz: int = 0

    @property
    def size(self) -> int:
        return self.n + self.n * (self.n + 1) // 2 + self.nz

    def pack(self, x: ca.SX, P: ca.SX, z: ca.SX) -> ca.SX:
        return ca.densify(ca.vertcat(x, lower_triangle(P), z))

    def unpack(self, s: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
        n, half = self.n, self.n * (self.n + 1) // 2
        return s[:n], symmetric(s[n : n + half], n), s[n + half :]

    def join(self, x: Floats, P: Floats, z: Floats) -> Floats:
        """Return numbers (…, n), (…, n, n), (…, nz) as (…, size)."""
        column, row = _triangle(self.n)
        return np.concatenate([x, P[..., row, column], z], axis=-1)

    def split(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        n, half = self.n, self.n * (self.n + 1) // 2
        column, row = _triangle(n)
        P = np.zeros((*s.shape[:-1], n, n))
        P[..., row, column] = P[..., column, row] = s[..., n : n + half]
        return s[..., :n], P, s[..., n + half :]


@lru_cache(maxsize=64)
def _triangle(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n)


def lower_triangle(P: ca.SX) -> ca.SX:
    """Return the lower triangle of a matrix, column by column."""
    n = P.size1()
    return ca.vertcat(*(ca.densify(P[j:, j]) for j in range(n))) if n else ca.SX(0, 1)


def symmetric(entries: ca.SX, n: int) -> ca.SX:
    """Return the matrix of a lower triangle."""
    return ca.tril2symm(ca.SX(ca.Sparsity.lower(n), entries)) if n else ca.SX(0, 0)
