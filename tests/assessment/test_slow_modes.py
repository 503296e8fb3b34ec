"""Where the table says that intervals are not calibrated, and where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der, tanh

METHOD = gr.KalmanML()
SQUARE = np.where(np.arange(101) % 20 < 10, 1.0, -1.0)


class Wandering(gr.Model):
    """Ornstein and Uhlenbeck's process about a mean, driven by an input."""

    a, mu, b = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(0.0), gr.Parameter(0.0)
    x = gr.Variable(start=0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == a * (mu - x) + b * u + w]


class Bent(gr.Model):
    """The same with a nonlinear pull, in other units, its offset in the output."""

    a, d = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(0.0)
    x = gr.Variable(start=0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=5e8)
    y = gr.Output(x + d, noise=1e8)
    equations = [der(x) == -a * 1e9 * tanh(x / 1e9) + w]


def record(a: float, n: int, step: float, u: np.ndarray | float = 0.0, scale: float = 1.0) -> gr.Experiment:
    random, f, x = np.random.default_rng(1), np.exp(-a * step), 0.0
    u, seen = np.broadcast_to(u, n), []
    for k in range(n):
        seen.append(x)
        x = f * x + (1 - f) / a * u[k] + 0.5 * np.sqrt((1 - f**2) / (2 * a)) * random.standard_normal()
    y = scale * (np.array(seen) + 0.1 * random.standard_normal(n))
    return gr.Experiment(step * np.arange(n), {"u": u.copy()}, {"y": y}, hold="zoh")


@pytest.mark.parametrize(
    ("model", "data", "names", "mean"),
    [
        (Wandering(), record(0.5, 101, 0.1), ["a", "mu", "scale(w)"], "mu"),
        (Wandering(), record(0.5, 101, 0.1, 1.0), ["a", "b", "scale(w)"], "b"),  # a constant input has one mean
        (Bent(), record(0.5, 101, 0.1, scale=1e9), ["a", "d", "scale(w)"], "d"),
    ],
)
def test_short_records_with_an_estimated_mean_are_told(model, data, names, mean):
    fit = gr.fit(model, data, names, METHOD)
    (note,) = [n for n in fit.intervals().attrs["notes"] if "NOT calibrated" in n]
    assert note.startswith("interval: NOT calibrated for a:") and f"the mean ({mean})" in note and note in str(fit)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (record(0.5, 101, 0.1), ["a", "scale(w)"]),  # the mean is known
        (record(2.0, 401, 0.25), ["a", "mu", "scale(w)"]),  # 200 time constants
        (record(0.5, 101, 0.1, 5 * SQUARE), ["a", "b", "scale(w)"]),  # a gain of an input that varies is no mean
        (record(0.5, 101, 0.1), ["mu", "scale(w)"]),  # the rate is known
    ],
)
def test_others_are_not(data, names):
    fit = gr.fit(Wandering(), data, names, METHOD)
    assert not [n for n in fit.intervals().attrs["notes"] if "calibrated" in n]


def test_a_unit_root_is_told_with_a_known_mean():
    walk = np.cumsum(np.random.default_rng(2).standard_normal(60)) * 0.5
    data = gr.Experiment(np.arange(60.0), {"u": np.zeros(60)}, {"y": walk})
    fit = gr.fit(Wandering(), data, ["a", "scale(w)"], METHOD)
    assert any("near a unit root" in n for n in fit.intervals().attrs["notes"])
