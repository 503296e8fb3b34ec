"""Reactors and what lives in them."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, white
from grisaille import der

MINUTES = np.linspace(0.0, 6.0, 25)


class Reactor(gr.Model):
    """A stirred tank with an exothermic reaction; what cools it flickers. Activation of 8750 K, a rate at 350 K."""

    E = gr.Parameter(8.0e3, "K", bounds=(2e3, 2e4))
    k = gr.Parameter(0.8, bounds=(0.05, 10.0))
    c, T = gr.Variable(0.5), gr.Variable(350.0, nominal=350.0)
    F = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=1.0)
    v = gr.Disturbance(gr.spectra.white(), scale=0.005)
    yc, yT = gr.Output(c, noise=0.01), gr.Output(T, noise=0.3)
    rate = k * gr.exp(-E * (1 / T - 1 / 350.0)) * c
    equations = [der(c) == F * (1 - c) - rate + v, der(T) == F * (350.0 - T) + 40.0 * rate - 2.0 * (T - 345.0) + w]


def reactor() -> tuple[gr.Model, list[gr.Experiment]]:
    random, flow = np.random.default_rng(41), np.where(MINUTES % 2 < 1, 1.5, 0.5)
    F = held(MINUTES, flow)
    w = np.column_stack([white(random, MINUTES, 1.0), white(random, MINUTES, 0.005)])

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        r = 1.0 * np.exp(-8750.0 * (1 / x[1] - 1 / 350.0)) * x[0]
        return np.array([F(t) * (1 - x[0]) - r + w[1], F(t) * (350 - x[1]) + 40 * r - 2 * (x[1] - 345) + w[0]])

    x = follow(rate, [0.5, 350.0], MINUTES, w)
    seen = {"yc": x[:, 0] + 0.01 * random.normal(size=25), "yT": x[:, 1] + 0.3 * random.normal(size=25)}
    return Reactor(), [gr.Experiment(MINUTES, {"F": flow}, seen)]


IRREGULAR = np.cumsum([0.0, *(0.2 + 0.9 * np.random.default_rng(42).random(21))])


class Growth(gr.Model):
    """Cells on sugar (Monod), sampled when somebody was there; nobody weighed the inoculum."""

    mu, half = gr.Parameter(0.6, bounds=(0.05, 3.0)), gr.Parameter(0.5)
    X, S = gr.Variable(0.1), gr.Variable(5.0)
    y, z = gr.Output(X, noise=0.03), gr.Output(S, noise=0.05)
    equations = [der(X) == mu * S / (half + S) * X, der(S) == -2.0 * mu * S / (half + S) * X]


def growth() -> tuple[gr.Model, list[gr.Experiment]]:
    random = np.random.default_rng(43)

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        r = 0.45 * x[1] / (0.5 + x[1]) * x[0]
        return np.array([r, -2.0 * r])

    x = follow(rate, [0.15, 5.0], IRREGULAR)
    seen = {"y": x[:, 0] + 0.03 * random.normal(size=22), "z": x[:, 1] + 0.05 * random.normal(size=22)}
    return Growth(), [gr.Experiment(IRREGULAR, {}, seen)]


class Drug(gr.Model):
    """A dose is taken up and cleared; each patient has a clearance, all share the uptake."""

    ka = gr.Parameter(1.0, bounds=(0.1, 10.0))
    ke = gr.Parameter(0.2, bounds=(0.01, 2.0))
    gut, blood = gr.Variable(10.0), gr.Variable(0.0)
    y = gr.Output(blood, noise=0.15)
    equations = [der(gut) == -ka * gut, der(blood) == ka * gut - ke * blood]


def drug() -> tuple[gr.Model, list[gr.Experiment]]:
    """Bateman's closed form; the second patient took half of the dose."""
    random, ka, records = np.random.default_rng(44), 1.5, []
    times = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 14.0])
    for name, dose, ke in (("A", 10.0, 0.15), ("B", 5.0, 0.3)):
        blood = dose * ka / (ka - ke) * (np.exp(-ke * times) - np.exp(-ka * times))
        records.append(
            gr.Experiment(times, {}, {"y": blood + 0.15 * random.normal(size=12)}, name=name, start={"gut": dose})
        )
    return Drug(), records


ENTRIES = [
    Entry(
        "reactor", "an exponential of 8750 K, white noise at two places", reactor, {"E": 8750.0, "k": 1.0},
        frozenset({"white", "everywhere"}),
    ),
    Entry("growth", "irregular samples, an unknown start", growth, {"mu": 0.45, "start(X)": 0.15}),
    Entry(
        "drug", "two experiments, a local unknown, known starts of each", drug, {"ka": 1.5, "ke@A": 0.15, "ke@B": 0.3},
        frozenset({"linear", "local"}), local=("ke",),
    ),
]  # fmt: skip
