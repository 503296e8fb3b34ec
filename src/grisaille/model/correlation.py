"""Correlation matrices of vector disturbances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Constant, Expression, as_expression

if TYPE_CHECKING:
    from grisaille.model.expression import FormulaLike


def check_correlation(name: str, correlation: FormulaLike, n: int) -> list[list[Expression]]:
    """Return an n × n symmetric matrix with unit diagonal, entries as formulas."""
    matrix = np.array(correlation, dtype=object)
    if matrix.shape != (n, n):
        raise ModelError(f"{name}: correlation must be a {n} × {n} matrix, got shape {matrix.shape}.")
    rows = [[as_expression(entry) for entry in row] for row in matrix]
    numbers = [[entry.value if isinstance(entry, Constant) else None for entry in row] for row in rows]
    for i, j in np.ndindex(n, n):
        if i == j and numbers[i][i] not in (None, 1.0):
            raise ModelError(f"{name}: correlation has {numbers[i][i]:g} on its diagonal; it must be 1 (use scale=).")
        if numbers[i][j] != numbers[j][i]:
            raise ModelError(f"{name}: correlation is not symmetric in entries ({i}, {j}) and ({j}, {i}).")
        if i != j and numbers[i][j] is not None and not abs(numbers[i][j]) <= 1:  # type: ignore[arg-type]
            raise ModelError(f"{name}: correlation ({i}, {j}) = {numbers[i][j]:g} lies outside [-1, 1].")
    return rows
