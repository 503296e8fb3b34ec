"""Small fits to report on."""

from __future__ import annotations

from functools import cache

import numpy as np

import grisaille as gr
from grisaille import der

METHOD = gr.OutputError()
NASTY = "<script>document.title='owned'</script>"


class Tank(gr.Model):
    """A tank that runs out; its level is measured."""

    k = gr.Parameter(0.5, "1/h", bounds=(0.05, 5.0))
    gain = gr.Parameter(1.0)
    level = gr.Variable(start=1.0, unit="m")
    u = gr.Input("m/h")
    y = gr.Output(level, unit="m")
    z = gr.Output(level**2, noise=0.02)
    equations = [der(level) == gain * u - k * level]


def tank_experiment(name: str, seed: int, n: int = 60) -> gr.Experiment:
    t = np.linspace(0, 12, n)
    u = np.where(t % 6 > 3, 0.5, 0.0)
    plant = gr.simulate(Tank(k=0.6), t, inputs={"u": u})
    noise = 0.02 * np.random.default_rng(seed).standard_normal((2, n))
    outputs = {"y": plant["y"].values + noise[0], "z": plant["z"].values + noise[1]}
    return gr.Experiment(t, {"u": u}, outputs, name=name, unit="h")


@cache
def tank_fit() -> gr.Fit:
    """Two experiments, two outputs, one of unknown noise."""
    data = [tank_experiment("first", 1), tank_experiment("second", 2)]
    return gr.fit(Tank(), data, ["k", "gain"], METHOD)


@cache
def nasty_fit() -> gr.Fit:
    """A model, an experiment, units and descriptions that are scripts."""
    p = gr.Parameter(0.0, NASTY, NASTY)
    x, q = gr.Input(NASTY, NASTY), gr.Parameter(0.0)
    members = {"__doc__": NASTY, "p": p, "q": q, "x": x, "y": gr.Output(p + q * x, unit=NASTY, description=NASTY)}
    model = type(NASTY, (gr.Model,), members)
    at = np.linspace(-1, 2, 30)
    y = 1.5 - 0.4 * at + 0.1 * np.random.default_rng(3).standard_normal(30)
    data = [gr.Experiment(inputs={"x": at}, outputs={"y": y}, name=f"{NASTY}{k}") for k in range(2)]
    return gr.fit(model(), data, ["p", "q"], METHOD)


@cache
def walk_fit() -> gr.Fit:
    """A fit by the Kalman filter, which has states."""

    class Walk(gr.Model):
        a = gr.Parameter(0.7, bounds=(0.1, 3.0))
        x = gr.Variable(2.0, "m")
        w = gr.Disturbance(gr.spectra.white(), scale=0.3)
        y = gr.Output(x, noise=0.1, unit="m")
        equations = [der(x) == -a * x + w]

    t = np.linspace(0, 10, 51)
    plant = gr.simulate(Walk(), t, realizations=1, seed=3, noise=True)
    data = gr.Experiment(t, {}, {"y": plant["y"].values[0]}, name="walk")
    return gr.fit(Walk(), data, ["a"], gr.KalmanML())
