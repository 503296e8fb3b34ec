"""Tanks: the plainest models of all."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry
from conformance.integration import follow, held, white
from grisaille import der

TIMES = np.linspace(0.0, 12.0, 31)
INFLOW = np.where(TIMES % 6 < 3, 1.2, 0.3)


class Torricelli(gr.Model):
    """A hole in the bottom."""

    A = gr.Parameter(2.0, "m2")
    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    h = gr.Variable(1.0, "m")
    q = gr.Input("m3/s")
    y = gr.Output(h, noise=0.01, unit="m")
    equations = [A * der(h) == q - k * gr.sqrt(h)]


def torricelli() -> tuple[gr.Model, list[gr.Experiment]]:
    random, q = np.random.default_rng(1), held(TIMES, INFLOW)
    h = follow(lambda t, x, w: (q(t) - 0.7 * np.sqrt(x)) / 2.0, [1.0], TIMES)[:, 0]
    return Torricelli(), [gr.Experiment(TIMES, {"q": INFLOW}, {"y": h + 0.01 * random.normal(size=len(TIMES))})]


class Cascade(gr.Model):
    """Two tanks of which it rains into the first."""

    a, b = gr.Parameter(0.5, bounds=(0.05, 5.0)), gr.Parameter(0.5, bounds=(0.05, 5.0))
    h1, h2 = gr.Variable(0.5), gr.Variable(0.2)
    q = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.03)
    y1, y2 = gr.Output(h1, noise=0.02), gr.Output(h2, noise=0.02)
    equations = [der(h1) == q - a * h1 + w, der(h2) == a * h1 - b * h2]


def cascade() -> tuple[gr.Model, list[gr.Experiment]]:
    """The second level is measured every third time, and neither sensor all the time."""
    random, q = np.random.default_rng(2), held(TIMES, INFLOW)
    w = white(random, TIMES, 0.03)[:, None]
    x = follow(lambda t, x, w: np.array([q(t) - 0.8 * x[0] + w[0], 0.8 * x[0] - 0.4 * x[1]]), [0.5, 0.2], TIMES, w)
    seen = x + 0.02 * random.normal(size=x.shape)
    seen[10:14, 0] = seen[6, 1] = np.nan
    return Cascade(), [gr.Experiment(TIMES, {"q": INFLOW}, {"y1": seen[:, 0], "y2": (TIMES[::3], seen[::3, 1])})]


ENTRIES = [
    Entry("torricelli", "a nonlinear tank, undisturbed, with a held input", torricelli, {"k": 0.7}),
    Entry(
        "cascade", "linear, white noise at one place; two rates, gaps", cascade, {"a": 0.8, "b": 0.4},
        frozenset({"white", "linear"}),
    ),
]  # fmt: skip
