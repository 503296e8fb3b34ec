"""Small models for simulated prediction errors, and records of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 40.0, 201)
INPUT = 1.0 + np.sign(np.sin(0.5 * TIMES))
SHORT = np.linspace(0.0, 3.0, 31)


class Squared(gr.Model):
    """x' = −a x + u + w²: the disturbance has a mean effect that output error cannot see."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + u + 0.8 * w**2]


class Drifting(gr.Model):
    """x' = −a x + b u + w: linear, so the mean is the undisturbed course."""

    a, b = gr.Parameter(0.8, bounds=(0.1, 5.0)), gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.3)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + b * u + w]


class TwoTanks(gr.Model):
    """Two coupled tanks under correlated inflows: parameters in the spectrum, the scale and the correlation."""

    k = gr.Parameter(0.7, bounds=(0.1, 5.0))
    rho = gr.Parameter(0.5, bounds=(-0.95, 0.95))
    bandwidth = gr.Parameter(1.5, bounds=(0.1, 20.0))
    h1, h2 = gr.Variable(1.0), gr.Variable(0.5)
    u = gr.Input(default=1.0)
    w = gr.Disturbance(
        gr.spectra.lowpass(bandwidth=bandwidth), scale=0.4, size=2, correlation=np.array([[1, rho], [rho, 1]])
    )
    y1, y2 = gr.Output(h1), gr.Output(h2, noise=0.05)
    equations = [der(h1) == u - k * h1 + w[0], der(h2) == k * h1 - h2 * abs(h2) + w[1] + 0.3 * w[1] ** 2]


def record(model: gr.Model, seed: int, times: np.ndarray = TIMES, noise: float = 0.01, **options: Any) -> gr.Experiment:
    """One run with measurement noise of the given standard deviation."""
    inputs = {"u": np.interp(times, TIMES, INPUT)}
    run = gr.simulate(model, times, inputs=inputs, realizations=1, seed=seed, **options)
    rng = np.random.default_rng(seed)
    outputs = {n: run[n].values[0] + noise * rng.standard_normal(times.size) for n in ("y", "y1", "y2") if n in run}
    return gr.Experiment(times, inputs, outputs)
