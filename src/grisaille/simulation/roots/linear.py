"""What Newton's method works on: the equations, a step that fails, and linear equations with scaled pivots.

The factors are those of gr_linear.h.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.task import Status

Floats = NDArray[np.float64]

EPS = float(np.finfo(float).eps)
LU_NOISE = 4.0 * EPS


class Function(Protocol):
    def __call__(self, t: float, x: Floats, z: Floats, u: Floats, p: Floats) -> Floats: ...


class EquationFunctions(Protocol):
    """The part of a ``Kernel`` that roots are found with."""

    @property
    def nx(self) -> int: ...
    @property
    def nz(self) -> int: ...
    @property
    def nm(self) -> int: ...
    @property
    def sides(self) -> int: ...
    @property
    def F(self) -> Function: ...
    @property
    def J(self) -> Function: ...
    @property
    def S(self) -> Function: ...


class StepFailure(Exception):
    """A root that cannot be found as asked."""

    def __init__(self, status: Status, where: int = -1, amount: float = 0.0) -> None:
        super().__init__(status.name)
        self.status, self.where, self.amount = status, int(where), float(amount)


def lu(a: Floats) -> tuple[Floats, list[int]]:
    """Return ``P A = L U`` with the row-scaled pivots of gr_linear.h; raises ``StepFailure`` on a singular matrix."""
    a = a.copy()
    n = len(a)
    rows = np.abs(a).max(axis=1, initial=0.0)
    weight = np.divide(1.0, rows, out=np.zeros(n), where=rows > 0)
    pivots = []
    for k in range(n):
        p = k + int(np.argmax(np.abs(a[k:, k]) * weight[k:]))
        size, noise = abs(a[p, k]), float(np.abs(a[p, :k] * a[:k, k]).sum())
        if not size > LU_NOISE * noise or not np.isfinite(size):
            raise StepFailure(Status.SINGULAR, k)
        pivots.append(p)
        a[[k, p]] = a[[p, k]]
        weight[p] = weight[k]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots


def lu_solve(factors: tuple[Floats, list[int]], b: Floats) -> Floats:
    """Return the solution of ``A x = b``; ``b`` may hold several columns."""
    a, pivots = factors
    x = np.array(b, dtype=float)
    for k, p in enumerate(pivots):
        x[[k, p]] = x[[p, k]]
    for k in range(len(pivots)):
        x[k] -= a[k, :k] @ x[:k]
    for k in range(len(pivots) - 1, -1, -1):
        x[k] = (x[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x
