"""Elements end at samples and where inputs jump; Radau IIA has its orders."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from grisaille.collocation.direct import RADAU_MATRIX, RADAU_NODES, RADAU_POINTS, DirectRecord, RadauElements, make_mesh
from grisaille.errors import EstimationError
from grisaille.experiment import make_table
from grisaille.structure import Signal


def record(times, u, hold="zoh"):
    table = make_table([Signal("u", 0, "input")], {"u": u}, {"u": hold}, times, {"u": None})
    return DirectRecord(SimpleNamespace(name="A", times=times), ("y",), table)


def test_collocation_integrates_polynomials() -> None:
    """Stages exactly up to degree s − 1, the end up to 2s − 2."""
    c, A = RADAU_NODES, RADAU_MATRIX
    for k in range(RADAU_POINTS):
        np.testing.assert_allclose(A @ c**k, c ** (k + 1) / (k + 1), rtol=1e-13)
    for k in range(2 * RADAU_POINTS - 1):
        assert A[-1] @ c**k == pytest.approx(1 / (k + 1), rel=1e-13)


def test_elements_end_at_samples_and_steps() -> None:
    times = np.array([0.0, 1.0, 3.0])
    mesh = make_mesh(record(times, (np.array([0.0, 1.7]), np.array([2.0, 5.0]))), RadauElements(longest=np.inf))
    np.testing.assert_allclose(mesh.bounds, [0.0, 1.0, 1.7, 3.0])
    np.testing.assert_array_equal(mesh.sample_at, [0, 1, -1, 2])
    np.testing.assert_allclose(mesh.u[:, :, 0], [[2, 2, 2], [2, 2, 2], [5, 5, 5]])
    np.testing.assert_allclose(mesh.u_end[:, 0], [2, 2, 5, 5])


def test_elements_are_cut_and_inputs_read_inside_them() -> None:
    times = np.array([0.0, 1.0, 2.0])
    mesh = make_mesh(record(times, np.array([0.0, 1.0, 3.0]), "foh"), RadauElements(2, longest=0.3))
    assert np.diff(mesh.bounds).max() <= 0.3 * 2 / 2
    np.testing.assert_allclose(mesh.u[:, :, 0], np.interp(mesh.nodes, times, [0.0, 1.0, 3.0]), atol=1e-14)
    assert set(mesh.sample_at) == {-1, 0, 1, 2}


def test_one_instant_is_not_a_record() -> None:
    with pytest.raises(EstimationError, match="needs two"):
        make_mesh(SimpleNamespace(name="B", times=np.zeros(1), signals=None), RadauElements())
