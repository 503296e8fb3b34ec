"""Small models for studies: one that is linear regression, one with two minima, one with a hole in its domain."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der


class Line(gr.Model):
    """Linear regression: everything has a closed form."""

    p, q = gr.Parameter(1.5), gr.Parameter(-0.4)
    x = gr.Input()
    y = gr.Output(p + q * x, noise=0.1)


class Valleys(gr.Model):
    """y = p² − p/20 for data near 1: minima near p = 1 and p = −1 that differ a little."""

    p = gr.Parameter(0.5, bounds=(-3.0, 3.0))
    x = gr.Input()
    y = gr.Output(p**2 * x - 0.05 * p * x**2)


class Decay(gr.Model):
    """x' = −a x from x(0) = 1."""

    a = gr.Parameter(0.5, bounds=(0.0, 4.0))
    x = gr.Variable(1.0)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -a * x]


class Rooted(gr.Model):
    """Has no outputs for negative p."""

    p = gr.Parameter(1.0, bounds=(-4.0, 4.0))
    x = gr.Input()
    y = gr.Output(gr.sqrt(p) * x, noise=0.1)


X = np.linspace(-1.0, 2.0, 12)
PLAN = gr.Experiment(inputs={"x": X}, outputs={"y": np.zeros(12)})
METHOD = gr.OutputError()
SERIAL = {"method": METHOD, "executor": "serial"}


def line_study(runs: int, **options: object) -> object:
    return gr.monte_carlo(Line(), PLAN, ["p", "q"], runs=runs, seed=3, **{**SERIAL, **options})


def valleys_data() -> gr.Experiment:
    noise = 0.01 * np.sin(37.0 * np.arange(12))
    return gr.Experiment(inputs={"x": X}, outputs={"y": X - 0.05 * X**2 + noise})
