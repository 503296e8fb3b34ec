"""Heat: buildings, walls, rods."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, lowpass, white
from grisaille import der

HOURS = 3600.0 * np.arange(0.0, 40.0, 1.0)
HEATING = np.where(np.arange(40) % 8 < 4, 4000.0, 500.0)
OUTSIDE = 5.0 + 4.0 * np.sin(2 * np.pi * np.arange(40) / 24)


class House(gr.Model):
    """One room in SI units: capacities of 1e7 J/K, seconds; the sun nobody measured has an unknown strength."""

    C = gr.Parameter(1.5e7, "J/K", bounds=(1e6, 1e8))
    R = gr.Parameter(4e-3, "K/W", bounds=(1e-4, 1e-1))
    T = gr.Variable(20.0, "degC")
    q, Te = gr.Input("W"), gr.Input("degC")
    sun = gr.Disturbance(gr.spectra.lowpass(bandwidth=2e-4), scale=2e4)
    y = gr.Output(T, noise=0.05, unit="degC")
    equations = [C * der(T) == (Te - T) / R + q + sun]


def house() -> tuple[gr.Model, list[gr.Experiment]]:
    random, q, Te = np.random.default_rng(21), held(HOURS, HEATING), held(HOURS, OUTSIDE)
    sun = lowpass(random, HOURS, 2e-4, 3e4)[:, None]
    T = follow(lambda t, x, w: ((Te(t) - x) / 5e-3 + q(t) + w) / 1e7, [20.0], HOURS, sun)[:, 0]
    seen = T + 0.05 * random.normal(size=len(HOURS))
    return House(), [gr.Experiment(HOURS, {"q": HEATING, "Te": OUTSIDE}, {"y": seen})]


TIMES = np.linspace(0.0, 10.0, 26)
ACROSS = "The equations jump with '1<T' at t = 0.5"
"""What collocation says where it finds no minimum."""


class Rod(gr.Model):
    """Three slices of a rod, a vector; its hot end follows straight lines, and a draught cools the other."""

    k = gr.Parameter(0.6, bounds=(0.01, 10.0))
    T = gr.Variable(start=[0.0, 0.0, 0.0], size=3)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(T[2], noise=0.02)
    equations = [
        der(T[0]) == k * (u - 2 * T[0] + T[1]),
        der(T[1]) == k * (T[0] - 2 * T[1] + T[2]),
        der(T[2]) == k * (T[1] - T[2]) + w,
    ]


def rod() -> tuple[gr.Model, list[gr.Experiment]]:
    random, u = np.random.default_rng(22), 1.0 + np.sin(0.7 * TIMES)
    A = np.array([[-2.0, 1.0, 0.0], [1.0, -2.0, 1.0], [0.0, 1.0, -1.0]])
    w = lowpass(random, TIMES, 1.0, 0.1)[:, None]

    def rate(t: float, T: np.ndarray, w: np.ndarray) -> np.ndarray:
        return 1.0 * (A @ T + np.array([np.interp(t, TIMES, u), 0.0, 0.0])) + np.array([0.0, 0.0, w[0]])

    T = follow(rate, [0.0, 0.0, 0.0], TIMES, w)[:, 2]
    return Rod(), [gr.Experiment(TIMES, {"u": u}, {"y": T + 0.02 * random.normal(size=26)}, hold="foh")]


class Oven(gr.Model):
    """The door opens at t = 4, a jump of time; power is held."""

    loss = gr.Parameter(0.3, bounds=(0.01, 3.0))
    draught = gr.Parameter(0.2, bounds=(0.0, 3.0))
    T = gr.Variable(1.0)
    q = gr.Input()
    y = gr.Output(T, noise=0.02)
    equations = [der(T) == q - loss * T - gr.where(gr.time > 4.0, draught, 0.0)]


def oven() -> tuple[gr.Model, list[gr.Experiment]]:
    """Samples lie on the jump's two sides, and one small step ends on it."""
    random, power = np.random.default_rng(23), np.where(TIMES < 6.0, 1.0, 0.5)
    q = held(TIMES, power)
    T = follow(lambda t, x, w: q(t) - 0.5 * x - (0.4 if t > 4.0 else 0.0), [1.0], TIMES)[:, 0]
    return Oven(), [gr.Experiment(TIMES, {"q": power}, {"y": T + 0.02 * random.normal(size=26)})]


class Thermostat(gr.Model):
    """A heater that the temperature itself switches off: a jump with a state."""

    loss = gr.Parameter(0.3, bounds=(0.05, 3.0))
    T = gr.Variable(0.5)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(T, noise=0.02)
    equations = [der(T) == q - loss * T - gr.where(T > 1.0, 0.5, 0.0) + w]


def thermostat() -> tuple[gr.Model, list[gr.Experiment]]:
    random, power = np.random.default_rng(24), np.where(TIMES % 5 < 2.4, 1.2, 0.2)
    q = held(TIMES, power)
    w = white(random, TIMES, 0.05)[:, None]
    T = follow(lambda t, x, w: q(t) - 0.4 * x - np.where(x > 1, 0.5, 0.0) + w, [0.5], TIMES, w)[:, 0]
    return Thermostat(), [gr.Experiment(TIMES, {"q": power}, {"y": T + 0.02 * random.normal(size=26)})]


ENTRIES = [
    Entry(
        "house", "units up to 1e7, low-pass noise of unknown strength", house,
        {"C": 1e7, "R": 5e-3, "scale(sun)": 3e4}, frozenset({"coloured", "linear", "levels"}),
        apart={"pem": "The mean of the outputs does not depend on 'scale(sun)'"},
    ),
    Entry("rod", "a vector, an input of straight lines", rod, {"k": 1.0}, frozenset({"coloured", "linear"})),
    Entry("oven", "a jump of time and one of a held input", oven, {"loss": 0.5, "draught": 0.4}, frozenset({"linear"})),
    Entry(
        "thermostat", "a jump with a state", thermostat, {"loss": 0.4}, frozenset({"white", "everywhere", "jump"}),
        apart={"extended": "the mean passes the switch", **dict.fromkeys(("amle", "debiased", "smoothing"), ACROSS)},
    ),
]  # fmt: skip
