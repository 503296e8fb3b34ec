"""What estimators declare about themselves is what they do, and what the documentation says."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimation import Estimator
from grisaille.estimation.abilities import ABILITIES, TESTS, abilities

ROOT = Path(__file__).resolve().parents[3]
RNG, SHARED = np.random.default_rng(2), np.array([[0.02, 0.0], [0.01, 0.02]])


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("abilities", ROOT / "scripts" / "abilities.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()
CALLS = [*(f"gr.{type(m).__name__}()" for m in SCRIPT.METHODS), *SCRIPT.VARIANTS]


class Tank(gr.Model):
    """White noise in its only equation, so that every estimator can be asked."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    q = gr.Input()
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h + w]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    """The exact discretisation of the tank with k = 0.5, in NumPy."""
    rng, step = np.random.default_rng(3), 0.5
    times = np.arange(0.0, 15.0, step)
    flow, level = np.where(times % 6 < 3, 1.0, 0.0), [1.0]
    decay, spread = np.exp(-0.5 * step), 0.05 * np.sqrt(1 - np.exp(-step))
    for q in flow[:-1]:
        level.append(decay * level[-1] + (1 - decay) / 0.5 * q + spread * rng.standard_normal())
    return gr.Experiment(times, {"q": flow}, {"y": level + 0.02 * rng.standard_normal(len(times))}, name="tank")


class Counted(gr.Model):
    """An output with a law of its own."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    y = gr.Output(40 * h, distribution=gr.laws.Poisson())
    equations = [der(h) == -k * h]


class Common(gr.Model):
    """Two outputs with a common reference, whose covariance is open."""

    k = gr.Parameter(0.4, bounds=(0.05, 5.0))
    h = gr.Variable(1.0)
    y, z = gr.Output(h), gr.Output(2 * h)
    equations = [der(h) == -k * h]

    def noise_covariance(self) -> str:
        return "full"


T = np.linspace(0.0, 4.0, 30)
MEASURED = {
    Counted: gr.Experiment(T, {}, {"y": np.random.default_rng(1).poisson(40 * np.exp(-0.5 * T)).astype(float)}),
    Common: gr.Experiment(
        T, {}, dict(zip("yz", np.outer([1, 2], np.exp(-0.5 * T)) + SHARED @ RNG.standard_normal((2, 30)), strict=True))
    ),
}


@pytest.fixture(scope="module", params=CALLS)
def method(request: pytest.FixtureRequest) -> Estimator:
    made: Estimator = eval(request.param, {"gr": gr})
    if isinstance(made, gr.ParticleML):
        return gr.ParticleML(particles=64)
    return gr.SimulatedPEM(realizations=24, match=made.match) if isinstance(made, gr.SimulatedPEM) else made


@pytest.fixture(scope="module")
def fit(method: Estimator, data: gr.Experiment) -> gr.Fit:
    return gr.fit(Tank(), data, ["k"], method)


ASKED: dict[str, Callable[[gr.Fit], Any]] = {
    "information criteria": lambda fit: fit.aic,
    "log-density": lambda fit: gr.log_density(fit.initial_model, fit.experiments, fit.names, fit.method),
    "posterior": lambda fit: fit.posterior(5, 1, tune=5, executor="serial"),
    "likelihood-ratio tests": lambda fit: fit.test({"k": 0.45}),
    "profiles, regions": lambda fit: fit.profile("k", points=2),
    "profile intervals": lambda fit: fit.intervals(method="profile"),
    "bootstrap intervals": lambda fit: fit.intervals(0.8, method="bootstrap", samples=20),
    "parametric bootstrap": lambda fit: gr.bootstrap(fit, 1, executor="serial"),
    "residual bootstrap": lambda fit: gr.bootstrap(fit, 1, kind="residual", executor="serial"),
    "states with bands": lambda fit: fit.states(),
    "prediction k samples ahead": lambda fit: fit.predict(horizon=2),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_declared_is_what_happens(fit: gr.Fit, what: str) -> None:
    declared = abilities(fit.method)[what]
    if declared.word != "no":
        ASKED[what](fit)
        return
    with pytest.raises(EstimationError) as refused:
        ASKED[what](fit)
    assert declared.why in str(refused.value)


@pytest.mark.parametrize(
    ("level", "what"), [("scale(w)", "strength of a disturbance"), ("noise(y)", "level of measurement noise")]
)
def test_levels_are_estimated_where_declared(method: Estimator, data: gr.Experiment, level: str, what: str) -> None:
    declared = abilities(method)[what].word
    if declared == "yes":
        assert 0 < gr.fit(Tank(), data, ["k", level], method)[level] < 1
        return
    with pytest.raises(
        EstimationError, match=r"scale\(w\)|noise\(y\)"
    ):  # the mean of a linear model moves with neither
        gr.fit(Tank(), data, ["k", level], method)


@pytest.mark.parametrize(
    ("model", "what"), [(Counted, "other laws than normal noise"), (Common, "covariance of noise")]
)
def test_noise_that_is_not_plain_is_taken_where_declared(method: Estimator, model: type[gr.Model], what: str) -> None:
    if abilities(method)[what].word == "yes":
        fit = gr.fit(model(), MEASURED[model], ["k"], method)
        assert abs(fit["k"] - 0.5) < 4 * fit["k"].std_error < 0.4
        assert (model is Common) == ("correlation(y, z)" in fit.names)
        return
    words = "law Poisson" if model is Counted else r"correlation\(y, z\)|noise of y and z has an unknown covariance"
    with pytest.raises(EstimationError, match=words):
        gr.fit(model(), MEASURED[model], ["k"], method)


def test_residuals_are_tested_as_declared(fit: gr.Fit) -> None:
    tested = {v.test for v in fit.diagnose().verdicts}
    of = {"all": {"autocorrelation", "periodogram", "input q", "normality", "outliers", "size"}, "size": {"size"}}
    assert tested == of.get(fit.method.residual_tests, {"smoothed"})
    assert abilities(fit.method)["residuals are tested for"].word == TESTS[fit.method.residual_tests]


def test_predictions_ahead_use_data_where_declared(fit: gr.Fit) -> None:
    declared = abilities(fit.method)["prediction k samples ahead"].word
    if declared == "no":
        return
    ahead, simulated = fit.predict(horizon=1)["y"], fit.predict()["y"]
    mean = ahead.sel(statistic="mean") if "statistic" in ahead.dims else ahead
    assert bool(np.allclose(mean, simulated)) == (declared == "by simulation")


def test_every_ability_is_tried() -> None:
    tried = {
        *ASKED,
        "other laws than normal noise",
        "covariance of noise",
        "strength of a disturbance",
        "level of measurement noise",
        "residuals are tested for",
    }
    assert {a.what for a in ABILITIES} - tried == {"… draws again"}


def test_the_page_says_what_the_contract_says() -> None:
    text = SCRIPT.PAGE.read_text("utf-8")
    assert SCRIPT.page(text) == text, "docs/abilities.md is not what the contract says: python scripts/abilities.py"


def test_every_estimator_of_the_package_is_on_the_page() -> None:
    ours = {name for name, kind in Estimator.known.items() if kind.is_ours()}
    assert {type(m).__name__ for m in SCRIPT.METHODS} == ours
