"""Matching, the Dulmage–Mendelsohn parts and strong components on graphs with known answers."""

from __future__ import annotations

import numpy as np

from grisaille.model import strong_components
from grisaille.structure import decompose, maximum_matching


def test_matching_is_perfect_where_one_exists() -> None:
    partner = maximum_matching([{0, 1}, {0}, {1, 2}], 3)
    assert sorted(partner) == [0, 1, 2]
    assert partner[1] == 0


def test_matching_needs_augmenting_paths() -> None:
    """A staircase where the greedy choice is wrong at every row."""
    n = 60
    rows = [{0}] + [{k - 1, k} for k in range(1, n)]
    rows.reverse()
    assert sorted(maximum_matching(rows, n)) == list(range(n))


def test_over_and_underdetermined_parts_are_separated() -> None:
    parts = decompose([{0}, {0}, {1, 2}], 3)
    assert parts.over_equations == (0, 1) and parts.over_unknowns == (0,)
    assert parts.under_equations == (2,) and parts.under_unknowns == (1, 2)
    assert not parts.is_regular


def test_regular_system_has_no_parts() -> None:
    assert decompose([{0, 1}, {1}], 2).is_regular


def test_components_come_after_what_they_depend_on() -> None:
    successors = [{1}, {2}, {1}, {0}, set()]
    components = strong_components(successors)
    assert sorted(map(tuple, components)) == [(0,), (1, 2), (3,), (4,)]
    place = {member: k for k, c in enumerate(components) for member in c}
    for node, needed in enumerate(successors):
        assert all(place[other] <= place[node] for other in needed)


def test_long_chains_do_not_recurse() -> None:
    n = 20_000
    components = strong_components([{k + 1} if k + 1 < n else set() for k in range(n)])
    assert [c[0] for c in components] == list(reversed(range(n)))


def test_random_graphs_against_reachability() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        n = 8
        adjacency = random.random((n, n)) < 0.2
        reach = np.linalg.matrix_power(np.eye(n) + adjacency, n) > 0
        components = strong_components([set(np.flatnonzero(row)) for row in adjacency])
        together = {frozenset(c) for c in map(tuple, components)}
        expected = {frozenset(np.flatnonzero(reach[i] & reach[:, i])) for i in range(n)}
        assert together == expected
