"""Brownian paths on grids: moments, joining of cells; the root of correlated white noises."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.brownian import draw_brownian, noise_root

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError
from grisaille.structure import evaluate_parameters, structure_of

GRID = np.array([0.0, 0.1, 0.4, 0.5, 1.0])


def test_joined_cells_keep_the_path():
    fine = draw_brownian(GRID, 2, 1, 3)
    half, whole = fine.coarsen(2), fine.coarsen(4)
    np.testing.assert_allclose(half.value, fine.value[:, ::2])
    np.testing.assert_allclose(half.coarsen(2).dZ, whole.dZ)
    # ∫W over [0, 1] from the pieces
    total = (fine.dZ + np.diff(GRID)[:, None] * fine.value[:, :-1]).sum(axis=1)
    np.testing.assert_allclose(whole.dZ[:, 0], total)
    with pytest.raises(DataError, match="4 cells cannot be joined in groups of 3"):
        fine.coarsen(3)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_normals_are_standard_after_joining(factor):
    """Covariance of (ΔW/√h, H√(12/h)) is the identity, to four standard errors of 4000 draws."""
    z = draw_brownian(GRID, 1, 2, 4000).coarsen(factor).normals()
    flat = z.reshape(z.shape[0], -1)
    np.testing.assert_allclose(flat.T @ flat / len(flat), np.eye(flat.shape[1]), atol=4 * np.sqrt(2 / 4000))


def test_realizations_do_not_depend_on_their_number():
    np.testing.assert_array_equal(draw_brownian(GRID, 1, 7, 2).dZ, draw_brownian(GRID, 1, 7, 5).dZ[:2])


def test_root_and_its_derivative():
    class Three(gr.Model):
        s, r = gr.Parameter(2.0), gr.Parameter(0.6)
        x = gr.Variable(start=0.0)
        c = gr.Disturbance(gr.spectra.lowpass(1.0))
        n = gr.Disturbance(gr.spectra.white(), scale=[s, 3.0], size=2, correlation=[[1, r], [r, 1]])
        w = gr.Disturbance(gr.spectra.white(), scale=s**2)
        equations = [der(x) == n[0] + n[1] + w + c]

    flat = structure_of(Three()).model
    names = ("n[0]", "n[1]", "w")

    def root(**given: float) -> np.ndarray:
        return noise_root(flat, names, evaluate_parameters(flat, given))[0]

    D, dD = noise_root(flat, names, evaluate_parameters(flat))
    np.testing.assert_allclose(D, [[2, 0, 0], [1.8, 2.4, 0], [0, 0, 4]])
    np.testing.assert_allclose(dD[..., 0], (root(s=2 + 1e-6) - root(s=2 - 1e-6)) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(dD[..., 1], (root(r=0.6 + 1e-6) - root(r=0.6 - 1e-6)) / 2e-6, atol=1e-8)
