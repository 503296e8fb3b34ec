"""Models and records that several tests of filters share."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import atan2, der, sin

STEPS = np.array([0.0, 0.3, 0.5, 0.2, 0.9, 0.4, 0.4, 0.4, 1.1, 0.3, 0.6, 0.2])
IRREGULAR = np.cumsum(STEPS)
INPUT = np.sin(1.3 * IRREGULAR) + 0.2
SEEN = np.column_stack(
    [np.cos(IRREGULAR) + 0.1 * np.sin(17 * IRREGULAR), 0.5 * np.sin(IRREGULAR) + 0.05 * np.cos(23 * IRREGULAR)]
)
SEEN[4, 0] = SEEN[5, 1] = SEEN[9] = np.nan


class Tanks(gr.Model):
    """Linear: two tanks, white noise in one of them, an input, two outputs of which one sees the input directly."""

    a, b = gr.Parameter(0.7), gr.Parameter(0.4)
    x1, x2 = gr.Variable(start=0.5), gr.Variable(start=-0.2)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y1 = gr.Output(x1 + 0.1 * u, noise=0.2)
    y2 = gr.Output(x2, noise=0.1)
    equations = [der(x1) == -a * x1 + u + w, der(x2) == b * (x1 - x2)]


def tank_record(hold="zoh"):
    return gr.Experiment(IRREGULAR, {"u": INPUT}, {"y1": SEEN[:, 0], "y2": SEEN[:, 1]}, hold=hold)


class Pendulum(gr.Model):
    """Cartesian, index 3, pushed by a coloured force that enters linearly."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.4)
    x, y = gr.Variable(start=1.0), gr.Variable(start=-(3.0**0.5))
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    phi = gr.Output(atan2(x, -y), noise=0.02)
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * vx + w,
        m * der(vy) == tension * y - k * vy - m * g,
        x**2 + y**2 == L**2,
    ]


class Angle(gr.Model):
    """The same pendulum in its angle."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.4)
    a, v = gr.Variable(start=float(np.pi / 6)), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    phi = gr.Output(a, noise=0.02)
    equations = [der(a) == v, m * L * der(v) == -m * g * sin(a) - k * L * v + w * gr.cos(a)]


SWING = np.linspace(0.0, 3.0, 31)


def swing(scale=0.4, noise=0.02, seed=2):
    """The pendulum's angle with noise."""
    run = gr.simulate(Pendulum(), SWING, realizations=1, seed=seed, parameters={"scale(w)": scale})
    y = run["phi"].values.ravel() + noise * np.random.default_rng(seed).normal(size=len(SWING))
    return gr.Experiment(SWING, {}, {"phi": y})


class Squared(gr.Model):
    """A disturbance that enters as w²: without gain at w = 0."""

    a = gr.Parameter(0.8)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=1.0)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + w**2]


class Bent(gr.Model):
    """The same with a linear share, so that a filter can follow it."""

    a = gr.Parameter(0.8)
    x = gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=1.0)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + w + 0.3 * w**2]


class Reactor(gr.Model):
    """Fed batch: growth with substrate inhibition; μ has a pole at S = −0.0305."""

    mu_max, K1, K2 = gr.Parameter(1.0), gr.Parameter(0.03), gr.Parameter(0.5)
    yield_, S_F = gr.Parameter(0.5), gr.Parameter(10.0)
    X, S, V = gr.Variable(start=1.0), gr.Variable(start=0.24495), gr.Variable(start=1.0)
    F = gr.Input()
    w1, w2, w3 = (gr.Disturbance(gr.spectra.white(), scale=0.1) for _ in range(3))
    y1, y2, y3 = gr.Output(X, noise=0.1), gr.Output(S, noise=0.0316), gr.Output(V, noise=0.1)
    mu = mu_max * S / (K2 * S**2 + S + K1)
    equations = [
        der(X) == mu * X - F * X / V + w1,
        der(S) == -mu * X / yield_ + F * (S_F - S) / V + w2,
        der(V) == F + w3,
    ]


FEED_TIMES = np.linspace(0.0, 3.8, 101)
FEED = np.where(FEED_TIMES < 1, 0.4, np.where(FEED_TIMES < 2, 0.8, np.where(FEED_TIMES < 3, 1.2, 0.6)))
REACTOR = {
    "start(X)": 1.0, "start(S)": 0.245, "start(V)": 1.0, "mu_max": 1.0, "K1": 0.03, "scale(w1)": 0.1,
    "scale(w2)": 0.1, "scale(w3)": 0.1, "noise(y1)": 0.1, "noise(y2)": 0.0316, "noise(y3)": 0.1,
}  # fmt: skip


def batch(scale, seed):
    """One record; with diffusion 0.316 one path in twenty crosses the pole under this feed."""
    levels = {f"scale(w{i})": scale for i in (1, 2, 3)}
    run = gr.simulate(
        Reactor(), FEED_TIMES, inputs={"F": FEED}, hold="zoh", realizations=1, seed=seed, parameters=levels
    )  # fmt: skip
    random = np.random.default_rng(seed)
    noisy = {
        f"y{i}": run[f"y{i}"].values.ravel() + s * random.normal(size=101) for i, s in ((1, 0.1), (2, 0.0316), (3, 0.1))
    }
    return gr.Experiment(FEED_TIMES, {"F": FEED}, noisy, hold="zoh")
