"""Posteriors of models against closed forms and quadrature; refusals; notes; what the result can do."""

from __future__ import annotations

import pickle
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import truncnorm

import grisaille as gr
from grisaille import der
from grisaille.estimation import Fitted
from grisaille.posteriors import PosteriorDraws, find_metric, mcse_of_mean, posterior_task, trajectory_notes
from grisaille.results import Posterior

RNG = np.random.default_rng(3)
U = np.linspace(0.0, 2.0, 12)


class Line(gr.Model):
    a = gr.Parameter(0.1, "m", prior=gr.Normal(0.0, 1.0))
    b = gr.Parameter(0.1, prior=gr.Normal(0.0, 1.0))
    u = gr.Input()
    y = gr.Output(a + b * u, noise=0.5)
    equations = []


class Constant(gr.Model):
    a = gr.Parameter(1.0, bounds=(-20.0, 20.0))
    u = gr.Input()
    y = gr.Output(a * u)
    equations = []


class Walk(gr.Model):
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == w]


LINE = gr.Experiment(None, {"u": U}, {"y": 0.4 + 0.8 * U + 0.5 * RNG.standard_normal(12)}, name="line")
LEVEL = gr.Experiment(None, {"u": np.ones(8)}, {"y": 3.0 + 0.7 * RNG.standard_normal(8)})
SHORT: dict[str, Any] = {"draws": 250, "tune": 80, "chains": 2, "executor": "serial"}


def within(draws: np.ndarray, expected: float, errors: float = 4.0) -> bool:
    return abs(float(draws.mean()) - expected) < errors * mcse_of_mean(draws)


@cache
def line() -> Posterior:
    return gr.fit(Line(), LINE, ["a", "b"], gr.OutputError()).posterior(**{**SHORT, "draws": 350})


@cache
def level() -> Posterior:
    return gr.posterior(Constant(), LEVEL, ["a"], gr.OutputError(), seed=2, **{**SHORT, "draws": 400})


def test_a_linear_model_with_normal_priors_has_its_exact_posterior() -> None:
    found = line()
    X, y = np.column_stack([np.ones(12), U]), LINE.outputs["y"][1]
    covariance = np.linalg.inv(np.eye(2) + X.T @ X / 0.25)
    mean = covariance @ X.T @ y / 0.25
    draws = np.stack([found.draws[n].values for n in "ab"], axis=-1)
    for i in range(2):
        assert within(draws[..., i], mean[i])
        for j in range(2):
            assert within((draws[..., i] - mean[i]) * (draws[..., j] - mean[j]), covariance[i, j])
    assert found.converged and found.status.startswith("converged") and found.notes == ()
    assert found["a"].unit == "m" and float(found["a"]) == pytest.approx(mean[0], abs=0.05)


def test_open_noise_has_the_default_prior_and_the_posterior_of_quadrature() -> None:
    found, y = level(), LEVEL.outputs["y"][1]
    s, n = float(np.std(y)), len(y)
    assert found.names == ("a", "noise(y)") and "HalfCauchy" in found.priors["noise(y)"]
    assert any(note.startswith("noise(y): no prior was given") for note in found.notes)

    def density(sigma: float) -> float:  # a integrated out: the bounds are far away
        return float(sigma ** (1 - n) * np.exp(-0.5 * n * (s / sigma) ** 2) / (1 + (sigma / s) ** 2))

    total, first, second = (quad(lambda v, k=k: v**k * density(v), 1e-3, 200, limit=300)[0] for k in range(3))
    sigma = found.draws["noise(y)"].values
    assert within(sigma, first / total) and within(np.minimum(sigma, 5) ** 2, second / total, 5)
    assert within(found.draws["a"].values, float(y.mean()))
    assert list(found.intervals(0.5).columns) == ["lower", "upper"]


@pytest.mark.parametrize("transform", ["auto", None])
def test_one_rule_a_prior_is_the_distribution_that_it_names(transform: Any) -> None:
    """A LogNormal prior, which a fit maximises per unit of log θ, on any scale of the search."""

    class Gain(gr.Model):
        k = gr.Parameter(1.0, prior=gr.LogNormal(1.0, 0.8), transform=transform)
        u = gr.Input()
        y = gr.Output(k * u, noise=0.6)
        equations = []

    y = np.array([0.2, 0.9])
    data = gr.Experiment(None, {"u": [1.0, 1.0]}, {"y": y})
    found = gr.posterior(Gain(), data, method=gr.OutputError(), seed=5, **SHORT)

    def density(k: float) -> float:
        return float(np.exp(-0.5 * np.sum((y - k) ** 2) / 0.36 - 0.5 * (np.log(k) / 0.8) ** 2) / k)

    total, first = (quad(lambda k, p=p: k**p * density(k), 0, 8, limit=300)[0] for p in range(2))
    assert within(found.draws["k"].values, first / total)


def test_an_unknown_that_the_fit_holds_at_a_bound() -> None:
    """The data want b < 0; within (0.1, 5) its posterior is the tail of a normal law."""
    data = gr.Experiment(None, {"u": U}, {"y": -0.8 * U + 0.1 * np.cos(9 * U)})
    fit = gr.fit(Line(a=0.0, b=0.5), data, ["b"], gr.OutputError(), bounds={"b": (0.1, 5.0)}, priors={"b": None})
    assert fit.parameters.loc["b", "status"] == "at bound"
    found = fit.posterior(seed=1, **SHORT)
    precision = float(U @ U) / 0.25
    mean, std = float(U @ data.outputs["y"][1]) / 0.25 / precision, precision**-0.5
    law = truncnorm((0.1 - mean) / std, (5 - mean) / std, mean, std)
    b = found.draws["b"].values
    assert within(b, float(law.mean())) and within(b**2, float(law.var() + law.mean() ** 2))
    assert not found.statistics["diverging"].values.any()


def test_a_level_that_the_fit_puts_to_zero() -> None:
    times = np.arange(25.0)
    data = gr.Experiment(times, {}, {"y": 0.05 * (-1.0) ** np.arange(25)})
    prior = {"scale(w)": gr.HalfNormal(0.1)}
    fit = gr.fit(Walk(), data, ["scale(w)"], gr.KalmanML(), priors=prior)
    assert float(fit["scale(w)"]) == 0.0
    found = fit.posterior(seed=1, **SHORT)
    f = gr.log_density(Walk(), data, ["scale(w)"], gr.KalmanML(), priors=prior)
    grid = np.linspace(1e-5, 0.15, 600)
    weight = np.exp([f([v]) - f([1e-4]) for v in grid])
    scale = found.draws["scale(w)"].values
    assert within(scale, float(np.trapezoid(grid * weight, grid) / np.trapezoid(weight, grid)))


class Tank(gr.Model):
    """Bounds on both sides, on one, a prior per unit of the logarithm, a joint one, open noise."""

    k = gr.Parameter(0.5, bounds=(0.05, 5.0))
    q = gr.Parameter(1.2, bounds=(0.0, np.inf), prior=gr.Normal(1.0, 0.5))
    r = gr.Parameter(0.3, prior=gr.LogNormal(0.3, 0.2))
    h = gr.Variable(1.0)
    y = gr.Output(h)
    equations = [der(h) == q - k * h - 0.1 * r * h**2]


TIMES = np.linspace(0.0, 6.0, 25)
TANK = gr.Experiment(TIMES, {}, {"y": 2.0 - np.exp(-0.6 * TIMES) + 0.03 * RNG.standard_normal(25)})


@cache
def tank() -> Fitted:
    return gr.fit(Tank(), TANK, ["k", "q", "r"], gr.OutputError())


def test_the_target_has_exact_derivatives_and_contains_the_priors_of_levels() -> None:
    target = posterior_task(tank()).target()
    at = target.unbounded.transforms.inner(target.unbounded.density.start) + np.array([0.1, -0.2, 0.05, 0.3])
    value, slope = target.value_and_gradient(at)
    for k in range(4):
        h = 1e-4 * np.eye(4)[k]
        wide, narrow = (
            (target.value_and_gradient(at + s * h)[0] - target.value_and_gradient(at - s * h)[0]) / (2e-4 * s)
            for s in (2.0, 1.0)
        )
        assert slope[k] == pytest.approx((4 * narrow - wide) / 3, rel=1e-6, abs=1e-6)
    f = gr.log_density(Tank(), TANK, ["k", "q", "r"], gr.OutputError(), guess=tank())
    law = gr.HalfCauchy(float(np.std(TANK.outputs["y"][1])))
    assert value == pytest.approx(f.unbounded(at) + float(law.log_density(f.from_unbounded(at)[3])), abs=1e-6)
    at[0] = np.inf
    assert target.value_and_gradient(at)[0] == -np.inf


def test_the_metric_is_the_covariance_of_the_fit_where_data_are_many() -> None:
    u = np.linspace(0.0, 2.0, 400)
    data = gr.Experiment(None, {"u": u}, {"y": 0.4 + 0.8 * u + 0.5 * np.cos(np.arange(400.0) ** 2)})
    fit = gr.fit(Line(), data, ["a", "b"], gr.OutputError())
    metric = find_metric(fit, posterior_task(fit).target())
    np.testing.assert_allclose(metric.covariance, fit.covariance, rtol=1e-6)
    np.testing.assert_allclose(metric.centre, [float(fit["a"]), float(fit["b"])], rtol=1e-6)


def test_priors_and_bounds_of_the_call_replace_those_of_the_fit() -> None:
    task = posterior_task(tank(), {"k": gr.LogNormal(0.5, 0.5), "noise(y)": gr.HalfNormal(0.1)}, {"q": (0.5, 3.0)})
    said = task.target().describe_priors()
    assert said["k"].startswith("LogNormal(median=0.5") and said["noise(y)"] == "HalfNormal(scale=0.1)"
    assert said["q"].endswith("above 0.5, below 3")
    with pytest.raises(gr.EstimationError, match="priors= names 'z', which is not estimated here"):
        posterior_task(tank(), {"z": gr.Normal(0.0, 1.0)})
    with pytest.raises(gr.EstimationError, match=r"bounds of 'q' are \(3, 1\): the first must be below"):
        posterior_task(tank(), None, {"q": (3.0, 1.0)})


def refusals() -> dict[str, tuple[Any, str]]:
    fit = tank()
    robust = gr.OutputError(loss="huber")
    return {
        "improper": (
            lambda: fit.posterior(priors={"q": None, "r": None}),
            r"A posterior of 'q', 'r' need not exist: they have neither a prior nor two finite bounds.*"
            r"priors=\{'q': gr\.HalfCauchy\(.*bounds=\{'q': \(low, high\)\}",
        ),
        "robust loss": (
            lambda: gr.fit(Tank(), TANK, ["k"], robust).posterior(),
            r"A posterior needs a likelihood, and the criterion of gr\.OutputError with a robust loss is none: use "
            r"gr\.OutputError\(loss='linear'\)",
        ),
        "robust errors": (
            lambda: fit.with_errors("robust").posterior(),
            r"residuals to be independent, which the errors of this fit do not: fit\.with_errors\('plain'\)",
        ),
        "no spread": (
            lambda: gr.posterior(
                Constant(), gr.Experiment(None, {"u": [1.0, 2.0, 3.0]}, {"y": [2.0, 2.0, 2.0]}), ["a"], gr.OutputError()
            ),
            r"'noise\(y\)' has no prior, and one from the spread of the data is impossible: every measurement of 'y' "
            r"is 2\. Give one: priors=\{'noise\(y\)': gr\.HalfCauchy",
        ),
        "no name": (lambda: line()["c"], "The posterior has no 'c'; it has a, b"),
        "executor": (lambda: fit.posterior(executor=0), "executor is 0; give None"),
        "no draws": (lambda: fit.posterior(draws=0), "draws is 0; give a whole number above zero"),
    }


@pytest.mark.parametrize("which", list(refusals()))
def test_refusals(which: str) -> None:
    call, words = refusals()[which]
    with pytest.raises(gr.GrisailleError, match=words):
        call()


def test_criteria_that_are_no_likelihoods_are_refused() -> None:
    class Shaken(gr.Model):
        k = gr.Parameter(0.6, bounds=(0.05, 10.0))
        x = gr.Variable(1.0)
        w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=0.1)
        y = gr.Output(x, noise=0.05)
        equations = [der(x) == -k * x + w]

    data = gr.Experiment(TIMES, {}, {"y": np.exp(-0.7 * TIMES) + 0.05 * np.sin(3 * TIMES)})
    for method in (gr.SimulatedPEM(realizations=20), gr.Collocation(criterion="amle")):
        fit = gr.fit(Shaken(), data, ["k"], method)
        with pytest.raises(gr.EstimationError, match="A posterior needs a likelihood, and the criterion of"):
            fit.posterior()


def drawn(xi: np.ndarray, divergences: np.ndarray, diverging: np.ndarray) -> PosteriorDraws:
    shape = xi.shape[:2]
    statistics = {"diverging": diverging, "tree_depth": np.full(shape, 2)}
    statistics["energy"] = np.random.default_rng(0).standard_normal(shape)
    return PosteriorDraws(xi, xi, statistics, divergences, line()._drawn.options, (0, 0), 1)


def test_divergences_are_located_by_name() -> None:
    xi = np.random.default_rng(1).standard_normal((2, 500, 2))
    flags = np.zeros((2, 500), dtype=bool)
    flags[0, :10] = True
    low = np.column_stack([np.random.default_rng(2).standard_normal(10), np.full(10, -2.2)])
    (said,) = trajectory_notes(drawn(xi, low, flags), ["k", "tau"], {})
    assert "10 divergent trajectories (1 % of the draws), most of them where tau is below -2." in said
    spread = np.random.default_rng(3).standard_normal((10, 2))
    assert "spread over the posterior" in trajectory_notes(drawn(xi, spread, flags), ["k", "tau"], {})[0]
    flags[0, 1:] = False
    (said,) = trajectory_notes(drawn(xi, low[:1], flags), ["k", "tau"], {"the tank is empty": 1})
    assert "1 divergent trajectory" in said and "at tau near -2." in said and "(the tank is empty)" in said


def test_it_prints_plots_and_labels() -> None:
    found = line()
    text = str(found)
    assert text.startswith("Posterior of Line by OutputError") and "R̂" in text and "Normal(mean=0.0, std=1.0)" in text
    assert list(found.table.index) == ["a", "b"] and {"mean", "sd", "q2.5", "q50", "ess_bulk"} <= set(found.table)
    assert found.draws["a"].dims == ("chain", "draw") and found.draws["a"].attrs["units"] == "m"
    assert len(found) == 700 and "a" in found and "c" not in found
    assert found.correlation.loc["a", "b"] == pytest.approx(found.covariance.loc["a", "b"] / np.prod(found.table["sd"]))
    assert len(found.plot().axes) == 4 and len(found.plot("b").axes) == 2


def test_files_and_pickles_bring_it_back(tmp_path: Path) -> None:
    found = level()
    found.save(tmp_path / "level.nc")
    for other in (gr.load(tmp_path / "level.nc"), pickle.loads(pickle.dumps(found))):
        assert isinstance(other, Posterior) and str(other) == str(found) and other.fit.names == found.fit.names
        assert other.draws.equals(found.draws) and other.statistics.equals(found.statistics)
        assert other.seed == 2 and other.notes == found.notes
    content = bytearray((tmp_path / "level.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "changed.nc").write_bytes(content)
    with pytest.raises(gr.GrisailleError, match="not those that were saved"):
        gr.load(tmp_path / "changed.nc")


def test_arviz_takes_it(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        az = pytest.importorskip("arviz")
    found = line()
    summary = az.summary(found.to_arviz(), round_to="none")
    np.testing.assert_allclose(summary["mean"].astype(float), found.table["mean"], rtol=1e-10)
    np.testing.assert_allclose(summary["ess_bulk"].astype(float), found.table["ess_bulk"], rtol=0.02)
    found.save(tmp_path / "line.nc")
    assert set(az.from_netcdf(tmp_path / "line.nc")["posterior"].data_vars) == {"a", "b"}


def test_newer_arviz_takes_a_data_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 has no InferenceData: it takes xarray's DataTree with the same groups."""
    arviz = ModuleType("arviz")
    arviz.__dict__["InferenceData"] = xr.DataTree  # a name that version 1 keeps
    monkeypatch.setitem(sys.modules, "arviz", arviz)
    tree = line().to_arviz()
    assert isinstance(tree, xr.DataTree) and tree["posterior"].to_dataset().equals(line().draws)
    assert set(tree["sample_stats"].data_vars) >= {"diverging", "lp", "energy", "n_steps"}
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(gr.EstimationError, match=r"ArviZ is not installed .*pip install 'grisaille\[bayes\]'"):
        line().to_arviz()


def test_predictions_of_a_linear_model_are_its_normal_law() -> None:
    """Mean X m, variance X C Xᵀ + σ², of outputs as they would be measured."""
    found = line().predict(draws=700)
    X = np.column_stack([np.ones(12), U])
    covariance = np.linalg.inv(np.eye(2) + X.T @ X / 0.25)
    mean, std = X @ covariance @ X.T @ LINE.outputs["y"][1] / 0.25, np.sqrt(np.diag(X @ covariance @ X.T) + 0.25)
    lower, upper = found["y"].sel(statistic="lower"), found["y"].sel(statistic="upper")
    np.testing.assert_allclose(found["y"].sel(statistic="mean"), mean, atol=0.05)
    np.testing.assert_allclose(found["y"].sel(statistic="std"), std, rtol=0.03)
    np.testing.assert_allclose([lower, upper], [mean - 1.96 * std, mean + 1.96 * std], atol=0.1)


def test_draws_from_priors_are_the_laws_between_the_bounds() -> None:
    data = LINE.replace(name="planned")
    found = gr.prior_predictive(Line(), data, ["a", "b"], draws=400, bounds={"b": (0.0, np.inf)}, seed=1)
    a, b = found.parameters["a"], found.parameters["b"]
    assert abs(a.mean()) < 4 / 20 and abs(b.mean() - np.sqrt(2 / np.pi)) < 4 * 0.6 / 20 and (b > 0).all()
    y = found.trajectories["planned"]["y"]
    assert y.dims == ("draw", "time") and found.failures == {}
    spread = np.sqrt(1 + U**2 * (1 - 2 / np.pi) + 0.25)
    np.testing.assert_allclose(y.std("draw"), spread, rtol=0.2)
    assert found.table.loc[0, "samples"] == 12 and "of 12 measurements inside" in str(found)
    assert len(found.plot().axes) == 1
    open_noise = gr.prior_predictive(Constant(), LEVEL, ["a"], draws=20, priors={"noise(y)": gr.Uniform(0.1, 0.2)})
    assert open_noise.parameters["noise(y)"].between(0.1, 0.2).all()
    with pytest.raises(gr.EstimationError, match=r"names 'noise\(z\)', which the model does not leave open"):
        gr.prior_predictive(Constant(), LEVEL, ["a"], priors={"noise(z)": gr.Uniform(0.1, 0.2)})
    with pytest.raises(gr.EstimationError, match="neither a prior nor two finite bounds"):
        gr.prior_predictive(Line(), data, ["a", "b"], priors={"b": None})


def test_joint_priors_are_drawn_together() -> None:
    law = gr.MultivariateNormal(["a", "b"], [1.0, 2.0], [[1.0, 0.8], [0.8, 1.0]])
    found = gr.prior_predictive(Line(), LINE, ["a", "b"], draws=400, priors=law)
    assert np.corrcoef(found.parameters.T)[0, 1] == pytest.approx(0.8, abs=0.08)
    fit = gr.fit(Line(), LINE, ["a", "b"], gr.OutputError(), priors=law)
    with pytest.raises(gr.EstimationError, match="replaces that of 'a', which is part of a joint prior of a, b"):
        posterior_task(fit, {"a": gr.Normal(0.0, 1.0)})
    assert posterior_task(fit).target().describe_priors()["a"].startswith("MultivariateNormal(names=('a', 'b')")
