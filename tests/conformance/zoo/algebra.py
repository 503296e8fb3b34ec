"""Equations that have no value where nobody is: inputs at zero, a divisor at the values given."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, lowpass, white
from grisaille import der

TIMES = np.linspace(0.0, 12.0, 31)
FLOW = 1.6 + 0.5 * np.sin(TIMES) + 0.1 * np.cos(0.4 * TIMES)


class Orifice(gr.Model):
    """0/0 at F = 0; F ≥ 1 in the data."""

    k = gr.Parameter(0.3, bounds=(0.01, 3.0))
    F, h = gr.Input(), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == F**1.5 / (F + 0.5 * F**0.5) - k * h**2 + w]


def orifice() -> tuple[gr.Model, list[gr.Experiment]]:
    random, F = np.random.default_rng(5), held(TIMES, FLOW)

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return F(t) ** 1.5 / (F(t) + 0.5 * F(t) ** 0.5) - 0.4 * x**2 + w

    h = follow(rate, [1.0], TIMES, white(random, TIMES, 0.02)[:, None])[:, 0]
    return Orifice(), [gr.Experiment(TIMES, {"F": FLOW}, {"y": h + 0.02 * random.normal(size=len(TIMES))})]


class Divisor(gr.Model):
    """Tearing would divide by b, which is zero; i₂ then follows from the second equation alone."""

    k, b = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Parameter(0.0)
    F, x, i1, i2 = gr.Input(), gr.Variable(1.0), gr.Variable(), gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.03)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == i1 - k * x + w, F - x == i1 + 0.1 * i1**3 + b * i2, i1 + i2**3 + i2 == F]


def divisor() -> tuple[gr.Model, list[gr.Experiment]]:
    random, F = np.random.default_rng(6), held(TIMES, FLOW)

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        i = F(t) - x
        for _ in range(8):
            i = i - (i + 0.1 * i**3 - (F(t) - x)) / (1 + 0.3 * i**2)
        return i - 0.4 * x + w

    x = follow(rate, [1.0], TIMES, lowpass(random, TIMES, 2.0, 0.03)[:, None])[:, 0]
    return Divisor(), [gr.Experiment(TIMES, {"F": FLOW}, {"y": x + 0.02 * random.normal(size=len(TIMES))})]


class Throttle(gr.Model):
    """White noise beside an equation that stays implicit."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    F, x, i = gr.Input(), gr.Variable(1.0), gr.Variable()
    w = gr.Disturbance(gr.spectra.white(), scale=0.03)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == i - k * x + w, F - x == i + 0.1 * i**3]


def throttle() -> tuple[gr.Model, list[gr.Experiment]]:
    random, F = np.random.default_rng(7), held(TIMES, FLOW)

    def rate(t: float, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        i = F(t) - x
        for _ in range(8):
            i = i - (i + 0.1 * i**3 - (F(t) - x)) / (1 + 0.3 * i**2)
        return i - 0.4 * x + w

    x = follow(rate, [1.0], TIMES, white(random, TIMES, 0.03)[:, None])[:, 0]
    return Throttle(), [gr.Experiment(TIMES, {"F": FLOW}, {"y": x + 0.02 * random.normal(size=len(TIMES))})]


ENTRIES = [
    Entry(
        "orifice", "0/0 where the input is zero, and it never is", orifice, {"k": 0.4},
        frozenset({"white", "everywhere"}),
    ),
    Entry(
        "divisor", "a divisor of the tearing that vanishes at the values given", divisor, {"k": 0.4},
        frozenset({"coloured"}),
    ),
    Entry(
        "throttle", "white noise beside an implicit equation", throttle, {"k": 0.4}, frozenset({"white"})
    ),
]  # fmt: skip
