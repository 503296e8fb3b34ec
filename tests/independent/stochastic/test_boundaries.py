"""Noise that vanishes with a power of the state, near the boundary: closed forms, and NumPy in steps of a millisecond.

Margins are from the laws themselves, not from samples: a single path that is thrown out would widen its own margin.
"""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

COUNT, DEVIATIONS, STEPS, SPAN = 3000, 4.5, 0.01, 5.0


class Reverting(gr.Model):
    """dx = κ(m − x) dt + s√x dW; zero is reached where 2κm < s²."""

    kappa, m, s = gr.Parameter(1.0), gr.Parameter(1.0), gr.Parameter(1.0)
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=s)
    equations = [der(x) == kappa * (m - x) + gr.sqrt(gr.maximum(x, 0.0)) * w]


def variance(kappa: float) -> float:
    """Of x at the end, from x = m = 1 with s = 1."""
    e = np.exp(-kappa * SPAN)
    return (e - e**2) / kappa + (1 - e) ** 2 / (2 * kappa)


@pytest.mark.parametrize("interval", [0.05, 0.5])
@pytest.mark.parametrize(
    ("kappa", "method", "size"),
    [(1.0, "auto", 1.0), (0.7, "auto", 1.0), (0.6, "auto", 1e-9), (0.6, "auto", 1e9), (0.4, "lamperti", 1.0),
     (0.4, "auto", 1.0)],
)  # fmt: skip
def test_mean_and_variance_near_the_boundary(kappa, method, size, interval):
    times = np.linspace(0.0, SPAN, round(SPAN / interval) + 1)
    given = {"parameters": {"kappa": kappa, "m": size, "s": np.sqrt(size)}, "start": {"x": size}}
    run = gr.simulate(Reverting(), times, realizations=COUNT, seed=1, method=method, **given)
    assert run.attrs["error_estimate"] <= 1.0
    x, v = run.x.values[:, -1] / size, variance(kappa)
    assert abs(x.mean() - 1.0) < DEVIATIONS * np.sqrt(v / COUNT) + 2 * STEPS * np.sqrt(v)
    # a gamma variable of shape 2κ has the kurtosis 3 + 3/κ
    assert abs(x.var() / v - 1.0) < DEVIATIONS * np.sqrt((2 + 3 / kappa) / COUNT) + 4 * STEPS
    assert x.max() < 30.0


class Elastic(gr.Model):
    """dx = κ(1 − x) dt + x^¾ dW: zero is not reached, but approached."""

    kappa = gr.Parameter(0.3)
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white())
    equations = [der(x) == kappa * (1 - x) + x**0.75 * w]


@pytest.mark.parametrize("interval", [0.05, 0.5])
def test_another_power(interval):
    times = np.linspace(0.0, SPAN, round(SPAN / interval) + 1)
    x = gr.simulate(Elastic(), times, realizations=COUNT, seed=2).x.values[:, -1]
    random, other, h = np.random.default_rng(1), np.ones(COUNT), 1e-3
    for _ in range(round(SPAN / h)):
        held = np.maximum(other, 0.0)
        other = other + h * 0.3 * (1 - held) + held**0.75 * np.sqrt(h) * random.standard_normal(COUNT)
    for power in (0.5, 1.0):
        ours, theirs = x**power, np.maximum(other, 0.0) ** power
        margin = theirs.std() * (DEVIATIONS * np.sqrt(2 / COUNT) + 2 * STEPS)
        assert abs(ours.mean() - theirs.mean()) < margin
    assert x.min() > 0 and x.max() < 10 * other.max()
