"""What is known beforehand: priors, and bounds that hold."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, lowpass, white
from grisaille import der

TIMES = np.linspace(0.0, 10.0, 26)


class Gauge(gr.Model):
    """Gain and offset of a sensor are told apart by what is believed of the gain."""

    a = gr.Parameter(0.5, bounds=(0.05, 5.0))
    gain = gr.Parameter(1.0, prior=gr.Normal(1.0, 0.05))
    x = gr.Variable(2.0)
    y = gr.Output(gain * x, noise=0.02)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    equations = [der(x) == -a * x + w]


def gauge() -> tuple[gr.Model, list[gr.Experiment]]:
    random = np.random.default_rng(51)
    x = follow(lambda t, x, w: -0.4 * x + w, [2.0], TIMES, white(random, TIMES, 0.02)[:, None])[:, 0]
    return Gauge(), [gr.Experiment(TIMES, {}, {"y": 1.03 * x + 0.02 * random.normal(size=26)})]


class Leak(gr.Model):
    """A tank that does not leak, though noise says it gains: the bound at zero holds."""

    a = gr.Parameter(0.6, bounds=(0.05, 5.0))
    leak = gr.Parameter(0.05, bounds=(0.0, 1.0))
    h = gr.Variable(1.0)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.01)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - a * h - leak + w]


def leak() -> tuple[gr.Model, list[gr.Experiment]]:
    """A seed at which noise alone pulls the leak 1.3 standard errors below zero: every estimator ends at the bound."""
    random, inflow = np.random.default_rng(67), np.where(TIMES % 5 < 2.4, 1.0, 0.2)
    q = held(TIMES, inflow)
    w = lowpass(random, TIMES, 2.0, 0.01)[:, None]
    h = follow(lambda t, x, w: q(t) - 0.5 * x + w, [1.0], TIMES, w)[:, 0]
    return Leak(), [gr.Experiment(TIMES, {"q": inflow}, {"y": h + 0.02 * random.normal(size=26)})]


class Waves(gr.Model):
    """A basin that waves fill: their square, whose mean nobody sees at w = 0."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    level = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    y = gr.Output(level, noise=0.02)
    equations = [der(level) == -a * level + u + w**2]


def waves() -> tuple[gr.Model, list[gr.Experiment]]:
    random, pump = np.random.default_rng(53), np.where(TIMES % 5 < 2.4, 2.0, 0.5)
    u = held(TIMES, pump)
    w = lowpass(random, TIMES, 2.0, 1.0)[:, None]
    h = follow(lambda t, x, w: -1.2 * x + u(t) + w**2, [0.0], TIMES, w)[:, 0]
    return Waves(), [gr.Experiment(TIMES, {"u": pump}, {"y": h + 0.02 * random.normal(size=26)})]


class Ship(gr.Model):
    """A spring that nobody saw at rest: waves (low-pass) push it, flicker (white) shakes it; speed unknown at first."""

    stiffness = gr.Parameter(3.0, bounds=(0.5, 20.0))
    x, v = gr.Variable(1.0), gr.Variable(0.3)
    waves = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    flicker = gr.Disturbance(gr.spectra.white(), scale=0.03)
    y = gr.Output(x, noise=0.03)
    equations = [der(x) == v, der(v) == -stiffness * x - 0.4 * v + waves + flicker]


def ship() -> tuple[gr.Model, list[gr.Experiment]]:
    random = np.random.default_rng(54)
    w = np.column_stack([lowpass(random, TIMES, 1.0, 0.1), white(random, TIMES, 0.03)])

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.array([x[1], -4.0 * x[0] - 0.4 * x[1] + w[0] + w[1]])

    x = follow(rate, [1.0, -1.0], TIMES, w)[:, 0]
    return Ship(), [gr.Experiment(TIMES, {}, {"y": x + 0.03 * random.normal(size=26)})]


ENTRIES = [
    Entry(
        "gauge", "a prior that decides", gauge, {"a": 0.4, "gain": 1.03},
        frozenset({"white", "everywhere", "linear"}),
    ),
    Entry(
        "leak", "a bound that holds", leak, {"a": 0.5, "leak": 0.0}, frozenset({"coloured", "linear"}),
        sizes={"leak": 0.05},
    ),
    Entry("waves", "a disturbance in a square", waves, {"a": 1.2}, frozenset({"squared"})),
    Entry(
        "ship", "low-pass and white noise at one place, an unknown start that is not measured", ship,
        {"stiffness": 4.0, "start(v)": -1.0}, frozenset({"coloured", "white", "linear"}),
    ),
]  # fmt: skip
