"""Least squares by rank of importance."""

from __future__ import annotations

import numpy as np

from grisaille.structure.starts import solve_levels


def test_first_level_wins_over_the_second() -> None:
    hard = (np.array([[1.0, 1.0]]), np.array([2.0]))
    soft = (np.eye(2), np.array([5.0, 0.0]))
    delta = solve_levels([hard, soft], 2)
    # the nearest point to (5, 0) on x + y = 2
    assert np.allclose(delta, [3.5, -1.5], atol=1e-14)


def test_inconsistent_first_level_is_met_in_the_mean() -> None:
    hard = (np.array([[1.0], [1.0]]), np.array([1.0, 3.0]))
    assert np.allclose(solve_levels([hard, (np.eye(1), np.array([9.0]))], 1), [2.0])


def test_undetermined_directions_stay() -> None:
    assert np.allclose(solve_levels([(np.array([[1.0, 0.0, 0.0]]), np.array([4.0]))], 3), [4.0, 0.0, 0.0])


def test_several_right_hand_sides() -> None:
    matrix = np.array([[2.0, 0.0], [0.0, 4.0]])
    delta = solve_levels([(matrix, np.array([[2.0, 4.0], [4.0, 8.0]]))], 2)
    assert np.allclose(delta, [[1.0, 2.0], [1.0, 2.0]])
