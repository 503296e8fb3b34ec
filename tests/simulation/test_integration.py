"""Which method is begun with: the fastest decay at the start, of small and of large systems."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csc_array

from grisaille.simulation import integration


def rates_of(matrix: np.ndarray, nx: int) -> np.ndarray:
    """As of a model with this Jacobian."""
    kernel = SimpleNamespace(nx=nx, nz=len(matrix) - nx, J=lambda *_: matrix, jacobian=lambda *_: csc_array(matrix))
    task = SimpleNamespace(t=0.0, x=np.zeros(nx), z=np.zeros(len(matrix) - nx), p=np.zeros(0), n_breaks=0)
    return integration.decay_rates(kernel, task)  # type: ignore[arg-type]


def rod(n: int) -> np.ndarray:
    return n**2 * (np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n))


def flows(n: int) -> np.ndarray:
    """The same with the flows as implicit unknowns."""
    down = n * (np.eye(n) - np.eye(n, k=-1))
    return np.block([[np.zeros((n, n)), -down.T], [down, -np.eye(n)]])


@pytest.mark.parametrize(
    ("matrix", "nx"),
    [(rod(40), 40), (flows(40), 40), (np.diag(-(np.arange(60.0) ** 4)), 60), (np.zeros((9, 9)), 9)],
    ids=["rod", "implicit flows", "rates apart", "nothing decays"],
)
def test_the_fastest_decay_in_a_krylov_space(matrix: np.ndarray, nx: int, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = rates_of(matrix, nx).max()
    monkeypatch.setattr(integration, "ALL_EIGENVALUES", 5)
    assert rates_of(matrix, nx).max() == pytest.approx(everything, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_rates_where_the_jacobian_is_not_finite(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = rod(10)
    matrix[3, 4] = value
    monkeypatch.setattr(integration, "ALL_EIGENVALUES", 5)
    assert rates_of(matrix, 10).size == 0
