"""Offsets and index of systems whose index is known."""

from __future__ import annotations

import pytest

from grisaille.structure import solve_offsets

PENDULUM = [{0: 1, 2: 0}, {1: 1, 3: 0}, {2: 1, 4: 0, 0: 0}, {3: 1, 4: 0, 1: 0}, {0: 0, 1: 0}]
"""x' = vx, y' = vy, vx' = T x, vy' = T y − g, x² + y² = L²."""


def test_ode_needs_no_differentiation() -> None:
    offsets = solve_offsets([{0: 1, 1: 0}, {0: 0, 1: 1}])
    assert offsets.equations == (0, 0) and offsets.unknowns == (1, 1) and offsets.index == 0


def test_pendulum_has_index_three() -> None:
    offsets = solve_offsets(PENDULUM)
    assert offsets.equations == (1, 1, 0, 0, 2)
    assert offsets.unknowns == (2, 2, 1, 1, 0)
    assert offsets.index == 3


def test_second_order_pendulum() -> None:
    offsets = solve_offsets([{0: 2, 2: 0}, {1: 2, 2: 0}, {0: 0, 1: 0}])
    assert offsets.equations == (0, 0, 2) and offsets.index == 3


@pytest.mark.parametrize("length", [1, 2, 5, 12])
def test_chain_of_integrators_read_backwards(length: int) -> None:
    """x1 = u, x1' = x2, …: each equation differentiates the one before; index = number of unknowns."""
    signature = [{0: 0}] + [{k: 1, k + 1: 0} for k in range(length - 1)]
    assert solve_offsets(signature).index == length
