"""Ranks that do not depend on units."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.structure.singular import balanced, equilibrated, rank

random = np.random.default_rng(3)


def units(n: int, reach: float) -> np.ndarray:
    return 10.0 ** random.uniform(-reach, reach, n)


def patterned(n: int) -> np.ndarray:
    """Regular, with a third of its entries, between 0.1 and 3 in size."""
    while True:
        a = random.uniform(0.1, 3.0, (n, n)) * random.choice([-1, 1], (n, n)) * (random.random((n, n)) < 0.4)
        a += np.diag(random.uniform(1, 2, n))
        if np.linalg.cond(a) < 100:
            return a


@pytest.mark.parametrize("reach", [0.0, 3.0, 9.0])
def test_regular_matrices_stay_regular_and_dependent_rows_dependent_in_any_units(reach: float) -> None:
    for _ in range(40):
        n = int(random.integers(2, 9))
        a = patterned(n)
        assert rank(units(n, reach)[:, None] * a * units(n, reach)) == n
        a[-1] = random.integers(-2, 3, n - 1) @ a[:-1]
        assert rank(units(n, reach)[:, None] * a * units(n, reach)) == n - 1


def test_a_regular_block_that_equilibration_leaves_nearly_singular() -> None:
    """Rows 0 and 2 share one column, rows 1 and 3 another, and derivatives run ten million times faster."""
    block = np.array(
        [
            [-8.369e11, 0.0, 1.365e04, -1.087e-01],
            [0.0, 3.280e02, -4.935e13, -6.635e08],
            [2.238e10, 0.0, -3.900e02, 4.657e-03],
            [0.0, 1.207e02, -8.152e12, -1.461e08],
        ]
    )
    singular = np.linalg.svd(equilibrated(block)[0], compute_uv=False)
    assert singular[-1] < 1e-9 * singular[0]
    assert rank(block) == 4


def test_balanced_matrices_do_not_depend_on_units() -> None:
    a = patterned(6)
    scaled, rows = balanced(a)
    moved = units(6, 9.0)
    again, sizes = balanced(moved[:, None] * a * units(6, 9.0))
    assert np.abs(again - scaled).max() < 1e-6
    assert np.ptp(np.log(sizes / (moved * rows))) < 1e-6


def test_matrices_without_entries_have_rank_zero() -> None:
    assert rank(np.zeros((3, 3))) == 0 and rank(np.zeros((0, 2))) == 0
    assert rank(np.diag([1e-200, 1.0, 1e200])) == 3
