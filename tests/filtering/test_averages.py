"""Averages of formulas that jump, against closed forms and against integration."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.stats import norm

import grisaille as gr
from grisaille import der
from grisaille.disturbance import build_stochastic_model
from grisaille.filtering import AlgebraicModel, SigmaPoints
from grisaille.filtering.jumps import average, truncated_moments
from grisaille.structure import structure_of


def model_of(rate, output=None):
    class Scalar(gr.Model):
        """x' = f(x) + w."""

        x = gr.Variable(start=0.5)
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(x if output is None else output(x), noise=0.1)
        equations = [der(x) == rate(x) + w]

    return build_stochastic_model(structure_of(Scalar()), ["y"])


def averaged(model, formula, x, P):
    """E v, cov(X, v) and cov(v) as numbers."""
    found = average(AlgebraicModel(model), formula, ca.SX(1, 1), SigmaPoints())
    values = found.function(0.0, x, P, np.zeros(0), np.zeros(model.u.numel()), np.zeros(model.q.numel()))
    return [np.array(values[k]).squeeze() for k in (0, 2, 3)]


def integrated(function, mean, deviation):
    """The same by brute force."""
    x = mean + deviation * np.linspace(-9.0, 9.0, 200_001)
    w = norm.pdf(x, mean, deviation)
    w /= w.sum()
    v = function(x)
    average = w @ v
    return average, w @ ((x - mean) * (v - average)), w @ (v - average) ** 2


CASES = {
    "relay": (lambda x: gr.where(x > 1, 0.5, 0.0), lambda x: np.where(x > 1, 0.5, 0.0)),
    "sign": (lambda x: -0.7 * gr.sign(x - 0.2), lambda x: -0.7 * np.sign(x - 0.2)),
    "two slopes": (lambda x: gr.where(x <= 0.4, 2 - 3 * x, x), lambda x: np.where(x <= 0.4, 2 - 3 * x, x)),
    "floor": (lambda x: gr.floor(2 * x) - x, lambda x: np.floor(2 * x) - x),
    "ceil": (lambda x: -gr.ceil(3 * x), lambda x: -np.ceil(3 * x)),
}


@pytest.mark.parametrize("name", CASES)
def test_one_relation_is_exact(name):
    symbolic, numeric = CASES[name]
    model = model_of(symbolic)
    for mean, deviation in ((0.3, 0.15), (0.9, 0.08), (1.02, 0.01), (-1.0, 0.12)):
        found = averaged(model, model.drift, mean, deviation**2)
        assert np.allclose(found, integrated(numeric, mean, deviation), atol=5e-5), (mean, deviation)


def test_certainty_leaves_the_relation_alone():
    model = model_of(lambda x: gr.where(x > 1, 0.5, 0.0) + gr.sign(x))
    for x in (-0.5, 0.0, 0.7, 1.0, 1.3):
        mean, together, spread = averaged(model, model.drift, x, 0.0)
        assert mean == pytest.approx(np.where(x > 1, 0.5, 0.0) + np.sign(x))
        assert together == 0 and spread == pytest.approx(1.0 if x == 0 else 0.0)


def test_several_relations_are_near():
    """A dead zone: each part is cut again as if it were a Gaussian; within one part in fifty of the jump."""
    model = model_of(lambda x: gr.where(x > 1, 1.0, gr.where(x < -1, -1.0, 0.0)))

    def zone(x):
        return np.where(x > 1, 1.0, np.where(x < -1, -1.0, 0.0))

    for mean, deviation in ((0.0, 1.0), (0.8, 0.5), (1.5, 0.7)):
        found = averaged(model, model.drift, mean, deviation**2)
        assert np.allclose(found, integrated(zone, mean, deviation), atol=0.02)


def test_derivatives_are_those_of_the_average():
    """Stein's identity: the slope of E f is cov(X, f)/P where sigma points alone have none."""
    model = model_of(lambda x: gr.where(x > 1, 0.5, 0.0) - 0.3 * x)
    found = average(AlgebraicModel(model), model.drift, ca.SX(1, 1), SigmaPoints())
    x, P = ca.SX.sym("x"), ca.SX.sym("P")
    mean, _, together, *_ = found(0, x, P, ca.SX(0, 1), ca.SX.zeros(model.u.numel()), ca.SX.zeros(model.q.numel()))
    slope = ca.Function("slope", [x, P], [ca.jacobian(mean, x), together / P])
    for at in (0.6, 0.95, 1.0, 1.2):
        one, other = slope(at, 0.01)
        assert float(one) == pytest.approx(float(other), rel=1e-9)


def test_truncated_moments_add_up():
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    parts = [truncated_moments(None, a), truncated_moments(a, b), truncated_moments(b, None)]
    weight = sum(p for p, _, _ in parts)
    mean = sum(p * m for p, m, _ in parts)
    square = sum(p * (v + m**2) for p, m, v in parts)
    total = ca.Function("sums", [a, b], [weight, mean, square])
    for low, high in ((-0.3, 0.4), (1.0, 3.0), (-4.0, -3.5), (-2.0, 4.9)):
        assert np.allclose([float(v) for v in total(low, high)], [1.0, 0.0, 1.0], atol=1e-9)
    far = ca.Function("far", [a], truncated_moments(a, None))
    assert all(np.isfinite(float(v)) for at in (5.0, 9.0, 40.0) for v in far(at))


def test_too_many_relations_are_refused():
    model = model_of(lambda x: sum(gr.where(x > k / 8, 1.0, 0.0) for k in range(7)))
    with pytest.raises(gr.EstimationError, match=r"jumps across 7 relations of its states.*at most 64"):
        average(AlgebraicModel(model), model.drift, ca.SX(1, 1), SigmaPoints())


def test_bends_are_left_to_sigma_points():
    model = model_of(lambda x: -abs(x) + gr.where(x > 1, 2 * x - 1, x))
    assert average(AlgebraicModel(model), model.drift, ca.SX(1, 1), SigmaPoints()) is None
