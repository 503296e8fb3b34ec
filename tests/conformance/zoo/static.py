"""Models without time."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from conformance.entry import Entry


class Michaelis(gr.Model):
    """The rate of an enzyme."""

    top = gr.Parameter(150.0, bounds=(1.0, 1e4))
    half = gr.Parameter(0.1, bounds=(1e-4, 10.0))
    c = gr.Input()
    rate = gr.Output(top * c / (half + c), noise=5.0)
    equations = []


def michaelis() -> tuple[gr.Model, list[gr.Experiment]]:
    random, c = np.random.default_rng(4), np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.1], 3)
    rate = 200.0 * c / (0.06 + c) + 5.0 * random.normal(size=len(c))
    return Michaelis(), [gr.Experiment(None, {"c": c}, {"rate": rate})]


ENTRIES = [
    Entry("michaelis", "an enzyme, static", michaelis, {"top": 200.0, "half": 0.06}, frozenset({"static"})),
]
