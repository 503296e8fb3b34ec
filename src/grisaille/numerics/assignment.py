"""The assignment of rows to columns with the largest sum, by shortest augmenting paths.

Rows are assigned one after the other. The path that brings a new row in is the shortest one in reduced gains, found as
Dijkstra's algorithm finds it; prices of rows and columns keep all reduced gains at or below zero. Where several
assignments are equally good the choice is that of ``scipy.optimize.linear_sum_assignment``, whose import takes longer
than the assignment of a small matrix: this one serves where nothing else of ``scipy.optimize`` is needed.

References: R. Jonker, A. Volgenant, A shortest augmenting path algorithm for dense and sparse linear assignment
problems, Computing 38 (1987) 325; D. F. Crouse, On implementing 2D rectangular assignment algorithms, IEEE Trans.
Aerosp. Electron. Syst. 52 (2016) 1679.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SMALL_SIZE = 60
"""Rows up to which this is quicker than to import ``scipy.optimize``."""


def best_assignment(gain: Sequence[Sequence[float]]) -> list[int]:
    """Return the column of each row of a square matrix.

    gain : finite; the sum over the assigned pairs is largest
    """
    n = len(gain)
    row_price, column_price = [0.0] * n, [0.0] * n
    row_of, column_of = [-1] * n, [-1] * n
    for row in range(n):
        length, last, tree_rows, tree_columns, free = _shortest_path(gain, row, row_price, column_price, row_of)
        total = length[free]
        for i in tree_rows:
            row_price[i] += total if i == row else total - length[column_of[i]]
        for j in tree_columns:
            column_price[j] -= total - length[j]
        j = free
        while True:
            i = last[j]
            row_of[j] = i
            column_of[i], j = j, column_of[i]
            if i == row:
                break
    return column_of


def _shortest_path(
    gain: Sequence[Sequence[float]], row: int, row_price: list[float], column_price: list[float], row_of: list[int]
) -> tuple[list[float], list[int], list[int], list[int], int]:
    """From a row to a column that has none: lengths, the row before each column, rows and columns of the tree, and that
    column. Of columns equally far one without a row is preferred."""
    n = len(gain)
    length, last = [math.inf] * n, [-1] * n
    rows, columns, waiting = [], [], list(range(n - 1, -1, -1))
    i, so_far = row, 0.0
    while True:
        rows.append(i)
        nearest, least = -1, math.inf
        for k, j in enumerate(waiting):
            through = so_far - gain[i][j] - row_price[i] - column_price[j]
            if through < length[j]:
                length[j], last[j] = through, i
            if length[j] < least or (length[j] == least and row_of[j] < 0):
                nearest, least = k, length[j]
        so_far = least
        j = waiting[nearest]
        waiting[nearest] = waiting[-1]
        waiting.pop()
        columns.append(j)
        if row_of[j] < 0:
            return length, last, rows, columns, j
        i = row_of[j]
