"""Records of a bootstrap begin where the filter says that they may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.simulation import pose
from grisaille.simulation.ensembles import onto_constraints
from grisaille.study.bootstrap_task import bootstrap_task

T = 0.2 * np.arange(20)
COUNT = 200


class Decay(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.001, 20.0))
    x = gr.Variable(2.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x + w]


class Cubic(Decay):
    """A decay that is not linear."""

    equations = [der(Decay.x) == -Decay.k * Decay.x**3 + Decay.w]


class Cart(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.001, 20.0))
    x, v = gr.Variable(0.0), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y, s = gr.Output(x, noise=0.05), gr.Output(v, noise=0.05)
    equations = [der(x) == v, der(v) == -k * x + w]


def fitted(model: gr.Model, start: float, covariance: Any, **options: Any) -> gr.Fit:
    rng = np.random.default_rng(1)
    outputs = {"y": start * np.exp(-0.5 * T) + 0.05 * rng.normal(size=len(T))}
    if isinstance(model, Cart):
        outputs = {"y": np.sin(T) + start + 0.05 * rng.normal(size=20), "s": np.cos(T) + 0.05 * rng.normal(size=20)}
    method = gr.KalmanML(initial_covariance=covariance, **options)
    return gr.fit(model, gr.Experiment(T, outputs=outputs), ["k"], method, progress=False)


def first_samples(fit: gr.Fit, output: str = "y", count: int = COUNT) -> np.ndarray:
    """The first values of drawn records; no record is fitted."""
    variation: Any = bootstrap_task(fit, "parametric", None, 0).variation
    return np.array([variation.data_set(fit.experiments, seed)[0][output][0] for seed in range(count)])


def check_law(drawn: np.ndarray, mean: float, std: float) -> None:
    """Mean and standard deviation within 4.5 of their own standard errors."""
    assert abs(drawn.mean() - mean) < 4.5 * std / np.sqrt(len(drawn))
    assert abs(drawn.std(ddof=1) / std - 1) < 4.5 / np.sqrt(2 * len(drawn))


def test_given_variances_are_drawn() -> None:
    fit = fitted(Decay(), 4.0, {"x": 25.0})
    check_law(first_samples(fit), 2.0, np.sqrt(25.0 + 0.05**2))


def test_what_builds_up_over_the_first_interval_is_drawn() -> None:
    fit = fitted(Decay(), 2.0, "first-sample")
    k = float(fit["k"])
    built = 0.05**2 * (1 - np.exp(-2 * k * 0.2)) / (2 * k)
    check_law(first_samples(fit), 2.0, np.sqrt(built + 0.05**2))


def test_nonlinear_filters_draw_their_start_too() -> None:
    fit = fitted(Cubic(), 2.0, {"x": 0.25}, substeps=1)
    assert 0.15 < first_samples(fit, count=8).std() < 1.2  # 0.05 from a start that is known
    task = bootstrap_task(fit, "parametric", None, 0)
    assert "initial_covariance={'x': 0.25}" in task.variation.notes[0]  # type: ignore[attr-defined]


def test_flat_starts_begin_at_the_smoothed_state_and_the_study_says_so() -> None:
    fit = fitted(Cart(), 3.0, {"x": np.inf, "v": 4.0})
    begun = fit.states(names=["x"])["x"].sel(given="smoothed", statistic="mean").values[0]
    assert abs(begun - 3.0) < 0.2
    check_law(first_samples(fit, "y"), begun, 0.05)
    check_law(first_samples(fit, "s"), 1.0, np.sqrt(4.0 + 0.05**2))
    study = gr.bootstrap(fit, runs=2, executor="serial")
    assert "begin where the smoother of the fit does" in study.notes[0] and study.notes[0] in str(study)


def test_experiments_with_starts_of_their_own_are_drawn() -> None:
    data = [gr.Experiment(T, outputs={"y": a * np.exp(-0.5 * T)}, name=n) for n, a in (("A", 4.0), ("B", 9.0))]
    fit = gr.fit(Decay(), data, ["k", "start(x)"], gr.KalmanML(initial_covariance={"x": 0.01}), progress=False)
    variation: Any = bootstrap_task(fit, "parametric", None, 0).variation
    drawn = np.array([[d["y"][0] for d in variation.data_set(fit.experiments, seed)] for seed in range(COUNT)])
    for k, name in enumerate("AB"):
        check_law(drawn[:, k], float(fit[f"start(x)@{name}"]), np.sqrt(0.01 + 0.05**2))


def test_starts_lie_on_hidden_constraints() -> None:
    class Pendulum(gr.Model):
        x, y = gr.Variable(0.6, fixed=True), gr.Variable(-0.8)
        u, v = gr.Variable(0.3, fixed=True), gr.Variable(0.0)
        tension = gr.Variable(1.0)
        equations = [
            der(x) == u, der(y) == v, der(u) == -tension * x, der(v) == -tension * y - 9.81, x**2 + y**2 == 1.0,
        ]  # fmt: skip

    point = pose(Pendulum(), np.linspace(0.0, 1.0, 3), {}, {}, {}, hold=None, sensitivities=())
    tangent = np.array([[0.8, 0.6, 0.0, 0.0]])
    moved = onto_constraints(point, point.start.x + 0.3 * tangent, point.start.z)[0]
    assert moved[0] ** 2 + moved[1] ** 2 == pytest.approx(1.0, abs=1e-12)
    assert moved[:2] @ moved[2:] == pytest.approx(0.0, abs=1e-12) and moved[0] > 0.75


def test_starts_that_hang_together_with_disturbances_are_refused_by_nonlinear_filters() -> None:
    class Coloured(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.001, 20.0))
        x = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.3)
        y = gr.Output(x + 0.1 * x**2, noise=0.05)
        equations = [der(x) == -k * x + w]

    fit = fitted(Coloured(), 1.0, "stationary", substeps=1)
    with pytest.raises(gr.EstimationError, match="ties states of the plant to disturbances"):
        gr.bootstrap(fit, runs=2, executor="serial")
