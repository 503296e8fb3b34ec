"""Theorem 3/5 on matrices: both views, against exact arithmetic and against the variance as the bandwidth grows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from zoo.descriptor_systems import SYSTEMS, Known, exact_relative_degree

from grisaille.structure.descriptor import (
    DisturbedSystem,
    Matrix,
    NoiseFilter,
    augment,
    decide_variance,
    projected_terms,
    projector_on_null,
    range_of_power,
    separate_modes,
    white_filter,
)

by_name = pytest.mark.parametrize("known", SYSTEMS, ids=lambda k: k.name)


def lag(order: int, bandwidth: float = 1.0) -> NoiseFilter:
    """(b/(s + b))ⁿ; white noise for n = 0."""
    if order == 0:
        return white_filter()
    A = bandwidth * (np.eye(order, k=-1) - np.eye(order))
    return NoiseFilter(A, bandwidth * np.eye(order, 1), np.eye(order)[-1:])


def disturbed(known: Known, order: int, H: Matrix | None = None) -> DisturbedSystem:
    H = np.eye(len(known.E)) if H is None else H
    return DisturbedSystem(known.E, known.F, known.J, H, (lag(order),) * known.J.shape[1])


@by_name
def test_counts_are_those_of_the_solution_by_hand_and_of_exact_arithmetic(known: Known) -> None:
    decision = decide_variance(disturbed(known, 0))
    by_hand = [[-1 if c is None else c for c in row] for row in known.count]
    assert decision.differentiations.tolist() == by_hand
    exact = exact_relative_degree(known.E, known.F, known.J, np.eye(len(known.E)))
    assert by_hand == [[-1 if c is None else max(c, -1) for c in row] for row in exact]


@pytest.mark.parametrize("excess", [0, 1, 2, 3, 4])
@by_name
def test_finite_exactly_where_the_pole_excess_suffices(known: Known, excess: int) -> None:
    decision = decide_variance(disturbed(known, excess))
    expected = [[c is None or c < excess for c in row] for row in known.count]
    assert decision.finite_under.tolist() == expected
    assert decision.finite.tolist() == [all(row) for row in expected]
    assert decision.views_agree and not decision.close
    assert decision.pole_excess == (excess,) * known.J.shape[1]


@pytest.mark.parametrize("seed", range(4))
@by_name
def test_random_outputs_in_random_coordinates(known: Known, seed: int) -> None:
    """Integer outputs, equations and variables mixed by integer matrices: exact arithmetic decides."""
    random = np.random.default_rng(seed)
    n = len(known.E)
    P, Q = (_unimodular(random, n) for _ in range(2))
    E, F, J = P @ known.E @ Q, P @ known.F @ Q, P @ known.J
    H = random.integers(-2, 3, size=(4, n)).astype(float)
    exact = exact_relative_degree(E, F, J, H)
    for excess in (0, 1, 2):
        decision = decide_variance(DisturbedSystem(E, F, J, H, (lag(excess),) * J.shape[1]))
        assert decision.finite_under.tolist() == [[c is None or c < excess for c in row] for row in exact]
        assert decision.views_agree


def _unimodular(random: np.random.Generator, n: int) -> Matrix:
    lower = np.tril(random.integers(-1, 2, size=(n, n)), -1) + np.eye(n)
    return lower @ (np.triu(random.integers(-1, 2, size=(n, n)), 1) + np.eye(n))


@pytest.mark.parametrize("shift", [-5.0, -0.3, 0.2, 1.7, 7.0])
@by_name
def test_any_shift_gives_the_same_verdict(known: Known, shift: float) -> None:
    """Remark 2: every λ with λE + F invertible will do."""
    system = disturbed(known, 0)
    assert np.linalg.cond(shift * known.E + known.F) < 1e8
    parts = separate_modes(known.E, known.F)
    ours = [t.nonzero for t in projected_terms(system, parts)]
    theirs = [t.nonzero for t in projected_terms(system, parts, shift)]
    # lower derivatives mix in differently with λ; "finite for excess p" is decided by all from p upwards
    for excess in range(parts.index + 1):
        a, b = (np.logical_or.reduce([np.zeros(ours[0].shape, bool), *terms[excess:]]) for terms in (ours, theirs))
        np.testing.assert_array_equal(a, b)


class TestTwoBodies:
    """Section 7 of the reference, statement by statement; λ = 1."""

    known = SYSTEMS[0]
    E_bar = np.linalg.solve(known.E + known.F, known.E)

    def test_E_bar(self) -> None:
        np.testing.assert_allclose(self.E_bar, np.array([[1, 1, 0], [1, 1, 0], [1, -1, 0]]) / 2, atol=1e-15)

    def test_range_and_null_space_of_its_third_power(self) -> None:
        power = np.linalg.matrix_power(self.E_bar, 3)
        assert np.linalg.matrix_rank(power) == 1
        basis = range_of_power(self.E_bar)
        np.testing.assert_allclose(np.abs(basis.ravel()), np.array([1, 1, 0]) / np.sqrt(2), atol=1e-15)
        onto = projector_on_null(self.E_bar)
        np.testing.assert_allclose(onto, np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 2]]) / 2, atol=1e-15)

    def test_projected_vectors(self) -> None:
        system = disturbed(self.known, 0)
        terms = projected_terms(system, separate_modes(self.known.E, self.known.F), 1.0)
        np.testing.assert_allclose(terms[0].value, [[0, 0], [0, 0], [0.5, -0.5]], atol=1e-15)
        np.testing.assert_allclose(terms[1].value, 0.0, atol=1e-15)

    def test_every_combination_of_velocities_is_fine_and_none_with_the_force(self) -> None:
        random = np.random.default_rng(3)
        H = np.hstack([random.normal(size=(20, 2)), np.repeat([[0.0], [1e-3]], 10, axis=0)])
        decision = decide_variance(disturbed(self.known, 0, H))
        assert decision.finite.tolist() == [True] * 10 + [False] * 10

    def test_coloured_forces_make_everything_fine(self) -> None:
        H = np.random.default_rng(4).normal(size=(20, 3))
        assert decide_variance(disturbed(self.known, 1, H)).finite.all()

    def test_one_white_force_suffices_to_spoil_the_contact_force(self) -> None:
        k = self.known
        decision = decide_variance(DisturbedSystem(k.E, k.F, k.J, np.eye(3), (lag(1), lag(0))))
        assert decision.finite.tolist() == [True, True, False]
        assert decision.finite_under[2].tolist() == [True, False]


def test_measuring_white_noise_is_refused_and_accepted_after_the_presampling_filter() -> None:
    """Section 4: z1' = −2 z1 + v1, 0 = −z2 + v2, 0.01 z3' = −z3 + z1 + z2."""
    E, F = np.diag([1.0, 0.0, 0.01]), np.array([[-2.0, 0, 0], [0, -1, 0], [1, 1, -1]])
    J = np.array([[1.0, 0], [0, 1], [0, 0]])
    H = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    decision = decide_variance(DisturbedSystem(E, F, J, H, (white_filter(), white_filter())))
    assert decision.finite.tolist() == [False, True, True]
    assert decision.differentiations.tolist() == [[-1, 0], [-1, -1], [-1, -1]]


def test_perfectly_correlated_noises_may_cancel() -> None:
    """v1 = v2 pushes both bodies alike: no force between them; with any other correlation there is one."""
    k = SYSTEMS[0]
    filters = (white_filter(), white_filter())
    for correlation, finite in ((1.0, True), (0.999, False), (-1.0, False)):
        matrix = np.array([[1.0, correlation], [correlation, 1.0]])
        decision = decide_variance(DisturbedSystem(k.E, k.F, k.J, np.eye(3), filters, matrix))
        assert bool(decision.finite[2]) is finite
        assert not decision.finite_under[2].any(), (
            "each noise alone would spoil it: the test by projections is sufficient"
        )


def test_pole_excess_of_filters() -> None:
    A = np.array([[0.0, 1], [-16, -0.8]])
    assert NoiseFilter(A, np.array([[0.0], [1]]), np.array([[1.0, 0]])).pole_excess == 2
    assert NoiseFilter(A, np.array([[0.0], [1]]), np.array([[1.0, 1e-3]])).pole_excess == 1
    assert NoiseFilter(A, np.array([[0.0], [1]]), np.array([[1.0, 0]]), 0.5).pole_excess == 0
    assert NoiseFilter(A, np.zeros((2, 1)), np.array([[1.0, 0]])).pole_excess == 3


def test_augmented_system_is_B9() -> None:
    k = SYSTEMS[0]
    whole = augment(DisturbedSystem(k.E, k.F, k.J, np.eye(3), (lag(1, 4.0), white_filter(2.0))))
    np.testing.assert_array_equal(whole.E, np.diag([1.0, 1, 0, 1]))
    np.testing.assert_array_equal(whole.F, [[0, 0, 1, 1], [0, 0, -1, 0], [1, -1, 0, 0], [0, 0, 0, -4]])
    np.testing.assert_array_equal(whole.J, [[0, 0], [0, 2], [0, 0], [4, 0]])
    assert whole.H.shape == (3, 4)


STABLE = [k for k in SYSTEMS if k.name not in ("two bodies",)]  # the joined bodies drift: no stationary variance


@pytest.mark.parametrize("known", STABLE, ids=lambda k: k.name)
def test_variance_under_growing_bandwidth(known: Known) -> None:
    """∫|H(iωE − F)⁻¹J|²|b/(iω + b)|⁸ dω/π: it settles where the verdict is finite and grows with b where it is not."""
    finite = decide_variance(disturbed(known, 0)).finite_under
    for i in range(len(known.E)):
        for k in range(known.J.shape[1]):
            narrow, wide = (_variance(known, i, k, b) for b in (1e3, 1e4))
            if finite[i, k]:
                assert wide < 1.1 * narrow + 1e-12
            else:
                assert wide > 8 * narrow


def _variance(known: Known, i: int, k: int, bandwidth: float) -> float:
    def density(log_w: float) -> float:
        w = np.exp(log_w)
        g = np.linalg.solve(1j * w * known.E - known.F, known.J[:, k])[i]
        return float(w * abs(g) ** 2 * (1 + (w / bandwidth) ** 2) ** -4 / np.pi)

    # below 1e-6 rad/s every system here is flat, above 100 b the lags have taken everything
    return float(sum(quad(density, a, a + 5.0, limit=100)[0] for a in np.arange(-14.0, np.log(100 * bandwidth), 5.0)))


def test_close_numbers_are_named() -> None:
    """0 = −z + 1e-9 w + (w − w by rounding): the factor is too small to be sure about."""
    E, F = np.diag([1.0, 0.0, 0.0]), np.array([[-1.0, 0, 0], [0, -1, 0], [0, 1, -1]])
    J = np.array([[1.0], [1.0], [-1.0 + 1e-9]])
    decision = decide_variance(DisturbedSystem(E, F, J, np.eye(3), (white_filter(),)))
    assert any("of its parts" in text for text in decision.close)
