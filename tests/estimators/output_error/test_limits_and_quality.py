"""Data most of which are beyond a limit of detection: a right model explains them, and R² says so."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der


class Assay(gr.Model):
    """A decay that is seen above a limit alone."""

    k, s = gr.Parameter(0.4, bounds=(0.01, 3.0)), gr.Parameter(0.4, bounds=(1e-3, 10.0))
    x = gr.Variable(3.0)
    y = gr.Output(x, distribution=gr.laws.Censored(below=2.0, of=gr.laws.Normal(std=s)))
    equations = [der(x) == -k * x]


def test_samples_are_compared_with_what_the_law_records() -> None:
    times = np.linspace(0.0, 8.0, 80)
    drawn = 3 * np.exp(-0.3 * times) + 0.3 * np.random.default_rng(2).standard_normal(80)
    fit = gr.fit(Assay(), gr.Experiment(times, outputs={"y": np.maximum(drawn, 2.0)}), ["k", "s"], gr.OutputError())
    k, s = fit.estimate.theta
    mean, normal = 3 * np.exp(-k * times), np.random.default_rng(5).standard_normal((20_000, 1))
    recorded = np.maximum(mean + s * normal, 2.0).mean(axis=0)
    left = np.maximum(drawn, 2.0) - recorded
    quality = fit.quality.loc["y"]
    assert fit.status.startswith("converged:") and np.mean(drawn <= 2) > 0.7
    assert abs(quality["rms"] - np.sqrt(np.mean(left**2))) < 0.003
    assert quality["r2"] > 0.7
