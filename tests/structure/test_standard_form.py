"""The standard form against transfer functions, closed-form solutions and the literal projections."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from zoo.descriptor_systems import SINGULAR, SYSTEMS, Known

from grisaille.errors import StructureError
from grisaille.structure import standard_form
from grisaille.structure.descriptor import projector_on_null, separate_modes

by_name = pytest.mark.parametrize("known", SYSTEMS, ids=lambda k: k.name)


@by_name
def test_separation(known: Known) -> None:
    s = separate_modes(known.E, known.F)
    n, k = len(known.E), s.finite_modes
    np.testing.assert_allclose(s.P @ known.E @ s.Q, scipy.linalg.block_diag(np.eye(k), s.N), atol=1e-12)
    np.testing.assert_allclose(s.P @ known.F @ s.Q, scipy.linalg.block_diag(s.A, np.eye(n - k)), atol=1e-12)
    assert not np.linalg.matrix_power(s.N, s.index).any(), "N is nilpotent exactly, not up to rounding"


@by_name
def test_transfer_function_is_kept_with_its_signs(known: Known) -> None:
    """H(sE − F)⁻¹J = C(sI − A)⁻¹L + Σ W_l s^l at points on and off the axes."""
    n = len(known.E)
    H = np.random.default_rng(1).normal(size=(3, n))
    form = standard_form(known.E, known.F, known.J, known.J, H)
    for s in (0.3 + 0.4j, -0.2 + 1.7j, 2.5 + 0j):
        direct = H @ np.linalg.solve(s * known.E - known.F, known.J)
        through_states = form.C @ np.linalg.solve(s * np.eye(len(form.A)) - form.A, form.L)
        for terms in (form.D, form.W):
            polynomial = sum((s**k * w for k, w in enumerate(terms)), np.zeros_like(direct))
            np.testing.assert_allclose(through_states + polynomial, direct, rtol=1e-10, atol=1e-12)


def test_input_derivatives_of_prescribed_motion() -> None:
    """x' = v, v' = −x − v + f, x = u: the force is f = u'' + u' + u."""
    E = np.diag([1.0, 1.0, 0.0])
    F = np.array([[0.0, 1, 0], [-1, -1, 1], [1, 0, 0]])
    G = np.array([[0.0], [0.0], [-1.0]])
    form = standard_form(E, F, G, np.zeros((3, 0)), np.eye(3))
    np.testing.assert_allclose(np.hstack(form.D), [[1, 0, 0], [0, 1, 0], [1, 1, 1]], atol=1e-14)
    assert form.A.shape == (0, 0)


def test_direct_term_of_an_index_one_system_has_the_sign_of_its_solution() -> None:
    """0 = −z + u gives z = u, not −u."""
    form = standard_form(np.zeros((1, 1)), -np.eye(1), np.eye(1), np.zeros((1, 0)), np.eye(1))
    np.testing.assert_allclose(form.D[0], [[1.0]])


@by_name
def test_free_part_of_the_start_is_the_literal_projection(known: Known) -> None:
    """Eq. (8) with λ = 1.3: along N(Ēⁿ) on R(Ēⁿ) is what the other projection leaves."""
    E_bar = np.linalg.solve(1.3 * known.E + known.F, known.E)
    s = separate_modes(known.E, known.F)
    np.testing.assert_allclose(s.free_projector, np.eye(len(E_bar)) - projector_on_null(E_bar), atol=1e-12)
    np.testing.assert_allclose(s.free_projector @ s.free_projector, s.free_projector, atol=1e-12)
    assert np.linalg.matrix_rank(s.free_projector) == known.finite_modes


def test_free_part_of_the_two_bodies() -> None:
    known = SYSTEMS[0]
    expected = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]]) / 2
    np.testing.assert_allclose(separate_modes(known.E, known.F).free_projector, expected, atol=1e-15)


def test_two_starts_with_the_same_free_part_give_the_same_solution() -> None:
    """The index-2 circuit 2v' = i, v = u(t), x' = −x + v: only x(0) matters; z solves E z' = F z + G u for t > 0."""
    known = SYSTEMS[5]
    form = standard_form(known.E, known.F, known.J, np.zeros((3, 0)), np.eye(3))
    pick = np.linalg.solve(form.separation.Q, np.eye(3))[:1]
    starts = [np.array([0.0, 0, 0.7]), np.array([5.0, -3.0, 0.7])]
    np.testing.assert_allclose(pick @ starts[0], pick @ starts[1], atol=1e-14)
    # u = sin t: x = (x0 + 1/2) e^{−t} + (sin t − cos t)/2
    t = 1.3
    x_s = pick @ starts[0]
    fine = np.linspace(0, t, 20001)
    drive = np.exp(form.A[0, 0] * (t - fine)) * form.B[0, 0] * np.sin(fine)
    x_s = np.exp(form.A[0, 0] * t) * x_s + scipy.integrate.simpson(drive, x=fine)
    z = form.C @ x_s + form.D[0][:, 0] * np.sin(t) + form.D[1][:, 0] * np.cos(t)
    x = (0.7 + 0.5) * np.exp(-t) + (np.sin(t) - np.cos(t)) / 2
    np.testing.assert_allclose(z, [np.sin(t), 2 * np.cos(t), x], atol=1e-10)


def test_fast_modes_beside_a_high_index() -> None:
    """Sylvester's equation keeps its digits where a series in powers of A = diag(−1, −1e4) would lose them."""
    random = np.random.default_rng(5)
    P, Q = random.normal(size=(6, 6)), random.normal(size=(6, 6))
    modes = np.array([-1.0, -100.0, -1e4])
    E = P @ scipy.linalg.block_diag(np.eye(3), np.eye(3, k=1)) @ Q
    F = P @ scipy.linalg.block_diag(np.diag(modes), np.eye(3)) @ Q
    s = separate_modes(E, F)
    off = s.P @ F @ s.Q
    assert np.abs(off[:3, 3:]).max() < 1e-7 and np.abs(off[3:, :3]).max() < 1e-7
    np.testing.assert_allclose(np.sort(np.linalg.eigvals(s.A).real), np.sort(modes), rtol=1e-8)


@pytest.mark.parametrize(("E", "F"), [s[1:] for s in SINGULAR], ids=[s[0] for s in SINGULAR])
def test_singular_pencils_are_refused(E: list[list[int]], F: list[list[int]]) -> None:
    with pytest.raises(StructureError, match="determinant vanishes for every s"):
        separate_modes(np.array(E, dtype=float), np.array(F, dtype=float))
