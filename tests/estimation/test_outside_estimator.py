"""An estimator of thirty lines, written outside the package, has everything that fits have."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

import grisaille as gr
from grisaille import der
from grisaille.estimation import Estimate, Estimator
from grisaille.estimation.abilities import Redraw
from grisaille.estimation.density import OwnLikelihood


@dataclass(frozen=True)
class LeastAbsolute(Estimator):
    """√2 Σ |r| + ½ Σ r² of priors: the likelihood of noise with Laplace's law and known σ."""

    rounds: int = 60
    redraw = Redraw("noise")

    def pose(self, question):
        return gr.OutputError().pose(question)

    @property
    def density(self):
        return OwnLikelihood(self, lambda evaluation: -self.misfit(evaluation))

    def misfit(self, evaluation):
        r, known = np.split(evaluation.residuals, [len(evaluation.errors)])
        return 2**0.5 * float(np.abs(r).sum()) + 0.5 * float(known @ known)

    def estimate(self, problem, progress=None):
        here, moved = problem.evaluate(problem.guess), np.inf
        is_data = np.arange(len(here.residuals)) < problem.count
        for _ in range(self.rounds):
            size = np.maximum(np.abs(here.residuals), 1e-7)
            weight = np.where(is_data, 2**0.25 / np.sqrt(size), 1.0)  # Σ r²/|r| = Σ |r|
            step = np.linalg.lstsq(here.jacobian * weight[:, None], -weight * here.residuals, rcond=None)[0]
            for share in 0.5 ** np.arange(12):
                there = problem.evaluate(np.clip(here.theta + share * step, *problem.bounds))
                if there.completed and self.misfit(there) <= self.misfit(here):
                    break
            here, moved = there, np.abs(share * step / (1e-12 + np.abs(here.theta))).max()
            if moved < 1e-9:
                break
        covariance = np.linalg.inv(here.jacobian.T * np.where(is_data, 2.0, 1.0) @ here.jacobian)  # 4 f(0)² with σ = 1
        value, size = self.misfit(here), float(np.abs(here.residuals[is_data]).sum())
        return Estimate.at(
            problem, here, covariance, objective=value, log_likelihood=-(2**0.5) * size - problem.count * np.log(2) / 2,
            is_likelihood=True, converged=moved < 1e-4, status=f"converged: the last step was {moved:.1g}",
            details={"smallest deviation": float(np.abs(here.residuals).min())},
        )  # fmt: skip


class Tank(gr.Model):
    k = gr.Parameter(0.3, bounds=(0.01, 5.0))
    q = gr.Parameter(1.5, bounds=(0.0, 9.0))
    h = gr.Variable(0.5)
    y = gr.Output(h, noise=0.05)
    equations = [der(h) == q - k * h]


TIMES = np.linspace(0.0, 12.0, 41)


def record(seed: int, outliers: bool = False) -> gr.Experiment:
    rng = np.random.default_rng(seed)
    y = 4.0 + (0.5 - 4.0) * np.exp(-0.5 * TIMES) + rng.laplace(scale=0.05 / 2**0.5, size=41)  # k = 0.5, q = 2
    y[[7, 30]] += 3.0 * outliers
    return gr.Experiment(TIMES, {}, {"y": y})


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    return gr.fit(Tank(), record(1, outliers=True), ["k", "q"], LeastAbsolute())


def test_it_is_short() -> None:
    assert len(inspect.getsource(LeastAbsolute).splitlines()) <= 40


def test_it_fits_and_shrugs_at_outliers(fit: gr.Fit) -> None:
    assert fit.converged
    for name, truth in (("k", 0.5), ("q", 2.0)):
        assert abs(float(fit[name]) - truth) < 4 * fit.parameters["std_error"][name]
    squares = gr.fit(Tank(), record(1, outliers=True), ["k", "q"], gr.OutputError())
    assert abs(float(squares["q"]) - 2.0) > 3 * abs(float(fit["q"]) - 2.0)


def test_it_has_a_profile(fit: gr.Fit) -> None:
    profile = fit.profile("k", level=0.9, points=4)
    low, high = profile.interval
    assert low < float(fit["k"]) < high
    assert 0.5 * (high - low) == pytest.approx(1.7 * fit.parameters["std_error"]["k"], rel=0.5)
    deviances = profile.table["deviance"].to_numpy()
    assert deviances.min() > -1e-6 and deviances.max() > 2.0


@pytest.mark.slow
def test_it_has_bootstrap_save_and_report(fit: gr.Fit, tmp_path) -> None:
    again = gr.bootstrap(fit, runs=4, seed=2)
    assert again.estimates["k"].std() < 0.1 and len(again.estimates) == 4
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    assert loaded.method == LeastAbsolute() and float(loaded["k"]) == float(fit["k"])
    assert loaded.estimate.details == fit.estimate.details and "smallest deviation" in str(loaded)
    np.testing.assert_array_equal(loaded.predict()["y"], fit.predict()["y"])
    assert "LeastAbsolute" in fit.report(tmp_path / "fit.html").read_text("utf-8")


def test_it_has_a_log_density(fit: gr.Fit) -> None:
    density = gr.log_density(Tank(), record(1, outliers=True), ["k", "q"], LeastAbsolute(), guess=fit)
    assert density.names == ("k", "q") and density(fit.estimates) == pytest.approx(-fit.objective, rel=1e-9)
    at = {"k": 0.45, "q": 1.9}
    h = 4.0 * (1.9 / 0.45) / 4.0 + (0.5 - 1.9 / 0.45) * np.exp(-0.45 * TIMES)
    e = record(1, outliers=True).outputs["y"].values - h
    assert density(at) == pytest.approx(-(2**0.5) * np.abs(e).sum() / 0.05, rel=1e-6)
    by_q = (1 - np.exp(-0.45 * TIMES)) / 0.45
    assert density.gradient(at)[1] == pytest.approx(2**0.5 * np.sum(np.sign(e) * by_q) / 0.05, rel=1e-6)


def test_priors_count_as_what_they_are() -> None:
    """A normal prior beside Laplace's law of the data, by hand."""
    data = record(1, outliers=True)
    fit = gr.fit(Tank(), data, ["k", "q"], LeastAbsolute(), priors={"k": gr.Normal(0.4, 0.01)})

    def minus(theta: np.ndarray) -> float:
        k, q = theta
        e = data.outputs["y"].values - q / k - (0.5 - q / k) * np.exp(-k * TIMES)
        return float(2**0.5 * np.abs(e).sum() / 0.05 + 0.5 * ((k - 0.4) / 0.01) ** 2)

    options = {"xatol": 1e-10, "fatol": 1e-11, "maxiter": 4000}
    found = minimize(minus, [0.45, 1.8], method="Nelder-Mead", options=options)
    assert np.abs([float(fit["k"]), float(fit["q"])] - found.x).max() < 1e-5
    assert fit.objective == pytest.approx(found.fun, rel=1e-6)


def test_it_is_tested_and_says_what_its_likelihood_lacks(fit: gr.Fit) -> None:
    held = fit.test({"k": 0.55})
    assert held.ratio > 10.0 and held.estimates["k"] == 0.55 and held.degrees_of_freedom == 1
    with pytest.raises(gr.GrisailleError, match=r"LeastAbsolute gives none: use gr\.bootstrap"):
        fit.intervals(method="bootstrap", samples=100)


@pytest.mark.parametrize("name", ["deviance", "objective", "no_ratio", "estimates_levels", "has_own_likelihood"])
def test_names_of_the_old_contract_are_refused(name: str) -> None:
    with pytest.raises(gr.EstimationError, match=rf"Old declares '{name}'.*density = …, such as OwnLikelihood"):
        type("Old", (Estimator,), {name: "itself"})


def test_what_it_does_not_have_is_refused_in_words(fit: gr.Fit) -> None:
    with pytest.raises(
        gr.GrisailleError,
        match=r"come with gr\.Collocation\(\), gr\.KalmanML\(\) or gr\.ParticleML\(\), not with LeastA",
    ):
        fit.states()
    with pytest.raises(gr.GrisailleError, match=r"LeastAbsolute does not estimate 'noise\(y\)'"):
        gr.fit(Tank(), record(1), ["k", "noise(y)"], LeastAbsolute())
    with pytest.raises(gr.GrisailleError, match=r"make an instance: gr\.LeastAbsolute\(\)|class LeastAbsolute"):
        gr.fit(Tank(), record(1), ["k"], LeastAbsolute)
