"""Data at the edge of what a law says: most of them beyond a limit of detection, or without what the law adds."""

from __future__ import annotations

import re

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("law", "values", "becomes"),
    [
        (lambda n: gr.laws.NegativeBinomial(size=n), np.round(np.linspace(20.0, 40.0, 50)), r"gr\.laws\.Poisson\(\)"),
        (lambda n: gr.laws.Student(df=n, scale=1.0), np.linspace(20.0, 40.0, 50) + np.cos(np.arange(50.0)), "normal"),
    ],
)
def test_numbers_that_grow_without_end_are_told(law: object, values: np.ndarray, becomes: str) -> None:
    """Before, thousands of steps towards infinity."""

    class Line(gr.Model):
        b, n = gr.Parameter(25.0), gr.Parameter(5.0)
        u, x = gr.Input(), gr.Variable()
        y = gr.Output(x, distribution=law(n))  # type: ignore[operator]
        equations = [x == b * u]

    data = gr.Experiment(inputs={"u": np.linspace(1.0, 2.0, 50)}, outputs={"y": values})
    fit = gr.fit(Line(), data, ["b", "n"], gr.OutputError())
    assert not fit.converged and fit.estimate.evaluations < 300
    assert pytest.approx(20.0, rel=0.05) == fit["b"]
    assert re.search(rf"grows with n, .* without end: 'y' has nothing of what .* {becomes}", fit.status)


class Counts(gr.Model):
    """A decay onto a background, with least absolute errors."""

    k, rest = gr.Parameter(0.3, bounds=(0.01, 3.0)), gr.Parameter(5.0, bounds=(0.01, 100.0))
    s = gr.Parameter(1.3, bounds=(1e-4, 1e4))
    x = gr.Variable(60.0)
    y = gr.Output(x + rest, distribution=gr.laws.Laplace(scale=s))
    equations = [der(x) == -k * x]


@pytest.mark.parametrize("seed", [2, 6])
def test_kinks_do_not_keep_a_fit_from_having_converged(seed: int) -> None:
    """Slopes at rounded kinks said 0.002 standard errors where the least sum of absolute errors was 1e-5 away."""
    times = np.linspace(0.0, 10.0, 60)
    drawn = 60 * np.exp(-0.35 * times) + 4 + np.random.default_rng([0, seed]).laplace(size=60)
    data = gr.Experiment(times, outputs={"y": drawn})
    fit = gr.fit(Counts(), data, ["k", "rest", "s"], gr.OutputError())
    assert fit.converged
    for step in 1e-3 * np.vstack([np.eye(2), -np.eye(2)]):
        k, rest = fit.estimate.theta[:2] + step * np.array(fit.std_errors)[:2]
        assert np.abs(drawn - 60 * np.exp(-k * times) - rest).mean() >= fit.estimate.theta[2] * (1 - 1e-7)
    assert not gr.fit(Counts(), data, ["k", "rest", "s"], gr.OutputError(max_evaluations=12)).converged
