"""The Lamperti transform: families recognised, charts consistent with Itô's formula, boundaries respected."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.structure import structure_of
from grisaille.structure.stochastic import (
    ChartPoint,
    Diffusion,
    LampertiChart,
    boundary_dimension,
    find_charts,
    find_diffusion,
    stays_inside,
)


def scalar(drift: Any, factor: Any, start: float = 1.0) -> Diffusion:
    class Scalar(gr.Model):
        k, s = gr.Parameter(0.8), gr.Parameter(0.3)
        x = gr.Variable(start=start)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white())
        equations = [der(x) == drift(x, k, s, u) + factor(x, k, s, u) * w]

    return find_diffusion(structure_of(Scalar()))


def chart_of(factor: Any) -> LampertiChart | None:
    found = find_charts(scalar(lambda x, k, s, u: -x, factor))
    return found[0] if found else None


FACTORS = {
    "linear": (lambda x, k, s, u: k * x, 1.0),
    "linear in time": (lambda x, k, s, u: (1 + u) * x, 1.0),
    "affine": (lambda x, k, s, u: s + k * x, 1.0),
    "square root": (lambda x, k, s, u: gr.sqrt(k * x), 0.5),
    "guarded square root": (lambda x, k, s, u: s * gr.sqrt(gr.maximum(x, 0)), 0.5),
    "power": (lambda x, k, s, u: k * x**0.75, 0.75),
    "above one": (lambda x, k, s, u: x * gr.sqrt(x), 1.5),
}


@pytest.mark.parametrize("name", FACTORS)
def test_families_and_ito_formula(name):
    """dy/dx·G = c and the drift of y is f y' + ½ G² y'' with y' = 1/g, whatever the step's start."""
    factor, exponent = FACTORS[name]
    d = scalar(lambda x, k, s, u: 0.2 - 0.5 * x, factor)
    (chart,) = find_charts(d)
    assert chart.exponent == exponent
    y, start = ca.SX.sym("y"), ca.SX.sym("start")
    x = chart.position(y, start)
    slope = ca.jacobian(x, y)  # dx/dy = g
    second = ca.jacobian(slope, y) / slope  # g'·g over g
    f, G = (ca.substitute(e, d.system.x, x) for e in (d.drift, d.noise))
    wanted = f / slope - 0.5 * (G / slope) ** 2 * second
    check = ca.Function(
        "check", [y, start, d.system.t, d.system.u, d.system.p, d.root],
        [chart.rate(f, y, start) - wanted, G / slope - chart.strength, x - start],
    )  # fmt: skip
    at = (0.3, [0.0, 0.0], [0.8, 0.3], 1.1)
    rate, strength, _ = check(0.15, 0.9, *at)
    np.testing.assert_allclose([float(rate), float(strength)], 0.0, atol=1e-12)
    assert float(check(0.0, 0.9, *at)[2]) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    "factor",
    [
        lambda x, k, s, u: gr.sqrt(1 + x**2),
        lambda x, k, s, u: x**k,  # an exponent that may be estimated passes through 1
        lambda x, k, s, u: u + x,  # the transform itself would depend on time
    ],
)
def test_no_elementary_chart(factor):
    assert chart_of(factor) is None


def test_states_are_transformed_one_by_one():
    class Two(gr.Model):
        a, b, c = gr.Variable(start=1.0), gr.Variable(start=1.0), gr.Variable(start=1.0)
        v, w = gr.Disturbance(gr.spectra.white()), gr.Disturbance(gr.spectra.white())
        equations = [der(a) == b * a + 2 * a * v - a * w, der(b) == -b + v, der(c) == gr.sqrt(c) * w]

    charts = find_charts(find_diffusion(structure_of(Two())))
    assert [(c.state, c.exponent) for c in charts] == [(0, 1.0), (2, 0.5)]

    class Crossed(gr.Model):
        a, b = gr.Variable(start=1.0), gr.Variable(start=1.0)
        v = gr.Disturbance(gr.spectra.white())
        equations = [der(a) == b * v, der(b) == a * v]

    assert find_charts(find_diffusion(structure_of(Crossed()))) is None


def at(x: float, k: float = 0.8, s: float = 0.3) -> ChartPoint:
    return ChartPoint(0.0, np.array([x]), np.zeros(2), np.array([k, s]), np.eye(1))


def inside(drift: Any, factor: Any, point: ChartPoint | None) -> bool:
    d = scalar(drift, factor)
    return stays_inside(d, find_charts(d)[0], point)


def test_factors_in_pieces_have_no_chart() -> None:
    for factor in (
        lambda x, k, s, u: gr.where(x > 1, 0.4, 0.2),
        lambda x, k, s, u: x + gr.where(x > 1, 1.0, 0.0),
        lambda x, k, s, u: k * gr.floor(x),
    ):
        assert find_charts(scalar(lambda x, k, s, u: -x, factor)) is None


class TestBoundary:
    def test_proportional_drift_needs_no_numbers(self):
        assert inside(lambda x, k, s, u: k * x - x**2 + u * x, lambda x, k, s, u: x, None)
        assert not inside(lambda x, k, s, u: k - x, lambda x, k, s, u: x, None)

    def test_a_drift_that_points_inward(self):
        mean_reversion, factor = (lambda x, k, s, u: k - x), (lambda x, k, s, u: x)
        assert inside(mean_reversion, factor, at(1.0)) and not inside(mean_reversion, factor, at(1.0, k=-0.1))
        assert not inside(mean_reversion, factor, at(-1.0)) and not inside(mean_reversion, factor, at(0.0))
        assert not inside(lambda x, k, s, u: k + u - x, factor, at(1.0))  # the input may turn it round

    @pytest.mark.parametrize(("k", "expected"), [(0.3, False), (0.499, False), (0.501, True), (2.0, True)])
    def test_fellers_condition(self, k, expected):
        """dx = (k − x) dt + √x dW: zero is not reached when 2k ≥ 1, and δ = 4k."""
        d = scalar(lambda x, k, s, u: k - x, lambda x, k, s, u: gr.sqrt(x))
        (chart,) = find_charts(d)
        assert boundary_dimension(d, chart, at(0.7, k)) == pytest.approx(4 * k, rel=1e-6)
        assert stays_inside(d, chart, at(0.7, k)) is expected

    def test_a_power_between_a_half_and_one(self):
        factor = lambda x, k, s, u: x**0.75  # noqa: E731
        assert inside(lambda x, k, s, u: k - x, factor, at(1.0))
        assert not inside(lambda x, k, s, u: k * x, factor, at(1.0))  # absorbed at zero
