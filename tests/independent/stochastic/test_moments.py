"""Stochastic models against closed forms: moments and stationary laws, with outputs from fine to coarse.

Every law is written here from the equation alone. A statistic may be off by ``DEVIATIONS`` standard errors of its own
sample (the seeds are fixed) and by ``STEPS`` standard deviations for the steps, the tolerance that runs promise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

import grisaille as gr
from grisaille import der

WHITE = gr.spectra.white
STRATONOVICH = gr.spectra.white(interpretation="stratonovich")
COUNT, DEVIATIONS, STEPS = 3000, 4.5, 0.01


def ends(model: gr.Model, span: float, interval: float, **given: Any) -> Any:
    """The states at the end of a span, with outputs every ``interval``."""
    times = np.linspace(0.0, span, round(span / interval) + 1)
    run = gr.simulate(model, times, realizations=COUNT, seed=1, **given)
    assert np.isfinite(run.attrs["error_estimate"]) and run.attrs["error_estimate"] <= 1.0
    return run.isel(time=-1)


def assert_mean(sample: np.ndarray, wanted: float) -> None:
    sample = np.asarray(sample)
    margin = sample.std() * (DEVIATIONS / np.sqrt(COUNT) + 2 * STEPS)
    assert abs(sample.mean() - wanted) <= margin, (sample.mean(), wanted, margin)


def stationary(drift_potential: Callable[[np.ndarray], np.ndarray], sigma: float, span: float) -> float:
    """E x² under the density exp(−2U/σ²)."""
    x = np.linspace(-span, span, 20001)
    weight = np.exp(-2 * (drift_potential(x) - drift_potential(x).min()) / sigma**2)
    return float((weight * x**2).sum() / weight.sum())


class Decay(gr.Model):
    """dx = −a x dt + s dW."""

    a, s = gr.Parameter(2.0), gr.Parameter(0.7)
    x = gr.Variable(3.0)
    w = gr.Disturbance(WHITE(), scale=s)
    equations = [der(x) == -a * x + w]


@pytest.mark.parametrize("interval", [0.05, 3.0])
@pytest.mark.parametrize(("rate", "size"), [(1.0, 1.0), (1e9, 1.0), (1e-9, 1.0), (1.0, 1e9), (1.0, 1e-9)])
def test_decay_in_any_units(interval, rate, size):
    given = {"parameters": {"a": 2 * rate, "s": 0.7 * size * np.sqrt(rate)}, "start": {"x": 3 * size}}
    x = ends(Decay(), 3.0 / rate, interval / rate, **given).x / size
    assert_mean(x, 3 * np.exp(-6.0))
    assert_mean((x - 3 * np.exp(-6.0)) ** 2, 0.49 / 4 * (1 - np.exp(-12.0)))


class Saturated(gr.Model):
    x = gr.Variable(6.0)
    w = gr.Disturbance(WHITE(), scale=0.3)
    equations = [der(x) == -gr.tanh(5 * x) + w]


class Cubic(gr.Model):
    x = gr.Variable(0.0)
    w = gr.Disturbance(WHITE())
    equations = [der(x) == -(x**3) + w]


class TwoWells(gr.Model):
    x = gr.Variable(1.0)
    w = gr.Disturbance(WHITE(), scale=0.8)
    equations = [der(x) == x - x**3 + w]


class Dry(gr.Model):
    """Almost dry friction: the drift is a smoothed sign."""

    x = gr.Variable(0.5)
    w = gr.Disturbance(WHITE(), scale=0.6)
    equations = [der(x) == -gr.tanh(40 * x) + w]


@pytest.mark.parametrize(
    ("model", "span", "intervals", "wanted"),
    [
        (Saturated, 20.0, (0.5, 2.0), stationary(lambda x: np.log(np.cosh(5 * x)) / 5, 0.3, 3.0)),
        (Cubic, 8.0, (0.1, 2.0), stationary(lambda x: x**4 / 4, 1.0, 6.0)),
        (TwoWells, 40.0, (0.5, 10.0), stationary(lambda x: x**4 / 4 - x**2 / 2, 0.8, 6.0)),
        (Dry, 6.0, (0.5, 6.0), stationary(lambda x: np.log(np.cosh(40 * x)) / 40, 0.6, 4.0)),
    ],
)
def test_stationary_laws_of_gradient_systems(model, span, intervals, wanted):
    for interval in intervals:
        assert_mean(ends(model(), span, interval).x ** 2, wanted)


def growth(spectrum: Any) -> gr.Model:
    class Growth(gr.Model):
        x = gr.Variable(1.0)
        w = gr.Disturbance(spectrum, scale=0.5)
        equations = [der(x) == 0.1 * x + x * w]

    return Growth()


@pytest.mark.parametrize("interval", [0.1, 2.0])
@pytest.mark.parametrize(("spectrum", "median"), [(WHITE(), 0.1 - 0.125), (STRATONOVICH, 0.1)])
def test_growth(interval, spectrum, median):
    logarithm = np.log(ends(growth(spectrum), 2.0, interval).x)
    assert_mean(logarithm, 2 * median)
    assert_mean((logarithm - 2 * median) ** 2, 0.5)


class ItoRotation(gr.Model):
    """d(x² + y²) = (x² + y²) dt under Itô."""

    x, y = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(WHITE())
    equations = [der(x) == y * w, der(y) == -x * w]


class Exchanged(gr.Model):
    """Noises that do not commute: E x² = cosh t, E y² = sinh t."""

    x, y = gr.Variable(1.0), gr.Variable(0.0)
    v, w = gr.Disturbance(WHITE()), gr.Disturbance(WHITE())
    equations = [der(x) == y * v, der(y) == x * w]


class Kubo(gr.Model):
    """A frequency with white noise: E x = e^{−σ²t/2} cos ωt."""

    x, y = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(STRATONOVICH, scale=0.6)
    equations = [der(x) == -y * (3 + w), der(y) == x * (3 + w)]


@pytest.mark.parametrize("interval", [0.1, 1.0])
def test_linear_equations_with_noise_in_their_coefficients(interval):
    # the radius of the Itô rotation grows alike on every path
    end = ends(ItoRotation(), 1.0, interval)
    np.testing.assert_allclose(end.x**2 + end.y**2, np.e, rtol=0.05)
    end = ends(Exchanged(), 1.0, interval)
    assert_mean(end.x**2, np.cosh(1.0))
    assert_mean(end.y**2, np.sinh(1.0))
    end = ends(Kubo(), 1.0, interval)
    assert_mean(end.x, np.exp(-0.18) * np.cos(3.0))
    assert_mean(end.y, np.exp(-0.18) * np.sin(3.0))


class Rate(gr.Model):
    """dx = κ(θ − x) dt + σ√x dW (Cox, Ingersoll, Ross)."""

    x = gr.Variable(0.5)
    w = gr.Disturbance(WHITE(), scale=0.6)
    equations = [der(x) == 2 * (1 - x) + gr.sqrt(x) * w]


class Pearson(gr.Model):
    """dx = −x dt + √(1 + x²/2) dW: stationary E x² = 1/(2 − ½)."""

    x = gr.Variable(0.0)
    w = gr.Disturbance(WHITE())
    equations = [der(x) == -x + gr.sqrt(1 + 0.5 * x**2) * w]


class Logistic(gr.Model):
    """dx = x(1 − x) dt + σx dW: stationary gamma law with mean 1 − σ²/2 and variance (1 − σ²/2) σ²/2."""

    x = gr.Variable(1.0)
    w = gr.Disturbance(WHITE(), scale=0.6)
    equations = [der(x) == x * (1 - x) + x * w]


@pytest.mark.parametrize("interval", [0.1, 2.0])
def test_noise_that_depends_on_its_state(interval):
    fade = np.exp(-4.0)
    x, mean = ends(Rate(), 2.0, interval).x, 1 - 0.5 * fade
    assert_mean(x, mean)
    assert_mean((x - mean) ** 2, 0.36 / 2 * (0.5 * (fade - fade**2) + 0.5 * (1 - fade) ** 2))
    x = ends(Pearson(), 6.0, 3 * interval).x
    assert_mean(x, 0.0)
    assert_mean(x**2, 1 / 1.5)
    x = ends(Logistic(), 16.0, 8 * interval).x
    assert_mean(x, 0.82)
    assert_mean((x - 0.82) ** 2, 0.82 * 0.18)


class Shaken(gr.Model):
    """A light damper: P solves AP + PAᵀ + BBᵀ = 0."""

    x, v = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(WHITE(), scale=0.5)
    equations = [der(x) == v, der(v) == -9 * x - 0.8 * v + w]


class Twice(gr.Model):
    """The integral of a Wiener process: variance t³/3, covariance t²/2."""

    x, v = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(WHITE())
    equations = [der(x) == v, der(v) == w]


class Pair(gr.Model):
    """Two growths with correlated noises: E xy = e^{ρσ₁σ₂t}."""

    x, y = gr.Variable(1.0), gr.Variable(1.0)
    n = gr.Disturbance(WHITE(), scale=[0.4, 0.6], size=2, correlation=[[1, -0.7], [-0.7, 1]])
    equations = [der(x) == x * n[0], der(y) == y * n[1]]


class Stiff(gr.Model):
    """A fast and a slow decay under one noise."""

    x, y = gr.Variable(0.0), gr.Variable(0.0)
    w = gr.Disturbance(WHITE())
    equations = [der(x) == -x + w, der(y) == -200 * y + w]


@pytest.mark.parametrize("interval", [0.25, 1.0])
def test_linear_systems(interval):
    A = np.array([[0.0, 1.0], [-9.0, -0.8]])
    P = solve_continuous_lyapunov(A, -np.diag([0.0, 0.25]))
    end = ends(Shaken(), 12.0, 4 * interval)
    assert_mean(end.x**2, P[0, 0])
    assert_mean(end.v**2, P[1, 1])
    assert_mean(end.x * end.v, 0.0)
    end = ends(Twice(), 2.0, interval)
    assert_mean(end.x**2, 8 / 3)
    assert_mean(end.x * end.v, 2.0)
    end = ends(Pair(), 1.0, interval)
    assert_mean(end.x * end.y, np.exp(-0.168))
    end = ends(Stiff(), 2.0, interval)
    assert_mean(end.x**2, 0.5 * (1 - np.exp(-4.0)))
    assert_mean(end.y**2, 1 / 400)
    assert_mean(end.x * end.y, 1 / 201)
