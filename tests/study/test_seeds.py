"""Seeds of runs are pure functions, all different, and uniforms are uniform."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from grisaille.study import experiment_seed, run_seed, uniforms


def test_seeds_are_pure_and_distinct() -> None:
    seeds = [run_seed(7, run) for run in range(2000)]
    assert len(set(seeds)) == 2000
    assert seeds[731] == run_seed(7, 731) != run_seed(8, 731)
    assert max(seeds) > 2**63 and min(seeds) >= 0


def test_known_values_stay() -> None:
    """Stored studies are resumed with these numbers: they must never change."""
    assert [run_seed(0, 0), run_seed(3, 731)] == [15800186867655121527, 790244817297440031]


def test_experiments_of_a_run_differ() -> None:
    assert experiment_seed(5, 0) == 5
    assert len({experiment_seed(5, k) for k in range(50)}) == 50


def test_uniforms() -> None:
    u = uniforms(1, "a", 2000, 2)
    assert ((u > 0) & (u < 1)).all()
    assert kstest(u.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u.T)[0, 1]) < 0.08
    assert np.array_equal(uniforms(1, "a", 10, 2), u[:10])
    assert not np.array_equal(uniforms(1, "b", 10, 2), u[:10])
