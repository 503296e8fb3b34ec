"""Steps that take a rate to zero, where nothing moves with its constants: held, found again, or the answer."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 4.0, 21)
NOISE = 0.02 * np.random.default_rng(0).normal(size=21)
METHOD = gr.Collocation(criterion="amle", transcription="direct")


class Consumed(gr.Model):
    """A rate with a constant that cannot be told where the rate is zero."""

    k, a, unit = gr.Parameter(0.1, bounds=(0.0, None)), gr.Parameter(0.5, bounds=(0.0, None)), gr.Parameter(1.0)
    x = gr.Variable(start=5.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -k * unit * x / (1 + a * x) + w]


class Branched(gr.Model):
    """A second way that is not there."""

    k, r = gr.Parameter(0.3, bounds=(0.0, None)), gr.Parameter(0.0, bounds=(0.0, None))
    a, d = gr.Parameter(0.5, bounds=(0.0, None)), gr.Parameter(0.0)
    u = gr.Input()
    x = gr.Variable(start=2.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -k * x + r * x**2 / (1 + a * x) + d * u * x + w]


def fitted(model, y, guess):
    inputs = {"u": np.zeros(21)} if isinstance(model, Branched) else {}
    data = gr.Experiment(TIMES, inputs, {"y": y + NOISE})
    return gr.fit(model, data, list(guess), METHOD, guess=guess, progress=False)


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_a_rate_that_leaves_zero_again(unit):
    """Steady decay by 0.15 a time: far from the guess, whose first step leads to k = 0."""
    y = 5.0 - 0.15 * TIMES
    near, far = (fitted(Consumed(unit=unit), y, g) for g in ({"k": 0.2 / unit, "a": 1.0}, {"k": 10.0 / unit, "a": 1.0}))
    assert near.converged and far.converged
    assert float(far["k"]) > 0 and far.estimate.objective == pytest.approx(near.estimate.objective, abs=1e-6)
    assert float(far["k"]) == pytest.approx(float(near["k"]), abs=1e-3 * near["k"].std_error)


def test_a_rate_that_is_zero_leaves_the_others():
    """k and its error are those of the model without the second way."""
    y = 1 / ((0.5 + 0.1 / 0.3) * np.exp(0.3 * TIMES) - 0.1 / 0.3)  # of ẋ = −0.3 x − 0.1 x²: r would be negative
    found, alone = (fitted(Branched(), y, g) for g in ({"k": 0.5, "r": 0.2, "a": 1.0}, {"k": 0.5}))
    assert found.converged and float(found["r"]) == 0.0
    assert float(found["k"]) == pytest.approx(float(alone["k"]), rel=1e-6)
    assert found["k"].std_error == pytest.approx(alone["k"].std_error, rel=1e-4)


def test_what_never_moved_anything_is_held():
    found = fitted(Branched(), 2.0 * np.exp(-0.3 * TIMES), {"k": 1.0, "d": 0.7})
    assert found.converged and float(found["d"]) == 0.7 and np.isinf(found["d"].std_error)
    assert float(found["k"]) == pytest.approx(0.3, abs=0.03)
