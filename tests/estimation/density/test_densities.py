"""Log-densities of the estimation room: levels concentrated out or not, parts, transforms, what is no likelihood."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation.density import (
    Likelihood,
    LogDensity,
    ProfileCriterion,
    Transforms,
    criterion_around,
    log_density_of,
)
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 6.0, 25)
NOISE = np.random.default_rng(7).standard_normal((2, 25))


class Tank(gr.Model):
    """Two outputs, one with open noise."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    q = gr.Parameter(1.0, prior=gr.Normal(1.3, 0.1))
    h = gr.Variable(1.0)
    y = gr.Output(h)
    double = gr.Output(2 * h, noise=0.1)
    z = gr.Output(h**2)
    equations = [der(h) == q - k * h]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    h = 2.0 - np.exp(-0.6 * TIMES)
    outputs = {"y": h + 0.03 * NOISE[0], "double": 2 * h + 0.1 * NOISE[1], "z": h**2 + 0.2 * NOISE[0] ** 2}
    return gr.Experiment(TIMES, {}, outputs, name="A")


@pytest.fixture(scope="module")
def fit(data: gr.Experiment) -> gr.Fit:
    return gr.fit(Tank(), data, ["k", "q"], gr.OutputError())


def test_levels_concentrated_out_are_levels_at_their_best(fit: gr.Fit) -> None:
    """The same largest log-density, whether levels are unknowns or not, with an unknown held and without."""
    around = criterion_around(fit)
    problem = build_problem(Tank(), fit.experiments, ["k", "q"], fit.method, guess=fit)
    whole = log_density_of(fit.method, problem, fit)
    assert around.concentrates and around.names == ("k", "q")
    assert whole.names == ("k", "q", "noise(y)", "noise(z)")
    for held in ({}, {0: float(fit["k"]) + 0.02}):
        one, all_of_them = around.maximize(held, around.start), whole.maximize(held, whole.start)
        assert all_of_them.log_density == pytest.approx(one.log_density, rel=1e-9)
        np.testing.assert_allclose(all_of_them.theta[:2], one.theta, rtol=1e-5)
    every = whole.maximize(dict(enumerate(whole.start)), whole.start)
    assert every.log_density == whole.value(whole.start).log_density


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()])
def test_the_value_around_a_fit_has_exact_derivatives(method: gr.OutputError, data: gr.Experiment) -> None:
    fit = gr.fit(Tank(), data, ["k", "q"], method)
    around = criterion_around(fit)
    at = around.start * 1.01
    found = around.evaluate(at)
    assert found.gradient is not None and found.information is not None
    for k, (value, slope) in enumerate(zip(at, found.gradient, strict=True)):
        h = 2e-4 * value
        ends = [around.evaluate(at + s * h * np.eye(len(at))[k], False).log_density for s in (-1, 1, -0.5, 0.5)]
        wide, narrow = (ends[1] - ends[0]) / (2 * h), (ends[3] - ends[2]) / h
        assert (4 * narrow - wide) / 3 == pytest.approx(slope, rel=1e-6, abs=1e-6 * abs(found.log_density))
    likelihood = method.density
    assert isinstance(likelihood, Likelihood) and isinstance(around, LogDensity)


def test_the_criterion_of_trajectories_is_no_density(data: gr.Experiment) -> None:
    class Disturbed(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.05, 5.0))
        h = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.05)
        double = gr.Output(2 * h, noise=0.1)
        equations = [der(h) == 1.2 - k * h + w]

    record = gr.Experiment(TIMES, {}, {"double": data.outputs["double"]}, name="A")
    fit = gr.fit(Disturbed(), record, ["k"], gr.Collocation(criterion="amle"))
    around = criterion_around(fit)
    assert isinstance(around, ProfileCriterion) and not isinstance(around, LogDensity)
    assert (
        around.maximize({0: float(fit["k"]) + 0.05}, around.start).log_density
        < around.evaluate(around.start).log_density
    )
    problem = build_problem(Disturbed(), record, ["k"], fit.method)
    with pytest.raises(
        gr.EstimationError, match=r"criterion='amle' is none: use gr\.Collocation\(criterion='laplace'\)"
    ):
        log_density_of(fit.method, problem)


@pytest.mark.parametrize(
    ("bounds", "inside"),
    [((-1.0, 3.0), 0.2), ((2.0, np.inf), 2.5), ((-np.inf, 1.0), -4.0), ((-np.inf, np.inf), 0.3), ((0.0, 1e-12), 3e-13)],
)
def test_transforms_grow_and_stay_inside(bounds: tuple[float, float], inside: float) -> None:
    transforms, h = Transforms.between([bounds, (0.0, 1.0), bounds]), 1e-4
    at = transforms.inner(np.array([inside, 0.3, inside]))
    np.testing.assert_allclose(transforms.outer(at), [inside, 0.3, inside], rtol=1e-12)
    slopes, logarithm, bends = transforms.jacobian(at)
    np.testing.assert_allclose(slopes, (transforms.outer(at + h) - transforms.outer(at - h)) / (2 * h), rtol=1e-6)
    assert logarithm == pytest.approx(np.log(slopes).sum()) and (slopes > 0).all()
    for k, bend in enumerate(bends):
        ends = [transforms.jacobian(at + s * h * np.eye(3)[k])[1] for s in (-1, 1)]
        assert bend == pytest.approx((ends[1] - ends[0]) / (2 * h), abs=1e-6)
    for far in (-800.0, 800.0):
        assert bounds[0] <= transforms.outer(np.full(3, far))[2] <= bounds[1]
        assert np.isfinite(transforms.jacobian(np.full(3, far))[1])
