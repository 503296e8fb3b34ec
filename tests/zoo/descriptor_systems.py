"""Linear stochastic descriptor systems with known answers, and their answers by exact arithmetic.

``count`` holds how often each disturbance (column) is differentiated on its way to each variable (row), read off the
solution by hand; None where it passes an integration first. ``exact_relative_degree`` computes the same from the
transfer function in rational arithmetic, without any of the package's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from grisaille.structure.descriptor import Matrix


@dataclass(frozen=True)
class Known:
    name: str
    E: Matrix
    F: Matrix
    J: Matrix
    index: int
    finite_modes: int
    count: tuple[tuple[int | None, ...], ...]


def _known(name: str, E: list, F: list, J: list, index: int, finite_modes: int, count: list) -> Known:  # type: ignore[type-arg]
    arrays = (np.array(m, dtype=float) for m in (E, F, J))
    return Known(name, *arrays, index, finite_modes, tuple(map(tuple, count)))


def _chain(n: int) -> Known:
    """0 = −z₁ + w, z₁' = z₂, …: z_k is the (k − 1)-th derivative of w."""
    E, F = np.eye(n, k=-1), -np.eye(n)
    F[1:] *= -1
    J = np.zeros((n, 1))
    J[0] = 1.0
    return _known(f"chain of index {n}", E.tolist(), F.tolist(), J.tolist(), n, 0, [[k] for k in range(n)])


SYSTEMS = (
    _known(
        "two bodies",  # v1' = f + w1, v2' = −f + w2, 0 = v1 − v2
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[0, 0, 1], [0, 0, -1], [1, -1, 0]],
        [[1, 0], [0, 1], [0, 0]],
        2, 1, [[None, None], [None, None], [0, 0]],
    ),
    _known(
        "white beside a state",  # z1' = −2 z1 + w1, 0 = −z2 + w2
        [[1, 0], [0, 0]], [[-2, 0], [0, -1]], [[1, 0], [0, 1]],
        1, 1, [[None, None], [None, 0]],
    ),
    _known(
        "ordinary differential equation",  # an oscillator driven on its velocity
        [[1, 0], [0, 2]], [[0, 1], [-3, -1]], [[0], [1]],
        0, 2, [[None], [None]],
    ),
    _known(
        "algebraic loop",  # x' = −x + z, 0 = x + 2 z + w
        [[1, 0], [0, 0]], [[-1, 1], [1, 2]], [[0], [1]],
        1, 1, [[None], [0]],
    ),
    _known(
        "prescribed motion",  # x' = v, v' = −x − v + f + w1, 0 = x − w2: f = w2'' + w2' + w2 − w1
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[0, 1, 0], [-1, -1, 1], [1, 0, 0]],
        [[0, 0], [1, 0], [0, -1]],
        3, 0, [[None, 0], [None, 1], [0, 2]],
    ),
    _known(
        "capacitor at a noisy source",  # 2 v' = i, 0 = v − w, x' = −x + v
        [[2, 0, 0], [0, 0, 0], [0, 0, 1]],
        [[0, 1, 0], [1, 0, 0], [1, 0, -1]],
        [[0], [-1], [0]],
        2, 1, [[0], [1], [None]],
    ),
    _known(
        "derivatives that cancel",  # (x + y)' = −x + w, (x + y)' = −y: x − y = w although E has two full rows
        [[1, 1], [1, 1]], [[-1, 0], [0, -1]], [[1], [0]],
        1, 1, [[0], [0]],
    ),
    _known(
        "controller that inverts the plant",  # x1' = −x1 + x2, x2' = u, 0 = x1 − w: u = w'' + w'
        [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        [[-1, 1, 0], [0, 0, 1], [1, 0, 0]],
        [[0], [0], [-1]],
        3, 0, [[0], [1], [2]],
    ),
    _known(
        "two chains and a plant",  # index 2 and index 1 parts beside a damped mode driven by both
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]],
        [[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 1, 1, -3]],
        [[1, 0], [0, 0], [0, 1], [0, 0]],
        2, 1, [[0, None], [1, None], [None, 0], [0, None]],
    ),
    _chain(1),
    _chain(2),
    _chain(3),
    _chain(4),
)  # fmt: skip

SINGULAR = (
    ("an equation 0 = 0", [[1, 0], [0, 0]], [[1, 0], [0, 0]]),
    ("the same equation twice", [[1, 2], [2, 4]], [[3, 1], [6, 2]]),
    ("over- and underdetermined parts", [[1, 0, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 1]]),
    ("seen only after a step", [[1, 0, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 0], [2, 0, 0]]),
    ("no derivative, no value", [[0, 1], [0, 0]], [[0, 3], [0, 1]]),
)

Polynomial = tuple[Fraction, ...]


def exact_relative_degree(E: Matrix, F: Matrix, J: Matrix, H: Matrix) -> list[list[int | None]]:
    """deg numerator − deg denominator of each entry of H(sE − F)⁻¹J; None for an entry that vanishes.

    Entry (i, l) is det[[sE − F, J_l], [−H_i, 0]] / det(sE − F); determinants by Laplace expansion over polynomials.
    """
    bottom = _degree(_determinant(_pencil(E, F)))
    assert bottom is not None
    degrees: list[list[int | None]] = []
    for h in H:
        row: list[int | None] = []
        for j in J.T:
            bordered = [[*r, (Fraction(int(b)),)] for r, b in zip(_pencil(E, F), j, strict=True)]
            bordered.append([*((Fraction(-int(c)),) for c in h), (Fraction(0),)])
            top = _degree(_determinant(bordered))
            row.append(None if top is None else top - bottom)
        degrees.append(row)
    return degrees


def exact_finite_modes(E: Matrix, F: Matrix) -> int | None:
    """deg det(sE − F); None when it vanishes identically."""
    return _degree(_determinant(_pencil(E, F)))


def _pencil(E: Matrix, F: Matrix) -> list[list[Polynomial]]:
    return [
        [(Fraction(-int(f)), Fraction(int(e))) for e, f in zip(*rows, strict=True)] for rows in zip(E, F, strict=True)
    ]


def _determinant(matrix: list[list[Polynomial]]) -> Polynomial:
    n = len(matrix)

    @cache
    def minor(row: int, columns: frozenset[int]) -> Polynomial:
        if row == n:
            return (Fraction(1),)
        total: Polynomial = (Fraction(0),)
        for k, column in enumerate(sorted(columns)):
            if any(matrix[row][column]):
                sign = Fraction(-1 if k % 2 else 1)
                rest = minor(row + 1, columns - {column})
                total = _add(total, _multiply((sign,), _multiply(matrix[row][column], rest)))
        return total

    return minor(0, frozenset(range(n)))


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    size = max(len(a), len(b))
    a, b = (p + (Fraction(0),) * (size - len(p)) for p in (a, b))
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    product = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return tuple(product)


def _degree(polynomial: Polynomial) -> int | None:
    return max((k for k, c in enumerate(polynomial) if c), default=None)
