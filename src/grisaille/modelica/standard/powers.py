"""Sums of powers of two arguments, as equations of state have them, in few operations.

f = sum of n_k x^I_k y^J_k, collected by powers of x and written by Horner's rule. Reciprocals of the arguments are the
only divisions, so that they should be kept away from zero: ``max(x, 0.1)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grisaille.modelica.values import Array, Unfit, Value, add, divide, is_number, multiply, power

DERIVATIVES = ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1))
"""How often the results of ``sums_of_powers`` are differentiated by x and by y."""


def sum_of_powers(n: Array, i: Array, j: Array, x: Value, y: Value) -> tuple[Value]:
    """Return the sum itself.

    n : coefficients
    i, j : exponents of x and y, whole numbers
    """
    return (_Sum(n, i, j, x, y).derivative(0, 0),)


def sums_of_powers(n: Array, i: Array, j: Array, x: Value, y: Value) -> tuple[Value, ...]:
    """Return f, f_x, f_xx, f_y, f_yy, f_xy."""
    found = _Sum(n, i, j, x, y)
    return tuple(found.derivative(*orders) for orders in DERIVATIVES)


class _Sum:
    def __init__(self, n: Array, i: Array, j: Array, x: Value, y: Value) -> None:
        if not all(isinstance(a, np.ndarray) and a.ndim == 1 and all(map(is_number, a)) for a in (n, i, j)):
            raise Unfit("the coefficients and exponents of a sum of powers must be known while the text is read")
        if not len(n) == len(i) == len(j):
            raise Unfit("a sum of powers needs as many exponents as coefficients")
        self.terms = list(zip(n, i, j, strict=True))
        self.x, self.y = x, y
        self._powers: dict[tuple[int, int], Any] = {}

    def derivative(self, by_x: int, by_y: int) -> Any:
        """Return the sum, differentiated some times."""
        rows: dict[int, dict[int, float]] = {}
        for n, i, j in self.terms:
            factor = n * _falling(i, by_x) * _falling(j, by_y)
            if factor != 0:
                row = rows.setdefault(i - by_x, {})
                row[j - by_y] = row.get(j - by_y, 0.0) + factor
        return self._horner({i: self._horner(row, self.y) for i, row in rows.items()}, self.x)

    def _horner(self, terms: Mapping[int, Value], x: Value) -> Value:
        if not terms:
            return 0.0
        first, *rest = sorted(terms, reverse=True)
        value, last = terms[first], first
        for exponent in rest:
            value, last = add(multiply(value, self._power(x, last - exponent)), terms[exponent]), exponent
        return multiply(value, self._power(x, last)) if last else value

    def _power(self, x: Any, exponent: int) -> Any:
        key = id(x), exponent
        if key not in self._powers:
            if exponent < 0:
                made = divide(1.0, self._power(x, -exponent))
            else:
                made = x if exponent == 1 else power(x, exponent)
            self._powers[key] = made
        return self._powers[key]


def _falling(exponent: int, times: int) -> int:
    """Return the factor that differentiating a power some times gives."""
    factor = 1
    for k in range(times):
        factor *= exponent - k
    return factor
