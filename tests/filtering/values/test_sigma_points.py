"""Sigma points in loops give the log-likelihood of sigma points written out."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.filter_reference import carry

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.filtering.values import SigmaPointValues, ValueRunner

TIMES = np.linspace(0.0, 4.0, 21)
WHITE = gr.spectra.white


class Reactor(gr.Model):
    """Two states and outputs of their own rates, a signal that moves between samples, noise that grows with a state."""

    k = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x, s = gr.Variable(0.5), gr.Variable(1.0)
    u = gr.Input()
    w = gr.Disturbance(WHITE(), scale=0.2)
    y, z = gr.Output(gr.log(1 + x), noise=0.05), gr.Output(s, noise=0.03 * (1 + x**2))
    equations = [der(x) == k * s * x / (1 + s) - 0.3 * x + x * w, der(s) == u - k * s * x]


class Circle(gr.Model):
    """A mass on a circle in redundant coordinates: hidden constraints, and a force that stays algebraic."""

    d = gr.Parameter(0.3, bounds=(0.0, 5.0))
    x, y, vx, vy, f = gr.Variable(0.6), gr.Variable(-0.8), gr.Variable(0.0), gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(gr.spectra.matern12(1.0), scale=0.5)
    angle = gr.Output(gr.atan2(x, -y), noise=0.05)
    equations = [
        der(x) == vx, der(y) == vy, der(vx) == f * x - d * vx + w, der(vy) == f * y - d * vy - 9.81,
        x**2 + y**2 == 1.0,
    ]  # fmt: skip


class Implicit(gr.Model):
    """An algebraic unknown that is solved at every point."""

    a = gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, z = gr.Variable(0.5), gr.Variable()
    w = gr.Disturbance(WHITE(), scale=0.2)
    y = gr.Output(z, noise=0.1)
    equations = [der(x) == -a * x - 0.2 * z**2 + w, z + 0.3 * z**3 == x]


class Still(gr.Model):
    """A random walk behind a bent sensor: the drift does not depend on the state."""

    b = gr.Parameter(0.4, bounds=(-5.0, 5.0))
    x = gr.Variable(0.1)
    w = gr.Disturbance(WHITE(), scale=0.3)
    y = gr.Output(gr.exp(x), noise=0.1)
    equations = [der(x) == b + w]


def ramped(names: tuple[str, ...], **inputs: np.ndarray) -> gr.Experiment:
    rng = np.random.default_rng(3)
    values = {n: 0.6 + 0.3 * np.sin(TIMES + k) + 0.05 * rng.normal(size=TIMES.size) for k, n in enumerate(names)}
    values[names[0]][4] = np.nan
    return gr.Experiment(TIMES, inputs, values, hold="foh" if inputs else "zoh")


@pytest.mark.parametrize(
    ("model", "data", "margin"),
    [
        (Reactor(), ramped(("y", "z"), u=0.5 + 0.2 * np.cos(TIMES)), 1e-9),
        (Circle(), ramped(("angle",)), 1e-6),
        (Implicit(), ramped(("y",)), 1e-9),
        (Still(), ramped(("y",)), 1e-9),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, gr.Model) else "",
)
def test_loops_agree_with_points_written_out(monkeypatch, model, data, margin):
    name = {"Reactor": "k", "Circle": "d", "Implicit": "a", "Still": "b"}[type(model).__name__]
    case = build_problem(model, data, [name], gr.KalmanML(filter="unscented", substeps=2)).discretised_problem.cases[0]
    theta, steps = np.array([0.55]), case.discretisation
    with monkeypatch.context() as here:
        here.setattr("grisaille.filtering.passes.Passes.carry", carry)
        written = case.runner.likelihood(theta, steps, sensitive=False).likelihood
    runner = ValueRunner(case.trial, gr.KalmanML(filter="unscented", substeps=2).filter_options)
    looped = runner.likelihood(theta, steps, sensitive=False).likelihood
    assert isinstance(runner.filter, SigmaPointValues)
    assert looped.value == pytest.approx(written.value, abs=margin)
    assert np.allclose(looped.innovations, written.innovations, rtol=1e-6, atol=1e-7, equal_nan=True)
