"""Small fits to report on."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

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


@cache
def wide_fit() -> gr.Fit:
    """Sixteen unknowns with long names, units and bounds; two dated experiments, one over the change to summer time."""

    class Wide(gr.Model):
        rate = gr.Parameter(0.5, "1/h", bounds=(0.05, 5.0))
        amplitude_of_the_fast_part = gr.Parameter(np.full(12, 0.2), "kWh/(m2 K)", size=12, bounds=(-1000.0, 1000.0))
        gain = gr.Parameter(1.0, "kWh/(m2 K)", bounds=(-1000.0, 1000.0))
        th = gr.Variable(1.0, "degC")
        heat_flow = gr.Variable(unit="kW")
        u = gr.Input("kW/m2")
        waves = np.sum(amplitude_of_the_fast_part * np.sin(np.arange(1, 13) * gr.time / 3))
        y = gr.Output(th + waves, unit="kWh/(m2 K)")
        z = gr.Output(th - waves, unit="kWh/(m2 K)")
        equations = [der(th) == heat_flow, heat_flow == gain * u - rate * th]

    def run(name: str, begin: str, hours: float, seed: int) -> gr.Experiment:
        stamps = pd.date_range(begin, periods=120, freq=pd.Timedelta(hours=hours / 119), tz="Europe/Berlin")
        t = np.linspace(0, hours, 120)
        random = np.random.default_rng(seed)
        level = np.exp(-0.5 * t)
        waves = 0.2 * sum(np.sin((k + 1) * t / 3) for k in range(12))
        y, z = (level + sign * waves + 0.02 * random.standard_normal(120) for sign in (1, -1))
        y[40:60] = np.nan
        return gr.Experiment(stamps, {"u": np.zeros(120)}, {"y": y, "z": z}, name=name, unit="h")

    night = run("the night in which clocks are put forward", "2024-03-30 22:00", 8.0, 1)
    unknowns = ["rate", "amplitude_of_the_fast_part", "start(th)"]
    return gr.fit(Wide(), [night, run("week", "2024-04-01", 168.0, 2)], unknowns, METHOD)
