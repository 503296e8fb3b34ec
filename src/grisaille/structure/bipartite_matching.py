"""Matching equations with unknowns, and what is wrong where no perfect matching exists.

A bipartite graph is given as ``rows``: for each equation the set of unknowns in it. The Dulmage–Mendelsohn
decomposition of a maximum matching separates the overdetermined part (equations reachable by alternating paths from an
unmatched equation) from the underdetermined part (unknowns reachable from an unmatched unknown).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Decomposition:
    """Indices of the over- and underdetermined parts; empty where the system is structurally regular."""

    over_equations: tuple[int, ...]
    over_unknowns: tuple[int, ...]
    under_equations: tuple[int, ...]
    under_unknowns: tuple[int, ...]

    @property
    def is_regular(self) -> bool:
        return not (self.over_equations or self.under_unknowns)


def maximum_matching(rows: Sequence[Collection[int]], columns: int) -> list[int]:
    """Match each equation with an unknown, or −1, by augmenting paths without recursion."""
    owner = [-1] * columns
    partner = [-1] * len(rows)
    for start in range(len(rows)):
        parent: dict[int, int] = {}
        queue, end = [start], -1
        for row in queue:
            for column in sorted(rows[row]):
                if column in parent:
                    continue
                parent[column] = row
                if owner[column] < 0:
                    end = column
                    break
                queue.append(owner[column])
            if end >= 0:
                break
        while end >= 0:
            row = parent[end]
            owner[end], partner[row], end = row, end, partner[row]
    return partner


def decompose(rows: Sequence[Collection[int]], columns: int) -> Decomposition:
    """Return the over- and underdetermined parts by alternating paths from what stays unmatched."""
    partner = maximum_matching(rows, columns)
    owner = {column: row for row, column in enumerate(partner) if column >= 0}
    over_rows, over_columns = _reach_from_rows([r for r, c in enumerate(partner) if c < 0], rows, owner)
    free = [c for c in range(columns) if c not in owner]
    under_rows, under_columns = _reach_from_columns(free, rows, partner)
    return Decomposition(*(tuple(sorted(s)) for s in (over_rows, over_columns, under_rows, under_columns)))


def _reach_from_rows(
    start: list[int], rows: Sequence[Collection[int]], owner: dict[int, int]
) -> tuple[set[int], set[int]]:
    seen_rows, seen_columns, queue = set(start), set[int](), list(start)
    for row in queue:
        for column in rows[row]:
            seen_columns.add(column)
            next_row = owner.get(column)
            if next_row is not None and next_row not in seen_rows:
                seen_rows.add(next_row)
                queue.append(next_row)
    return seen_rows, seen_columns


def _reach_from_columns(
    start: list[int], rows: Sequence[Collection[int]], partner: Sequence[int]
) -> tuple[set[int], set[int]]:
    users: dict[int, list[int]] = {}
    for row, columns in enumerate(rows):
        for column in columns:
            users.setdefault(column, []).append(row)
    seen_columns, seen_rows, queue = set(start), set[int](), list(start)
    for column in queue:
        for row in users.get(column, ()):
            seen_rows.add(row)
            next_column = partner[row]
            if next_column >= 0 and next_column not in seen_columns:
                seen_columns.add(next_column)
                queue.append(next_column)
    return seen_rows, seen_columns
