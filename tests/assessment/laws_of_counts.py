"""A static model of counts with laws in its outputs, and data drawn for it by NumPy alone."""

from __future__ import annotations

import numpy as np

import grisaille as gr

T = np.linspace(0.0, 6.0, 60)


class Counts(gr.Model):
    """Counts that decay, and a normal output beside them."""

    t = gr.Input()
    k, b = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Parameter(5.0, bounds=(0.1, 100.0))
    y = gr.Output(b * gr.exp(-k * t), distribution=gr.laws.Poisson())
    z = gr.Output(k * t, noise=0.1)


class Heavy(gr.Model):
    """A decay with heavy tails, whose scale is estimated."""

    t = gr.Input()
    k, b = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Parameter(5.0, bounds=(0.1, 100.0))
    scale = gr.Parameter(0.4, bounds=(1e-3, 10.0))
    y = gr.Output(b * gr.exp(-k * t), distribution=gr.laws.Student(df=4.0, scale=scale))


MEAN = 5.0 * np.exp(-0.3 * T)


def counts(seed: int, size: float = np.inf, name: str = "A") -> gr.Experiment:
    """Return a record; ``size`` is that of a negative binomial law, infinite of Poisson's."""
    random = np.random.default_rng(seed)
    y = random.poisson(MEAN) if np.isinf(size) else random.negative_binomial(size, size / (size + MEAN))
    z = 0.3 * T + 0.1 * random.standard_normal(len(T))
    return gr.Experiment(inputs={"t": T}, outputs={"y": y.astype(float), "z": z}, name=name)


def heavy(seed: int, name: str = "A") -> gr.Experiment:
    y = MEAN + 0.4 * np.random.default_rng(seed).standard_t(4.0, len(T))
    return gr.Experiment(inputs={"t": T}, outputs={"y": y}, name=name)
