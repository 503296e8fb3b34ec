"""Splines against SciPy's, knots where they belong, quadrature exact as promised."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.interpolate import BSpline

from grisaille.collocation import SAME_KNOT, SplineMesh, make_quadrature, make_spline, merge_knots
from grisaille.errors import EstimationError

BREAKS = np.array([0.0, 0.4, 1.0, 1.7, 2.0, 3.0])


@pytest.mark.parametrize("order", [2, 3, 4, 6])
def test_basis_and_slopes_are_those_of_scipy(order: int) -> None:
    spline = make_spline(order, BREAKS, np.array([1.0]))
    t = np.linspace(0.0, 3.0, 61)[1:-1] + 1e-6
    spans = spline.spans(t)
    values, slopes = spline.basis(spans, t)
    beta = np.random.default_rng(0).normal(size=spline.count)
    own = beta[spline.first_active(spans)[:, None] + np.arange(order)]
    theirs = BSpline(spline.knots, beta, order - 1)
    np.testing.assert_allclose((values * own).sum(axis=1), theirs(t), atol=1e-13)
    np.testing.assert_allclose((slopes * own).sum(axis=1), theirs(t, 1), atol=1e-11)


def test_coincident_knots_let_the_slope_jump_and_nothing_else() -> None:
    mesh = SplineMesh((make_spline(4, BREAKS, np.array([1.0])),))
    beta = np.random.default_rng(1).normal(size=mesh.count)
    left, right = mesh.local(np.array([0.9]), np.array([1.0])), mesh.local(np.array([1.1]), np.array([1.0]))
    assert abs(left.values(beta) - right.values(beta)).max() < 1e-14
    assert abs(left.slopes(beta) - right.slopes(beta)).max() > 0.1
    smooth = mesh.local(np.array([1.6]), np.array([1.7])), mesh.local(np.array([1.8]), np.array([1.7]))
    assert abs(smooth[0].slopes(beta) - smooth[1].slopes(beta)).max() < 1e-12


def test_states_with_other_orders_and_knots_keep_their_own_coefficients() -> None:
    mesh = SplineMesh((make_spline(4, BREAKS, np.zeros(0)), make_spline(2, BREAKS[::5], np.zeros(0))))
    beta = mesh.interpolated([s.averages for s in mesh.splines])
    t = np.linspace(0.0, 3.0, 13)
    np.testing.assert_allclose(mesh.at(t).values(beta), np.column_stack([t, t]), atol=1e-13)
    np.testing.assert_array_equal(np.sort(np.concatenate(mesh.places)), np.arange(mesh.count))


def test_a_trajectory_moves_to_finer_knots_unchanged() -> None:
    coarse = SplineMesh((make_spline(4, BREAKS, np.array([1.0])), make_spline(3, BREAKS, np.zeros(0))))
    fine = np.union1d(BREAKS, np.linspace(0, 3, 12))
    finer = SplineMesh((make_spline(4, fine, np.array([1.0])), make_spline(3, fine, np.zeros(0))))
    beta = np.random.default_rng(2).normal(size=coarse.count)
    moved = coarse.moved_to(finer, beta)
    t = np.linspace(0, 3, 50)
    np.testing.assert_allclose(finer.at(t).values(moved), coarse.at(t).values(beta), atol=1e-10)


@pytest.mark.parametrize(("kind", "degree"), [("gauss", 7), ("simpson", 3), (2, 3)])
def test_quadrature_is_exact_for_polynomials(kind: str | int, degree: int) -> None:
    rule = make_quadrature(kind, BREAKS, 4)
    t = BREAKS[:-1, None] + np.diff(BREAKS)[:, None] * rule.fractions
    assert (rule.weights * t**degree).sum() == pytest.approx(3.0 ** (degree + 1) / (degree + 1), rel=1e-13)


def test_ends_and_midpoints_have_equal_weights() -> None:
    rule = make_quadrature("ends+midpoints", BREAKS, 3)
    assert rule.weights[rule.weights > 0] == pytest.approx(3.0 / 7)
    assert (rule.weights > 0).sum() == 7


@pytest.mark.parametrize("order", [1, 13, True, 4.0])
def test_orders_that_make_no_sense_are_refused(order: object) -> None:
    with pytest.raises(EstimationError, match=r"whole number from 2 .* to 12"):
        make_spline(order, BREAKS, np.zeros(0))  # type: ignore[arg-type]


def test_quadrature_that_does_not_exist_is_refused() -> None:
    with pytest.raises(EstimationError, match="gauss"):
        make_quadrature("trapezoid", BREAKS, 4)


@pytest.mark.parametrize("scale", [1.0, 1e9, 1e-9])
def test_knots_of_two_sources_are_merged_as_by_all_distances(scale: float) -> None:
    random = np.random.default_rng(2)
    first, second = scale * random.uniform(0, 1, 40), scale * random.uniform(-0.2, 1.2, 30)
    second[:5] = first[:5] + 1e-14 * scale
    distances = np.abs(second[:, None] - first[None, :]).min(axis=1)
    expected = np.union1d(first, second[distances > SAME_KNOT * scale])
    np.testing.assert_array_equal(merge_knots(first, second, (0.0, scale)), expected)
    assert merge_knots(first, np.zeros(0), (0.0, scale)).size == 40


def test_merging_many_knots_takes_little_memory() -> None:
    times = np.arange(20_000.0)
    tracemalloc.start()
    assert len(merge_knots(times, times + 0.25, (0.0, 20_000.0))) == 40_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
