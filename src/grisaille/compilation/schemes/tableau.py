"""An embedded explicit Runge–Kutta pair with its continuous extension, as numbers.

::

    k_i = f(t + c_i h, x + h Σ_j a_ij k_j),   x_new = x + h Σ_j a_mj k_j,   m = last, k_m = f(t + h, x_new)

Rows beyond ``m`` serve the continuous extension only. With w = the weights of row m,

::

    x(t + s h) = x + h s (w·k + (1−s)(k_0 − w·k + s(2 w·k − k_0 − k_m + (1−s)(d_0·k + s(d_1·k + (1−s)(d_2·k + …))))))

which without ``d`` is the cubic through both ends. The integrator (gr_explicit.h) is given these numbers as text
(``tableau_source``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.errors import CompilationError

Floats = NDArray[np.float64]
ORDER_CONDITION_TOLERANCE = 1e-12
"""What published coefficients, written as fractions, miss conditions of order by at most."""
MAX_ORDER_FOR_CUBIC = 4
"""The highest order of steps for which the cubic through both ends is accurate enough."""
MAX_STABILITY_SEARCH = 1e3
"""|h λ| up to which the end of the stability region is looked for."""


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of one pair; ``a`` is strictly lower triangular, ``d`` holds the levels of the extension."""

    order: int
    last: int
    a: Floats
    c: Floats
    e: Floats
    """Weights of the error estimate."""
    e3: Floats | None
    """Those of a second one."""
    d: Floats
    beta: float
    grow: float
    shrink: float
    stiff: float
    """|h λ| beyond which the stability region ends (Hairer and Wanner, volume II, section IV.2)."""
    near: tuple[tuple[int, int], ...]
    """Per stage the two earlier ones through which a line predicts what is algebraic there; both the same where there
    is only one."""

    @property
    def rows(self) -> int:
        return len(self.c)

    def weights(self, s: float) -> Floats:
        """Return ``w(s)`` with ``x(t + s h) = x + h Σ w_i(s) k_i``."""
        m, w = self.last, np.zeros(self.rows)
        w[:m] = self.a[m, :m]
        first, final = np.eye(self.rows)[0], np.eye(self.rows)[m]
        inner = np.zeros(self.rows)
        for level in range(len(self.d) - 1, -1, -1):
            inner = self.d[level] + (s if level % 2 == 0 else 1 - s) * inner
        value: Floats = s * (w + (1 - s) * (first - w + s * (2 * w - first - final + (1 - s) * inner)))
        return value


def triangle(rows: Sequence[Sequence[float]]) -> Floats:
    """Return the square matrix whose rows 1, 2, … begin with these."""
    n = len(rows) + 1
    a = np.zeros((n, n))
    for i, row in enumerate(rows, start=1):
        a[i, :i] = row
    return a


def embedded_pair(
    order: int, a: Sequence[Sequence[float]], b: Sequence[float], other: Sequence[float],
    middle: Sequence[float] | None = None, *, beta: float = 0.04, grow: float = 10.0, shrink: float = 0.2,
) -> Tableau:  # fmt: skip
    """Return a published pair from its Butcher matrix, the weights of the solution, and those of the error estimate.

    a : rows 1, 2, … of the strict lower triangle
    middle : weights of the value in the middle of a step, that of f at its end last; values inside a step are those
        of the cubic through its ends, or of the polynomial through the middle too
    beta, grow, shrink : of the control of steps (gr_explicit.h)

    Whether the last stage is the solution itself, as in Bogacki's and Shampine's pair, is seen. What is not of the
    order it claims is refused, and so is order 5 and above without ``middle``: a cubic would be far less accurate than
    steps.
    """
    rows, weights, others = [list(map(float, row)) for row in a], list(map(float, b)), list(map(float, other))
    wrong = next((i for i, row in enumerate(rows, start=1) if len(row) != i), None)
    if wrong is not None:
        raise CompilationError(f"Row {wrong} of a tableau has {len(rows[wrong - 1])} entries; it must have {wrong}.")
    stages = len(rows) + 1
    if not len(weights) == len(others) == stages:
        raise CompilationError(
            f"A tableau of {stages} stages has {len(weights)} weights, and {len(others)} that they are compared with; "
            f"give {stages} of each, zeros included."
        )
    if order > MAX_ORDER_FOR_CUBIC and middle is None:
        raise CompilationError(
            f"A pair of order {order} needs the weights of the middle of a step, middle=: values inside a step would "
            f"be less accurate than the steps."
        )
    _require_order(order, triangle(rows), np.array(weights))
    if not (weights[-1] == 0.0 and rows and rows[-1] == weights[:-1]):
        rows, weights, others = [*rows, weights], [*weights, 0.0], [*others, 0.0]
    matrix = triangle(rows)
    last, error = len(rows), np.array(weights) - np.array(others)
    if not np.abs(error).max() > 0:
        raise CompilationError("Both weights of a tableau are the same: there is nothing to estimate the error by.")
    c = matrix.sum(axis=1)
    c[np.abs(c - 1.0) < ORDER_CONDITION_TOLERANCE] = 1.0
    stiff = _end_of_stability(matrix[:last, :last], np.array(weights[:last]))
    near = tuple(_neighbours(c, i) for i in range(last + 1))
    nothing = np.zeros((0, last + 1))
    found = Tableau(order, last, matrix, c, error, None, nothing, beta, grow, shrink, stiff, near)
    return found if middle is None else _through_the_middle(found, np.array(middle, dtype=float))


def _through_the_middle(pair: Tableau, middle: Floats) -> Tableau:
    """Return the tableau with the level of the extension that gives these weights at s = 1/2."""
    if middle.shape != (pair.rows,):
        raise CompilationError(
            f"The middle of a step has {middle.size} weights; it must have {pair.rows}, that of f at the end of the "
            f"step last."
        )
    # s²(1 − s)² is 1/16 there
    extended = replace(pair, d=16.0 * (middle - pair.weights(0.5))[None, :])
    for k in range(1, pair.order):
        value, wanted = middle @ pair.c ** (k - 1), 0.5**k / k
        if not abs(value - wanted) < ORDER_CONDITION_TOLERANCE:
            raise CompilationError(
                f"The middle of a step is not of order {pair.order - 1}: its weights times c^{k - 1} are {value:.15g} "
                f"and must be {wanted:.15g}. Look for a misprint."
            )
    return extended


def _require_order(order: int, a: Floats, b: Floats) -> None:
    """Require the conditions of quadrature up to the order, and those of all trees up to order four."""
    c = a.sum(axis=1)
    conditions = [(k, f"b·c^{k - 1}", b @ c ** (k - 1), 1 / k) for k in range(1, order + 1)]
    trees = [
        (3, "b·Ac", b @ a @ c, 1 / 6), (4, "b·(c Ac)", b @ (c * (a @ c)), 1 / 8), (4, "b·Ac²", b @ a @ c**2, 1 / 12),
        (4, "b·AAc", b @ a @ a @ c, 1 / 24),
    ]  # fmt: skip
    for needed, name, value, wanted in [*conditions, *trees]:
        if needed <= order and not abs(value - wanted) < ORDER_CONDITION_TOLERANCE:
            raise CompilationError(
                f"The tableau is not of order {order}: {name} is {value:.15g} and must be {wanted:.15g} from order "
                f"{needed} on. Look for a misprint in its coefficients, or give its true order."
            )


def _neighbours(c: Floats, i: int) -> tuple[int, int]:
    """Return the two stages before i that are nearest in time, at different instants; one alone where it is at the
    same.
    """
    before = sorted(range(i), key=lambda j: (abs(c[j] - c[i]), -j))
    if not before:
        return 0, 0
    other = next((j for j in before if c[j] != c[before[0]]), before[0])
    if c[before[0]] == c[i]:
        other = before[0]
    return min(before[0], other), max(before[0], other)


def _end_of_stability(a: Floats, b: Floats) -> float:
    """Return the z at which |R(−z)| first exceeds 1, R(z) = 1 + z bᵀ(I − zA)⁻¹1."""
    one = np.ones(len(b))

    def grows(z: float) -> bool:
        return bool(abs(1.0 - z * (b @ np.linalg.solve(np.eye(len(b)) + z * a, one))) > 1.0 + 1e-9)

    z = 0.05
    while not grows(z):
        z += 0.05
        if z > MAX_STABILITY_SEARCH:
            return MAX_STABILITY_SEARCH
    return z - 0.05
