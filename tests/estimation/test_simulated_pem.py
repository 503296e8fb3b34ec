"""Simulated prediction errors: derivatives, agreement on linear models, and the bias that output error has."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimation.fitting import build_problem
from grisaille.estimation.mean_criterion import MeanCriterion

pytestmark = pytest.mark.compiled
TIMES = np.linspace(0.0, 40.0, 201)


class Squared(gr.Model):
    """x' = −a x + u + w²: the disturbance has a mean effect that output error cannot see."""

    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=1.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + u + 0.8 * w**2]


class Drifting(gr.Model):
    """x' = −a x + b u + w: linear, so the mean is the undisturbed course."""

    a, b = gr.Parameter(0.8, bounds=(0.1, 5.0)), gr.Parameter(1.0, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.3)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == -a * x + b * u + w]


INPUT = 1.0 + np.sign(np.sin(0.5 * TIMES))


def record(model: gr.Model, seed: int) -> gr.Experiment:
    run = gr.simulate(model, TIMES, inputs={"u": INPUT}, realizations=1, seed=seed, noise=True)
    return gr.Experiment(TIMES, {"u": INPUT}, {"y": run.y.values[0]})


def criterion(match: str, corrected: bool = True) -> MeanCriterion:
    method = gr.SimulatedPEM(realizations=8, match=match)
    problem = build_problem(Squared(), record(Squared(a=1.2), 3), ["a"], method)
    runners = [method._runner(problem, 0)]
    made = MeanCriterion(problem, runners, 8, corrected=corrected, with_variance=match == "mean-variance")
    made.update_levels(made.at(problem.guess))
    return made


@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_gradient_against_central_differences(match: str) -> None:
    made = criterion(match)
    at = np.array([1.0])
    ends = [made.at(at + s * 1e-4, sensitive=False).objective for s in (1, -1)]
    assert made.at(at).gradient[0] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)


def test_correction_is_the_variance_of_the_mean() -> None:
    with_it, without = criterion("mean"), criterion("mean", corrected=False)
    with_it.levels = without.levels = {"y": 1.0}
    a, b = with_it.at(np.array([1.0])), without.at(np.array([1.0]))
    assert b.objective - a.objective == pytest.approx(0.5 * a.spread.sum() / 8, rel=1e-10)


def test_linear_model_gives_the_output_error_estimate() -> None:
    """Antithetic pairs make the mean exact, so the predictor is the undisturbed simulation."""
    data = record(Drifting(a=1.2, b=1.5), 7)
    pem = gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=8, antithetic=True, correction=False))
    error = gr.fit(Drifting(), data, ["a", "b"], gr.OutputError(compiled=False))
    assert pem.converged
    assert np.allclose(pem.estimate.theta, error.estimate.theta, rtol=1e-3)
    assert (pem.std_errors > 1.5 * error.std_errors).all(), "output error takes correlated errors for independent ones"


def test_squared_disturbance_biases_output_error_only() -> None:
    found = []
    for seed in range(12):
        data = record(Squared(a=1.2), seed)
        pem = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(realizations=64))
        found.append((float(pem["a"]), float(gr.fit(Squared(), data, ["a"], gr.OutputError())["a"])))
    pem_mean, error_mean = np.mean(found, axis=0)
    spread = np.std(found, axis=0)[0]
    assert abs(pem_mean - 1.2) < 3 * spread / np.sqrt(12)
    assert abs(error_mean - 1.2) > 8 * abs(pem_mean - 1.2)


def test_grid_and_gauss_newton_agree() -> None:
    data = record(Squared(a=1.2), 1)
    options = {"realizations": 16, "seed": 1}
    newton = gr.fit(Squared(), data, ["a"], gr.SimulatedPEM(**options))
    grid = gr.fit(
        Squared(), data, ["a"], gr.SimulatedPEM(search="grid", points=21, **options), bounds={"a": (0.8, 1.8)}
    )
    assert abs(float(newton["a"]) - float(grid["a"])) <= 0.05


def test_streams_of_data_and_model_differ() -> None:
    """With the same seed the model must not recognise its own noise: the errors stay as large as the disturbance."""
    data = record(Drifting(a=1.2, b=1.5), 1)
    fit = gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=2, seed=1))
    assert fit.residuals()["residual"].std() > 0.05


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"realizations": 1}, "whole number from 2"),
        ({"realizations": "many"}, "whole number from 2"),
        ({"search": "genetic"}, "must be one of"),
        ({"match": "median"}, "must be one of"),
    ],
)
def test_mistakes_in_options(options, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.SimulatedPEM(**options)


def test_model_without_disturbances_is_refused() -> None:
    class Quiet(gr.Model):
        a = gr.Parameter(1.0)
        x = gr.Variable(1.0)
        y = gr.Output(x)
        equations = [der(x) == -a * x]

    with pytest.raises(EstimationError, match=r"use gr.OutputError\(\)"):
        gr.fit(Quiet(), gr.Experiment(TIMES, outputs={"y": np.exp(-TIMES)}), ["a"], gr.SimulatedPEM(realizations=4))
