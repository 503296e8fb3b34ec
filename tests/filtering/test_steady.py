"""The compiled filter on long regular records, where covariances are no longer computed once they repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grisaille.filtering import DiscreteModel, add_up, likelihood_of_sums


def random_model(N: int, gaps: tuple[int, ...] = (), n: int = 3, ny: int = 2, ns: int = 4) -> DiscreteModel:
    random = np.random.default_rng(7)
    F = np.concatenate([0.3 * np.eye(n) + 0.2 * random.normal(size=(n, n)), 0.1 * random.normal(size=(ns * n, n))])
    F = F.reshape(1, 1 + ns, n, n)
    root = 0.3 * random.normal(size=(1 + ns, n, n))
    Q = np.stack([root[0] @ root[0].T, *(root[a] @ root[0].T + root[0] @ root[a].T for a in range(1, 1 + ns))])[None]
    H = random.normal(size=(1, 1 + ns, ny, n))
    H[:, 2] = 0.0  # a direction that leaves H where it is
    R = np.zeros((1, 1 + ns, ny, ny))
    R[0, 0], R[0, 1] = 0.2 * np.eye(ny), 0.1 * np.eye(ny)
    y = random.normal(size=(N, ny))
    y[list(gaps), 0] = np.nan
    y[[g + 40 for g in gaps]] = np.nan
    c, d = random.normal(size=(N - 1, 1 + ns, n)), 0.1 * random.normal(size=(N, 1 + ns, ny))
    zeros = np.zeros(N, dtype=np.int64)
    P0 = np.zeros((1 + ns, n, n))
    P0[0] = 4 * np.eye(n)
    return DiscreteModel(
        F, zeros[:-1], c, Q, zeros[:-1], H, zeros, d, R, zeros, y, np.arange(N), np.zeros((1 + ns, n)), P0,
        np.zeros((n, 0)),
    )  # fmt: skip


def not_known_to_repeat(model: DiscreteModel) -> DiscreteModel:
    """The same numbers, every covariance of which is computed (as those that the textbook's filter has are)."""
    return replace(model, R=np.concatenate([model.R, model.R]), R_of=np.arange(len(model.y)) % 2)


@pytest.mark.parametrize("gaps", [(), (200,), (150, 151, 280)])
@pytest.mark.parametrize("robust", [np.inf, 2.0, -2.0])
def test_the_shortcut_changes_nothing(gaps, robust):
    model = random_model(400, gaps)
    short, full = (likelihood_of_sums(add_up(m, robust=robust)) for m in (model, not_known_to_repeat(model)))
    assert short.value == pytest.approx(full.value, rel=1e-12)
    assert np.allclose(short.gradient, full.gradient, rtol=1e-10, atol=1e-9)
    assert np.allclose(short.information, full.information, rtol=1e-10, atol=1e-9)
    assert np.allclose(short.innovations, full.innovations, rtol=1e-10, atol=1e-11, equal_nan=True)
    assert np.allclose(short.slopes, full.slopes, rtol=1e-9, atol=1e-10)
    assert short.count == full.count


@pytest.mark.parametrize("ny", [3, 4, 7])
def test_more_outputs_than_states(ny):
    model = random_model(120, n=1, ny=ny)
    short, full = (likelihood_of_sums(add_up(m)) for m in (model, not_known_to_repeat(model)))
    assert short.value == pytest.approx(full.value, rel=1e-12)
    assert np.allclose(short.innovations, full.innovations, rtol=1e-10, atol=1e-11)
    assert np.allclose(short.gradient, full.gradient, rtol=1e-10, atol=1e-9)


def test_it_is_a_shortcut():
    from time import process_time

    def seconds(model: DiscreteModel) -> float:
        best = np.inf
        for _ in range(3):
            begin = process_time()
            add_up(model)
            best = min(best, process_time() - begin)
        return best

    regular = random_model(4000, n=12)
    other = not_known_to_repeat(regular)
    assert likelihood_of_sums(add_up(other)).value == pytest.approx(likelihood_of_sums(add_up(regular)).value)
    assert seconds(other) > 3 * seconds(regular)
