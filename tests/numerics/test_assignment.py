"""The best assignment, also where several are equally good."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from grisaille.numerics import best_assignment


@pytest.mark.parametrize("seed", range(4))
def test_the_choice_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        n = int(rng.integers(1, 13))
        gain = rng.integers(0, int(rng.integers(2, 6)), (n, n)).astype(float)  # most have several best assignments
        gain[rng.random((n, n)) < rng.uniform(0, 0.7)] = -1e6 * (n + 1)
        _, columns = linear_sum_assignment(gain, maximize=True)
        assert best_assignment(gain.tolist()) == columns.tolist()


def test_real_gains():
    gain = np.random.default_rng(8).normal(size=(40, 40))
    _, columns = linear_sum_assignment(gain, maximize=True)
    assert best_assignment(gain.tolist()) == columns.tolist()


def test_nothing_to_assign():
    assert best_assignment([]) == []
