"""Circuits and machines."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, lowpass
from grisaille import der
from grisaille.components.electrical import Capacitor, Ground, Resistor, VoltageSource

MICRO = 1e-6 * np.linspace(0.0, 50.0, 26)


class Filter(gr.Model):
    """A resistor and a capacitor of nanofarads, from the library; index 1, many names for few quantities."""

    C = gr.Parameter(2e-9, "F", bounds=(1e-11, 1e-7))
    source, r, c, ground = VoltageSource(), Resistor(R=8e3), Capacitor(C=C), Ground()
    y = gr.Output(c.v, noise=0.02, unit="V")
    equations = [gr.connect(source.p, r.p), gr.connect(r.n, c.p), gr.connect(c.n, source.n, ground.p)]


def lowpass_filter() -> tuple[gr.Model, list[gr.Experiment]]:
    """v' = (u − v)/(R C), in closed form between jumps of u."""
    random, u = np.random.default_rng(31), np.where(MICRO % 20e-6 < 10e-6, 1.0, 0.0)
    v, path = 0.0, [0.0]
    for a, b, value in zip(MICRO[:-1], MICRO[1:], u[:-1], strict=True):
        v = value + (v - value) * np.exp(-(b - a) / (8e3 * 1e-9))
        path.append(v)
    seen = np.array(path) + 0.02 * random.normal(size=26)
    return Filter(), [gr.Experiment(MICRO, {"source.u": u}, {"y": seen})]


TIMES = np.linspace(0.0, 20.0, 26)
CHARGE, CURVE = [0.0, 0.25, 0.5, 0.75, 1.0], [0.7, 0.82, 0.87, 0.92, 1.0]
LOAD = np.where(TIMES % 8 < 4, 3.0, 1.0)


class Battery(gr.Model):
    """A load of given power, V i = P: index 1, with a curve of open-circuit voltage; the noise is open."""

    R = gr.Parameter(0.2, "ohm", bounds=(0.01, 2.0))
    full = gr.Parameter(4.0, "V", bounds=(3.0, 5.0))
    Q = gr.Parameter(40.0)
    charge = gr.Variable(1.0)
    V, i = gr.Variable(3.5, "V"), gr.Variable(0.8, "A")
    P = gr.Input("W")
    voltage = gr.Output(V, noise=None, unit="V")
    equations = [
        Q * der(charge) == -i,
        V == full * gr.table(charge, CHARGE, CURVE) - R * i,
        V * i == P,
    ]


def battery() -> tuple[gr.Model, list[gr.Experiment]]:
    random, P = np.random.default_rng(32), held(TIMES, LOAD)
    R, full = 0.3, 4.1

    def current(t: float, charge: np.ndarray) -> np.ndarray:
        U = full * np.interp(charge, CHARGE, CURVE)
        return (U - np.sqrt(U * U - 4 * R * P(t))) / (2 * R)

    charge = follow(lambda t, x, w: -current(t, x) / 40.0, [1.0], TIMES)[:, 0]
    V = np.array([P(t) / float(current(t, np.array(c))) for t, c in zip(TIMES, charge, strict=True)])
    seen = V + 0.005 * random.normal(size=len(TIMES))
    return Battery(), [gr.Experiment(TIMES, {"P": LOAD}, {"voltage": seen})]


class Motor(gr.Model):
    """A motor on a stiff shaft: equal speeds, index 2; the load's torque is disturbed."""

    d = gr.Parameter(0.3, bounds=(0.01, 5.0))
    K = gr.Parameter(1.0)
    rotor, load = gr.Variable(0.0), gr.Variable(0.0)
    torque = gr.Variable()
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.05)
    y = gr.Output(load, noise=0.02)
    equations = [
        0.5 * der(rotor) == K * u - torque,
        1.5 * der(load) == torque - d * load + w,
        rotor == load,
    ]


def motor() -> tuple[gr.Model, list[gr.Experiment]]:
    random, volts = np.random.default_rng(33), np.where(TIMES % 8 < 4, 1.0, -0.5)
    u = held(TIMES, volts)
    w = lowpass(random, TIMES, 2.0, 0.05)[:, None]
    speed = follow(lambda t, x, w: (u(t) - 0.5 * x + w) / 2.0, [0.0], TIMES, w)[:, 0]
    return Motor(), [gr.Experiment(TIMES, {"u": volts}, {"y": speed + 0.02 * random.normal(size=26)})]


ENTRIES = [
    Entry("filter", "units down to 1e-9, library components", lowpass_filter, {"C": 1e-9}, frozenset({"linear"})),
    Entry(
        "battery", "implicit equations, a table, open noise", battery, {"R": 0.3, "full": 4.1},
        frozenset({"open"}),
    ),
    Entry("motor", "index 2, low-pass noise", motor, {"d": 0.5}, frozenset({"coloured", "linear"})),
]  # fmt: skip
