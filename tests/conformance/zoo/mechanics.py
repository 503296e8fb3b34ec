"""Mechanisms, written with their constraints."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, lowpass
from grisaille import atan2, der

TIMES = np.linspace(0.0, 3.0, 31)


class Pendulum(gr.Model):
    """Cartesian, index 3, pushed by a coloured force."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    x, y = gr.Variable(start=1.0), gr.Variable(start=-(3.0**0.5))
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.1)
    phi = gr.Output(atan2(x, -y), noise=0.02)
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * vx + w,
        m * der(vy) == tension * y - k * vy - m * g,
        x**2 + y**2 == L**2,
    ]


def pendulum() -> tuple[gr.Model, list[gr.Experiment]]:
    """By the angle: m L φ'' = −m g sin φ − k L φ' + w cos φ."""
    random, m, g, L, k = np.random.default_rng(3), 0.3, 9.81, 2.0, 0.4
    w = lowpass(random, TIMES, 2.0, 0.1)[:, None]

    def rate(t: float, s: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.array([s[1], (-m * g * np.sin(s[0]) - k * L * s[1] + w[0] * np.cos(s[0])) / (m * L)])

    phi = follow(rate, [np.pi / 6, 0.0], TIMES, w)[:, 0]
    return Pendulum(), [gr.Experiment(TIMES, {}, {"phi": phi + 0.02 * random.normal(size=len(TIMES))})]


class Arm(gr.Model):
    """Two links in a horizontal plane: accelerations that stand in both equations, torques along straight lines."""

    friction = gr.Parameter(0.5, bounds=(0.01, 5.0))
    a, b = gr.Variable(0.0), gr.Variable(0.5)
    va, vb = gr.Variable(0.0), gr.Variable(0.0)
    u = gr.Input()
    ya, yb = gr.Output(a, noise=0.02), gr.Output(b, noise=0.02)
    coupling = 0.5 * gr.cos(b - a)
    equations = [
        der(a) == va,
        der(b) == vb,
        2.0 * der(va) + coupling * der(vb) == u + 0.5 * gr.sin(b - a) * vb**2 - friction * va,
        coupling * der(va) + der(vb) == -0.5 * gr.sin(b - a) * va**2 - friction * vb,
    ]


def arm() -> tuple[gr.Model, list[gr.Experiment]]:
    random, u = np.random.default_rng(11), np.cos(2.0 * TIMES)

    def rate(t: float, s: np.ndarray, w: np.ndarray) -> np.ndarray:
        a, b, va, vb = s
        c, d = 0.5 * np.cos(b - a), 0.5 * np.sin(b - a)
        right = [np.interp(t, TIMES, u) + d * vb**2 - 0.3 * va, -d * va**2 - 0.3 * vb]
        return np.array([va, vb, *np.linalg.solve([[2.0, c], [c, 1.0]], right)])

    x = follow(rate, [0.0, 0.5, 0.0, 0.0], TIMES)[:, :2]
    seen = x + 0.02 * random.normal(size=x.shape)
    return Arm(), [gr.Experiment(TIMES, {"u": u}, {"ya": seen[:, 0], "yb": seen[:, 1]}, hold="foh")]


class Falling(gr.Model):
    """A ball with drag, seen from the ground; the camera starts late."""

    k = gr.Parameter(0.3, "1/m", bounds=(0.01, 2.0))
    h, v = gr.Variable(30.0, "m"), gr.Variable(0.0)
    y = gr.Output(h, noise=0.1, unit="m")
    equations = [der(h) == v, der(v) == -9.81 - k * abs(v) * v]


def falling() -> tuple[gr.Model, list[gr.Experiment]]:
    """v = −s tanh(g t/s), h = 30 − s²/g log cosh(g t/s) with s² = g/k; seen from t = 0.5 on."""
    random, times, s = np.random.default_rng(12), np.linspace(0.5, 3.0, 26), np.sqrt(9.81 / 0.2)
    h = 30.0 - s**2 / 9.81 * np.log(np.cosh(9.81 * times / s))
    return Falling(), [gr.Experiment(times, {}, {"y": h + 0.1 * random.normal(size=26)}, t0=0.0)]


class Rubbed(gr.Model):
    """A mass that is pushed against an unknown friction, a curve through three values."""

    F = gr.Parameter([0.8, 1.0, 1.4], size=3, prior=gr.Smoothness(1.0))
    v = gr.Variable(2.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.03)
    y = gr.Output(v, noise=0.02)
    equations = [der(v) == u - gr.table(v, [0.0, 1.0, 3.0], F, outside="extend") + w]


def rubbed() -> tuple[gr.Model, list[gr.Experiment]]:
    """Euler's steps of 2 ms."""
    random, times, v, seen, h = np.random.default_rng(5), np.arange(0.0, 16.0, 0.2), 2.5, [], 2e-3
    u = np.where(times % 8 < 4, 0.65, 1.6)
    for push in u:
        seen.append(v)
        for z in random.normal(size=100) * 0.03 * np.sqrt(h):
            v += h * (push - np.interp(v, [0.0, 1.0, 3.0], RUBBING)) + z
    return Rubbed(), [gr.Experiment(times, {"u": u}, {"y": np.array(seen) + 0.02 * random.normal(size=len(times))})]


RUBBING = (0.6, 1.1, 1.7)

ENTRIES = [
    Entry(
        "rubbed", "a table with unknown values, believed to be smooth", rubbed,
        {f"F[{k}]": f for k, f in enumerate(RUBBING)}, frozenset({"white", "everywhere"}),
    ),
    Entry("falling", "abs, a record that begins late", falling, {"k": 0.2}),
    Entry(
        "arm", "two links: a mass matrix, straight lines", arm, {"friction": 0.3},
    ),
    Entry(
        "pendulum", "index 3, low-pass noise", pendulum, {"k": 0.4}, frozenset({"coloured", "index"}),
    ),
]  # fmt: skip
