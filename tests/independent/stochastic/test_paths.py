"""What every path keeps, and models without a closed form against integrations in NumPy with very short steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

STRATONOVICH = gr.spectra.white(interpretation="stratonovich")
DEVIATIONS = 4.5


class Turned(gr.Model):
    """A rotation by noise alone."""

    x, y = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(STRATONOVICH)
    equations = [der(x) == y * w, der(y) == -x * w]


class Spin(gr.Model):
    """A unit vector turned about two axes by noises that do not commute."""

    x, y, z = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(1.0)
    v, w = gr.Disturbance(STRATONOVICH, scale=0.7), gr.Disturbance(STRATONOVICH, scale=0.5)
    equations = [der(x) == z * w - y, der(y) == -z * v + x, der(z) == y * v - x * w]


class Hyperbola(gr.Model):
    """x² − y² = 1 under a boost by noise."""

    x, y = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(STRATONOVICH, scale=0.6)
    equations = [der(x) == y * w, der(y) == x * w]


class Circle(gr.Model):
    """The same circle, demanded as a constraint."""

    a, b, f = gr.Variable(1.0), gr.Variable(0.0), gr.Variable()
    v, w = gr.Disturbance(STRATONOVICH), gr.Disturbance(STRATONOVICH)
    equations = [der(a) == f * a + v, der(b) == f * b + w, a**2 + b**2 == 1]


@pytest.mark.parametrize("interval", [0.1, 1.0])
@pytest.mark.parametrize(
    ("model", "kept"),
    [
        (Turned, lambda r: r.x**2 + r.y**2),
        (Spin, lambda r: r.x**2 + r.y**2 + r.z**2),
        (Hyperbola, lambda r: (r.x - r.y) * (r.x + r.y)),
        (Circle, lambda r: r.a**2 + r.b**2),
    ],
)
def test_invariants_hold_on_every_path(model, kept, interval):
    run = gr.simulate(model(), np.arange(0, 4.01, interval), realizations=1000, seed=2)
    q = np.asarray(kept(run))
    assert np.abs(q - 1).max() < 0.05 and abs(q.mean() - 1) < 0.005


class Pendulum(gr.Model):
    """Let go from the horizontal, where its linearisation knows no rate."""

    a, v = gr.Variable(np.pi / 2), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    equations = [der(a) == v, der(v) == -100 * gr.sin(a) - v + w]


class VanDerPol(gr.Model):
    x, v = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    equations = [der(x) == v, der(v) == 4 * (1 - x**2) * v - x + w]


class Predators(gr.Model):
    """Lotka–Volterra with noise in both growth rates (Itô)."""

    x, y = gr.Variable(1.0), gr.Variable(0.5)
    v, w = gr.Disturbance(gr.spectra.white(), scale=0.2), gr.Disturbance(gr.spectra.white(), scale=0.3)
    equations = [der(x) == x * (1 - y) + x * v, der(y) == y * (x - 1) + y * w]


class Switched(gr.Model):
    """A level that is pumped while it is low, with noise that grows with it."""

    x = gr.Variable(0.2)
    w = gr.Disturbance(gr.spectra.white(), scale=0.4)
    equations = [der(x) == 2 / (1 + gr.exp(20 * (x - 1))) - 0.5 * x + x / (1 + x) * w]


STARTS: dict[type[gr.Model], tuple[float, ...]] = {
    Pendulum: (np.pi / 2, 0.0),
    VanDerPol: (1.0, 0.0),
    Predators: (1.0, 0.5),
    Switched: (0.2,),
}


def integrate(
    rates: Callable[..., Any], start: tuple[float, ...], noise: Callable[..., Any], span: float, h: float
) -> Any:
    """(2000, states) at the end of a span, the drift by Heun's rule."""
    random, x = np.random.default_rng(7), np.tile(start, (2000, 1)).T
    for _ in range(round(span / h)):
        rate, kick = np.array(rates(*x)), np.sqrt(h) * np.array(noise(random, *x))
        x = x + 0.5 * h * (rate + np.array(rates(*(x + h * rate + kick)))) + kick
    return x.T


@pytest.mark.parametrize("interval", [0.05, 0.5])
@pytest.mark.parametrize(
    ("model", "names", "rates", "noise", "span", "h"),
    [
        (
            Pendulum, ("a", "v"), lambda a, v: (v, -100 * np.sin(a) - v),
            lambda r, a, v: (0 * a, 0.3 * r.standard_normal(a.size)), 1.0, 2e-4,
        ),
        (
            VanDerPol, ("x", "v"), lambda x, v: (v, 4 * (1 - x**2) * v - x),
            lambda r, x, v: (0 * x, 0.5 * r.standard_normal(x.size)), 3.0, 1e-3,
        ),
        (
            Predators, ("x", "y"), lambda x, y: (x * (1 - y), y * (x - 1)),
            lambda r, x, y: (0.2 * x * r.standard_normal(x.size), 0.3 * y * r.standard_normal(x.size)), 3.0, 2e-3,
        ),
        (
            Switched, ("x",), lambda x: (2 / (1 + np.exp(20 * (x - 1))) - 0.5 * x,),
            lambda r, x: (0.4 * x / (1 + x) * r.standard_normal(x.size),), 3.0, 2e-3,
        ),
    ],
)  # fmt: skip
def test_moments_are_those_of_very_short_steps(model, names, rates, noise, span, h, interval):
    times = np.linspace(0, span, round(span / interval) + 1)
    run = gr.simulate(model(), times, realizations=2000, seed=3).isel(time=-1)
    wanted = integrate(rates, STARTS[model], noise, span, h)
    for k, name in enumerate(names):
        found, other = np.asarray(run[name]), wanted[:, k]
        sd = other.std()
        # two samples of 2000, the steps of both
        assert abs(found.mean() - other.mean()) < sd * (DEVIATIONS * np.sqrt(2 / 2000) + 0.02)
        assert abs(found.std() / sd - 1) < DEVIATIONS * np.sqrt(1 / 2000) * 1.5 + 0.03
