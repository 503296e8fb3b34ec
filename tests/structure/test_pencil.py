"""Regularity, finite modes and index by the staircase, against exact arithmetic and against QZ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from zoo.descriptor_systems import SINGULAR, SYSTEMS, Known, exact_finite_modes

from grisaille.structure.descriptor import build_staircase, find_dependence, invertible_shift, scale_pencil

by_name = pytest.mark.parametrize("known", SYSTEMS, ids=lambda k: k.name)


@by_name
def test_finite_modes_and_index(known: Known) -> None:
    staircase = build_staircase(known.E, known.F)
    assert staircase.is_regular and not staircase.close
    assert (staircase.finite_modes, staircase.index) == (known.finite_modes, known.index)
    assert staircase.finite_modes == exact_finite_modes(known.E, known.F)
    assert staircase.finite_modes + sum(staircase.steps) == len(known.E)


@by_name
def test_the_staircase_is_the_pencil_in_other_coordinates(known: Known) -> None:
    s = build_staircase(known.E, known.F)
    np.testing.assert_allclose(s.U @ known.E @ s.V * s.scaling.time, s.E, atol=1e-14)
    np.testing.assert_allclose(s.U @ known.F @ s.V, s.F, atol=1e-14)
    k = s.finite_modes
    assert not s.E[k:, :k].any() and not s.F[k:, :k].any()


@pytest.mark.parametrize(("E", "F"), [s[1:] for s in SINGULAR], ids=[s[0] for s in SINGULAR])
def test_singular_pencils_are_recognised(E: list[list[int]], F: list[list[int]]) -> None:
    e, f = np.array(E, dtype=float), np.array(F, dtype=float)
    assert exact_finite_modes(e, f) is None
    assert not build_staircase(e, f).is_regular


def test_a_singular_pencil_names_its_equations_and_variables() -> None:
    # rows 1 and 2 say the same about z0; z1 and z2 only occur in their sum
    E = np.diag([1.0, 0.0, 0.0, 0.0])
    F = np.array([[-1.0, 0, 0, 1], [2, 0, 0, 0], [4, 0, 0, 0], [0, 1, 1, 1]])
    found = find_dependence(E, F)
    assert found.equations == (1, 2)
    assert found.variables == (1, 2)


def _hidden(modes: np.ndarray, chains: list[int], seed: int, spread: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A pencil with given finite modes and infinite chains behind random coordinates."""
    random = np.random.default_rng(seed)
    N = scipy.linalg.block_diag(*(np.eye(n, k=1) for n in chains))
    n = len(modes) + len(N)
    P, Q = random.normal(size=(n, n)), random.normal(size=(n, n))
    units = 10.0 ** random.uniform(-spread, spread, (2, n))
    P, Q = units[0][:, None] * P, Q * units[1]
    E = P @ scipy.linalg.block_diag(np.eye(len(modes)), N) @ Q
    return E, P @ scipy.linalg.block_diag(np.diag(modes), np.eye(len(N))) @ Q


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("chains", [[1, 1], [2, 1], [3, 3, 1], [4], [4, 4, 2]])
def test_modes_behind_random_coordinates(chains: list[int], seed: int) -> None:
    E, F = _hidden(np.array([-0.5, -1.0, -2.0]), chains, seed)
    s = build_staircase(E, F)
    assert (s.finite_modes, s.index) == (3, max(chains))
    assert s.steps == tuple(sum(c >= k for c in chains) for k in range(1, max(chains) + 1))


@pytest.mark.parametrize("seed", range(5))
def test_units_do_not_matter(seed: int) -> None:
    E, F = _hidden(np.array([-0.5, -1.0, -2.0]), [3, 1], seed, spread=6.0)
    s = build_staircase(E, F)
    assert (s.finite_modes, s.index) == (3, 3)
    assert not s.close


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e7])
def test_the_unit_of_time_does_not_matter(unit: float) -> None:
    E, F = _hidden(np.array([-1.0, -3.0]), [3], 1)
    assert build_staircase(E * unit, F).finite_modes == 2
    assert scale_pencil(E * unit, F).time * unit == pytest.approx(scale_pencil(E, F).time, rel=1.0)


def _qz_modes(E: np.ndarray, F: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` generalised eigenvalues that an ordering by size would call finite."""
    alpha, beta = scipy.linalg.eigvals(F, E, homogeneous_eigvals=True)
    finite = np.argsort(-np.abs(beta) / np.hypot(np.abs(alpha), np.abs(beta)))[:count]
    return alpha[finite] / beta[finite]


def test_finite_modes_agree_with_qz_where_qz_can_tell() -> None:
    modes = np.array([-0.5, -1.0, -4.0])
    E, F = _hidden(modes, [2, 1], 3)
    s = build_staircase(E, F)
    corner = slice(None, s.finite_modes)
    ours = np.linalg.eigvals(np.linalg.solve(s.E[corner, corner], s.F[corner, corner])) * s.scaling.time
    np.testing.assert_allclose(np.sort(ours.real), np.sort(modes), rtol=1e-10)
    np.testing.assert_allclose(np.sort(_qz_modes(E, F, 3).real), np.sort(modes), rtol=1e-6)


def test_fast_modes_are_not_taken_for_infinite_ones() -> None:
    """At index 4 an infinite mode looks to QZ like one near 2000/s: ordering by size would drop the plant's −20 000."""
    modes = np.array([-1.0, -10.0, -20000.0])
    E, F = _hidden(modes, [4], 2)
    s = build_staircase(E, F)
    corner = slice(None, s.finite_modes)
    assert s.finite_modes == 3
    ours = np.linalg.eigvals(np.linalg.solve(s.E[corner, corner], s.F[corner, corner])) * s.scaling.time
    np.testing.assert_allclose(np.sort(ours.real), np.sort(modes), rtol=1e-6)
    assert np.abs(_qz_modes(E, F, 3)).max() < 15000.0


def test_close_decisions_say_so() -> None:
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 4e-9]])
    s = build_staircase(nearly, np.eye(2))
    assert s.finite_modes == 2
    assert [d.what for d in s.close] == ["rank of E in step 1"]
    assert 1e-10 < s.close[0].smallest_kept < 1e-8
    assert "smallest kept" in str(s.close[0])


def test_a_small_mass_is_still_a_mass() -> None:
    s = build_staircase(np.diag([1.0, 1e-12]), np.array([[-1.0, 1.0], [1.0, -2.0]]))
    assert s.finite_modes == 2 and not s.close


@by_name
def test_shift_makes_the_pencil_invertible(known: Known) -> None:
    shifted = invertible_shift(known.E, known.F) * known.E + known.F
    assert np.linalg.cond(shifted) < 1e3


def test_empty_pencil() -> None:
    s = build_staircase(np.zeros((0, 0)), np.zeros((0, 0)))
    assert s.is_regular and s.finite_modes == 0 and s.index == 0
