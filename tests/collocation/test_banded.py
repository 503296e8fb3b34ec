"""Band matrices against dense ones: solutions, determinants, and the inverse inside the band."""

from __future__ import annotations

import numpy as np
import pytest

from grisaille.collocation import BandedFactor, NotPositiveDefinite, banded


def made(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n + width)
    root = np.tril(np.triu(random.normal(size=(n, n)), -(width // 2)), width - width // 2)
    A = root @ root.T + np.eye(n)
    band = np.zeros((width + 1, n))
    for d in range(width + 1):
        band[d, : n - d] = np.diag(A, -d)
    return A, band


@pytest.mark.parametrize(("n", "width"), [(23, 5), (7, 1), (40, 8), (5, 4), (6, 0), (30, 11)])
def test_factor_is_that_of_the_dense_matrix(n: int, width: int) -> None:
    A, band = made(n, width)
    factor, right = BandedFactor(band), np.random.default_rng(0).normal(size=(n, 3))
    np.testing.assert_allclose(A @ factor.solve(right), right, atol=1e-12)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)
    inverse = np.linalg.inv(A)
    for d in range(width + 1):
        np.testing.assert_allclose(factor.inverse_band[d, : n - d], np.diag(inverse, -d), atol=1e-13)
    np.testing.assert_allclose(banded.times(band, right), A @ right, atol=1e-12)


def test_blocks_are_gathered_from_the_band() -> None:
    A, band = made(20, 4)
    places = np.array([[3, 5, 6], [10, 8, 11], [0, 19, 1]])
    for block, place in zip(banded.gather_blocks(band, places), places, strict=True):
        dense = np.where(np.abs(np.subtract.outer(place, place)) <= 4, A[np.ix_(place, place)], 0.0)
        np.testing.assert_allclose(block, dense)


def test_held_unknowns_leave_the_others_alone() -> None:
    A, band = made(15, 3)
    held = np.zeros(15, dtype=bool)
    held[[0, 6, 14]] = True
    found = BandedFactor(banded.without_held(band, held))
    inner = np.linalg.inv(A[np.ix_(~held, ~held)])
    right = np.where(held, 0.0, np.arange(15.0))
    np.testing.assert_allclose(found.solve(right)[~held], inner @ right[~held], atol=1e-12)
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(A[np.ix_(~held, ~held)])[1])


def test_indefinite_matrices_are_refused() -> None:
    _, band = made(9, 2)
    band[0, 4] = -1.0
    with pytest.raises(NotPositiveDefinite):
        BandedFactor(band)
