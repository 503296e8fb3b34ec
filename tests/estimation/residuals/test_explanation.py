"""Fits that end far from the data say so, whatever their convergence; and sentences that lead on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.linspace(0.0, 10.0, 101)


class Wave(gr.Model):
    """A sine whose frequency has many local minima."""

    f = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -(f**2) * x]


class Shaken(gr.Model):
    """The same with a disturbance that is far too small."""

    f = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=1e-4)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -(f**2) * x + w]


Y = np.cos(2.0 * T) + 0.01 * np.random.default_rng(1).standard_normal(101)


def fitted(model: Any, guess: float, factor: float = 1.0, method: Any = "auto") -> Any:
    return gr.fit(model, gr.Experiment(T, {}, {"y": factor * Y}), ["f"], method, guess={"f": guess})


@pytest.mark.parametrize(
    ("model", "method", "way"),
    [(Wave(), gr.OutputError(), "shooting='multiple'"), (Shaken(), gr.KalmanML(), "gr.multistart"),
     (Shaken(), gr.OutputError(), "gr.KalmanML()")],
)  # fmt: skip
def test_a_far_minimum_is_no_explanation(model: Any, method: Any, way: str) -> None:
    far, near = fitted(model, 4.0, method=method), fitted(model, 1.95, method=method)
    assert abs(float(far["f"]) - 2.0) > 0.5 > 0.01 > abs(float(near["f"]) - 2.0)
    assert far.notes[0].startswith("not an explanation: the residuals of y are ") and way in far.notes[0]
    assert "NOT to an explanation" in far.status or not far.converged
    assert "explanation" not in near.status + " ".join(near.notes)


def test_residuals_a_few_times_the_noise_are_told() -> None:
    model = Wave()
    wrong = gr.fit(model, gr.Experiment(T, {}, {"y": Y + 0.05 * np.sin(9 * T)}), ["f"], guess={"f": 1.95})
    assert wrong.notes[0].startswith("large residuals: the residuals of y are 3.") and "NOT" not in wrong.status


def test_open_noise_has_no_declared_size() -> None:
    class Open(Wave):
        y = gr.Output(Wave.x, noise=None)

    found = gr.fit(Open(), gr.Experiment(T, {}, {"y": 100 * Y}), ["f"], guess={"f": 2.0})
    assert "explanation" not in found.status + " ".join(found.notes)


class Explodes(gr.Model):
    """Fails at some values of a, or, with c = 1, at all."""

    a, c = gr.Parameter(1.0), gr.Parameter(0.0)
    x = gr.Variable(start=1.0)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == a * x**2 + c * (5 * x**2 + 1)]


def test_another_guess_is_offered_where_it_may_help() -> None:
    data = gr.Experiment(np.linspace(0.0, 1.5, 16), {}, {"y": np.ones(16)})
    with pytest.raises(gr.EstimationError, match="Give other values by guess="):
        gr.fit(Explodes(), data, ["a"], guess={"a": 1.0})
    with pytest.raises(gr.EstimationError, match="another guess is not likely to help") as refusal:
        gr.fit(Explodes(c=1.0), data, ["a"], guess={"a": 1.0})
    assert "Give other values" not in str(refusal.value)


def test_a_thousandth_of_a_standard_error_is_converged() -> None:
    from grisaille.optimization import OFFSET_TOLERANCE, ROUNDING_OFFSET

    assert OFFSET_TOLERANCE < ROUNDING_OFFSET <= 1e-3


class Unsaid(Wave):
    """Its noise is open."""

    y = gr.Output(Wave.x)


@pytest.mark.parametrize("loss", ["linear", "soft_l1"])
def test_a_prediction_worse_than_the_mean_is_no_explanation(loss: str) -> None:
    far, near = (fitted(Unsaid(), guess, method=gr.OutputError(loss=loss)) for guess in (6.0, 1.95))
    assert far.quality.r2["y"] < -0.5 and far.notes[0].startswith("not an explanation: y is predicted worse than by ")
    assert "NOT to an explanation" in far.status and "gr.multistart" in far.notes[0]
    assert near.status.startswith("converged: ") and "explanation" not in " ".join(near.notes)


def test_noise_around_a_right_prediction_is_explained() -> None:
    class Still(gr.Model):
        k = gr.Parameter(1.0, bounds=(0.1, 10.0))
        x = gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == -k * x]

    times = np.linspace(0.0, 30.0, 60)
    said = []
    for seed in range(10):
        y = np.exp(-3 * times) + np.random.default_rng(seed).normal(size=60)
        said.append(gr.fit(Still(), gr.Experiment(times, {}, {"y": y}), ["k"]).status)
    assert not any("explanation" in status for status in said)
