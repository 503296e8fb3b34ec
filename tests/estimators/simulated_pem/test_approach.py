"""Guesses far from the data: variances are matched from where the mean fits, not from where they explain it away."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES, KNOTS, TRUTH = np.arange(0.0, 16.0, 0.2), [0.0, 1.0, 3.0], (0.6, 1.1, 1.7)
METHOD = gr.SimulatedPEM(realizations=32, match="mean-variance")


class Rubbed(gr.Model):
    """A friction that may fall with speed: paths part there, and their variance explains every error."""

    F = gr.Parameter([0.8, 1.0, 1.4], size=3)
    v = gr.Variable(2.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.03)
    y = gr.Output(v, noise=0.02)
    equations = [der(v) == u - gr.table(v, KNOTS, F, outside="extend") + w]


@pytest.fixture(scope="module")
def record() -> gr.Experiment:
    """Euler's steps of 2 ms."""
    random, v, seen, h = np.random.default_rng(5), 2.5, [], 2e-3
    u = np.where(TIMES % 8 < 4, 0.65, 1.6)
    for push in u:
        seen.append(v)
        for z in random.normal(size=100) * 0.03 * np.sqrt(h):
            v += h * (push - np.interp(v, KNOTS, TRUTH)) + z
    return gr.Experiment(TIMES, {"u": u}, {"y": np.array(seen) + 0.02 * random.normal(size=len(TIMES))})


@pytest.mark.parametrize("guess", [(0.8, 1.0, 1.4), (1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (2.0, 1.0, 1.0)])
def test_the_minimum_is_that_of_the_truth(record: gr.Experiment, guess: tuple[float, ...]) -> None:
    fit = gr.fit(Rubbed(), record, ["F"], METHOD, guess={"F": list(guess)}, progress=False)
    assert fit.converged and fit.estimate.evaluations < 20
    for name, truth in zip(fit.names, TRUTH, strict=True):
        assert abs(float(fit[name]) - truth) < 2.5 * fit[name].std_error, name
        assert fit[name].std_error < 0.1


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_what_variances_alone_tell_waits(scale: float) -> None:
    """A scale is found from a far guess of a rate, in any unit, as from the truth."""

    class Scaled(gr.Model):
        k = gr.Parameter(1.0, bounds=(0.0, None))
        x = gr.Variable(scale)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2 * scale)
        y = gr.Output(x, noise=0.05 * scale)
        equations = [der(x) == scale - k * x + w]

    model, t = Scaled(k=0.3), np.linspace(0.0, 20.0, 101)
    run = gr.simulate(model, t, seed=3, realizations=1)
    y = np.ravel(run["x"]) + 0.05 * scale * np.random.default_rng(0).normal(size=101)
    data, near = gr.Experiment(t, {}, {"y": y}), {"k": 0.3, "scale(w)": 0.2 * scale}
    fits = [gr.fit(model, data, list(near), METHOD, guess=g, progress=False) for g in (near, {**near, "k": 3.0})]
    assert all(f.converged for f in fits)
    for name in near:
        a, b = (float(f[name]) for f in fits)
        assert abs(a - b) < 0.5 * fits[0][name].std_error, name
