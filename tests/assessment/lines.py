"""Small static models whose fits have closed forms, and data for them."""

from __future__ import annotations

import numpy as np

import grisaille as gr

METHOD = gr.OutputError()


class Line(gr.Model):
    """y = p + q x, noise unknown."""

    p, q = gr.Parameter(0.0), gr.Parameter(0.0)
    x = gr.Input()
    y = gr.Output(p + q * x)


class KnownLine(Line):
    """The same with known noise."""

    y = gr.Output(Line.p + Line.q * Line.x, noise=0.1)


class Saturation(gr.Model):
    """y = a x / (b + x): a and b cannot be told apart where x is small."""

    a, b = gr.Parameter(1.0, bounds=(0.0, 1e9)), gr.Parameter(1.0, bounds=(1e-3, 1e6))
    x = gr.Input()
    y = gr.Output(a * x / (b + x))


X = np.linspace(-1, 2, 12)


def line_experiment(seed: int = 3, noise: float = 0.1, x: np.ndarray = X) -> gr.Experiment:
    y = 1.5 - 0.4 * x + noise * np.random.default_rng(seed).standard_normal(len(x))
    return gr.Experiment(inputs={"x": x}, outputs={"y": y})


def line_fit(model: type[gr.Model] = Line, seed: int = 3, names: tuple[str, ...] = ("p", "q"), **options):
    return gr.fit(model(), line_experiment(seed), list(names), METHOD, **options)
