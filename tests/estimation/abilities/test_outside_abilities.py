"""Abilities that an estimator from outside the package gives are used everywhere; what it declares as before is refused
in a sentence that says what to change."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille import der
from grisaille.estimation import Estimator
from grisaille.estimation.abilities import GONE, Advice, Redraw, States
from grisaille.estimation.density import OwnLikelihood


class Drawn(States):
    """Simulations, called states."""

    def of(self, fit, experiment, names, level, bands=None):
        path = fit.simulated(fit.find_experiment(experiment or fit.experiment_names[0]))[["h"]]
        parts = [path, 0 * path, path, path]
        found = xr.concat(parts, xr.DataArray(["mean", "std", "lower", "upper"], dims="statistic"))
        return found.expand_dims(given=["smoothed"])

    def at(self, problem, theta):
        prediction = problem.evaluate(theta, sensitive=False).predictions[0]
        return {problem.cases[0].name: xr.Dataset({"h": ("time", prediction.y[:, 0])})}


class Words(Advice):
    def remarks(self, flat):
        return [f"a word about {flat.name}."]


@dataclass(frozen=True)
class Borrowed(Estimator):
    """Least squares of the package with states and words of its own."""

    kept: int = 3  # an option may be called as something was in the old contract
    states = Drawn()
    advice = Words()
    redraw = Redraw("noise", {"residual": "residuals mean nothing here."})

    @property
    def density(self):
        return OwnLikelihood(self, lambda evaluation: -evaluation.objective)

    def pose(self, question):
        return gr.OutputError().pose(question)

    def estimate(self, problem, progress=None):
        return gr.OutputError().estimate(problem, progress)


class Tank(gr.Model):
    k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    h = gr.Variable(0.5)
    y = gr.Output(h, noise=0.05)
    equations = [der(h) == 2.0 - k * h]


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    t = np.linspace(0.0, 12.0, 31)
    y = 4.0 - 3.5 * np.exp(-0.5 * t) + 0.05 * np.random.default_rng(1).standard_normal(31)
    return gr.fit(Tank(), gr.Experiment(t, {}, {"y": y}, name="run"), ["k"], Borrowed())


def test_states_and_words_are_those_of_the_method(fit: gr.Fit, tmp_path) -> None:
    found = fit.states()
    np.testing.assert_array_equal(found["h"].sel(statistic="mean", given="smoothed"), fit.predict()["h"])
    assert "a word about Tank." in fit.notes
    here = gr.evaluate(Tank(), fit.experiments, Borrowed(), {"k": 0.4})
    np.testing.assert_array_equal(here.states["run"]["h"], here.predictions["run"][:, 0])
    assert "Disturbances, states and outputs with bands" in fit.report(tmp_path / "fit.html").read_text("utf-8")


def test_a_bootstrap_draws_what_it_may(fit: gr.Fit) -> None:
    assert len(gr.bootstrap(fit, 2, seed=1, executor="serial").estimates) == 2
    with pytest.raises(gr.EstimationError, match="residuals mean nothing here"):
        gr.bootstrap(fit, 2, kind="residual")


def test_what_is_missing_is_refused_with_who_has_it(fit: gr.Fit) -> None:
    with pytest.raises(gr.EstimationError, match=r"come with gr\.OutputError\(\), not with Borrowed: fit by it"):
        fit.with_errors("robust")
    assert set(fit.predict(horizon=2)["y"].dims) == {"time"}  # by simulation


def test_who_has_it_is_named_also_where_nothing_else_is_imported() -> None:
    asked = "from grisaille import SimulatedPEM as S; from grisaille.estimation.abilities.missing import why_missing"
    said = subprocess.check_output([sys.executable, "-c", f"{asked}; print(why_missing(S(), 'states'))"], text=True)
    assert said.startswith(
        "States given the data come with gr.Collocation(), gr.KalmanML() or gr.ParticleML(), not with SimulatedPEM:"
    )


@pytest.mark.parametrize("name", GONE)
def test_what_the_old_contract_had_is_refused_at_once(name: str) -> None:
    with pytest.raises(gr.EstimationError, match=f"Old declares '{name}', which estimators no longer have: .{{12}}"):
        type("Old", (Borrowed,), {name: True})
    assert "Old" not in Estimator.known


def test_states_as_a_method_are_refused() -> None:
    with pytest.raises(gr.EstimationError, match=r"Older declares 'states' as a method.*derives from States"):
        type("Older", (Borrowed,), {"states": lambda self, fit, experiment, names, level: None})


def test_a_table_of_numbers_is_refused(fit: gr.Fit) -> None:
    problem = Borrowed().pose
    with pytest.raises(gr.EstimationError, match=r"no extra= any more: give numbers of your own as details="):
        type(fit.estimate).at(problem, fit.estimate.evaluation, fit.estimate.covariance, extra={"a": 1.0})
