"""Fits by particle filters: those of the Kalman filter where that is exact, the same in every run, and in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from zoo.particles import TIMES, Decay, estimates, exact, measured, posed

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError, GrisailleError

START = {"x": 0.3}
LONG = np.arange(60) * 0.4
METHOD = gr.ParticleML(particles=64, substeps=8, initial_covariance=START)


class Level(Decay):
    """With a prior and an open level."""

    a = gr.Parameter(0.8, bounds=(0.05, 8.0), prior=gr.laws.LogNormal(0.9, 0.4))


def record(**options):
    y = gr.simulate(Decay(), LONG, noise=True, seed=4, realizations=1)["y"].values[0]
    return gr.Experiment(LONG, outputs={"y": y}, **options)


@pytest.fixture(scope="module")
def fits():
    """By particles and by the Kalman filter."""
    return [
        gr.fit(Level(), record(), ["a", "scale(w)"], method=method)
        for method in (METHOD, gr.KalmanML(initial_covariance=START))
    ]


def test_estimates_and_errors_are_those_of_the_exact_likelihood(fits):
    """Within a fifth of a standard error, and a sixth of its size; a prior counts."""
    found, wanted = fits
    assert found.converged, found.status
    for name in ("a", "scale(w)"):
        error = wanted[name].std_error
        assert abs(float(found[name]) - float(wanted[name])) < 0.2 * error, name
        assert found[name].std_error == pytest.approx(error, rel=0.17), name
    told = found.estimate.details["log_likelihood_error"]
    assert 0 < told < 0.1
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, abs=4 * told + 0.02)


def test_what_random_numbers_leave_open_is_said(fits):
    first, second = (note for note in fits[0].notes if note.startswith("Monte Carlo:"))
    assert "from 10 estimates" in first and "64 particles, guided proposals, 8 steps" in first
    assert "begun at the estimate of a Kalman filter" in first
    assert "random numbers move" in second and "of its standard error" in second


def test_states_and_predictions(fits):
    found, wanted = (fit.states()["x"] for fit in fits)
    for given in ("filtered", "smoothed"):
        mean, theirs = (part.sel(statistic="mean", given=given).values for part in (found, wanted))
        assert np.abs(mean - theirs).max() < 0.15
    ahead, exactly = (fit.predict(horizon=2)["y"].values for fit in fits)
    assert np.sqrt(np.nanmean((ahead - exactly) ** 2)) < 0.12


def test_a_fit_in_a_file(fits, tmp_path):
    fit = fits[0]
    fit.save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.method == fit.method and again.notes == fit.notes
    pd.testing.assert_frame_equal(again.parameters, fit.parameters, check_exact=True)
    steps, before = (f.estimate.cases[0].discretisation for f in (again, fit))
    assert steps == before and steps.guided and len(steps.inflation) == len(LONG)
    np.testing.assert_array_equal(again.states()["x"].values, fit.states()["x"].values)


def test_profiles_are_those_of_the_exact_likelihood(fits):
    found, wanted = (fit.profile("a", points=3).interval for fit in fits)
    width = wanted[1] - wanted[0]
    assert np.abs(np.array(found) - wanted).max() < 0.06 * width


def test_the_same_numbers_in_every_run_and_on_any_number_of_threads(monkeypatch):
    problem = posed(Level(), record(), ["a", "scale(w)"], METHOD)
    first = estimates(problem, 8)
    monkeypatch.setattr("grisaille.estimators.particle_ml.particle_problem.processors", lambda: 1)
    np.testing.assert_array_equal(estimates(problem, 8), first)
    again = posed(Level(), record(), ["a", "scale(w)"], METHOD)
    np.testing.assert_array_equal(estimates(again, 8), first)
    assert len(set(first.tolist())) == 8


def test_weights_of_samples():
    """A sample of weight one half has twice the deviation."""
    y = measured(1.0, 1)
    weights = np.where(np.arange(len(TIMES)) % 3 == 0, 0.5, 1.0)
    data = gr.Experiment(TIMES, outputs={"y": y}, weights={"y": weights})
    problem = posed(Decay(), data, ["a"], gr.ParticleML(particles=256, substeps=8, initial_covariance=START))
    wanted = exact(Decay(), data, ["a"], initial_covariance=START)
    assert problem.discretised_problem.repeated(problem.guess, 30).log_likelihood == pytest.approx(wanted, abs=0.02)
    assert abs(wanted - exact(Decay(), gr.Experiment(TIMES, outputs={"y": y}), ["a"], initial_covariance=START)) > 0.2


def test_local_unknowns():
    """Two experiments, each with a start of its own, and one rate."""
    times = LONG[:25]
    data = []
    for k, start in enumerate((2.0, -2.0)):
        y = gr.simulate(Decay(), times, start={"x": start}, noise=True, seed=k, realizations=1)["y"].values[0]
        data.append(gr.Experiment(times, outputs={"y": y}, name=f"run{k}"))
    found, wanted = (
        gr.fit(Decay(), data, ["a", "start(x)"], method=method, local=["start(x)"])
        for method in (METHOD, gr.KalmanML(initial_covariance=START))
    )
    for name in ("a", "start(x)@run0", "start(x)@run1"):
        assert abs(float(found[name]) - float(wanted[name])) < 0.25 * wanted[name].std_error, name


class Counts(gr.Model):
    """Counts of a random level, which no Kalman filter takes."""

    rate = gr.Parameter(1.0, bounds=(0.05, 10.0))
    level = gr.Parameter(2.0, bounds=(-3.0, 6.0))
    x = gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.8)
    n = gr.Output(gr.exp(level + x), distribution=gr.laws.Poisson())
    equations = [der(x) == -rate * x + w]


def test_iterated_filtering_comes_near_from_afar():
    """Begun at a level e³ times too small."""
    n = gr.simulate(Counts(), LONG, noise=True, seed=3, realizations=1)["n"].values[0]
    method = gr.ParticleML(particles=200, search="iterated", substeps=4, initial_covariance={"x": 0.3})
    fit = gr.fit(Counts(level=-1.0), gr.Experiment(LONG, outputs={"n": n}), ["level"], method=method)
    assert fit.converged and "begun at iterated filtering" in fit.notes[-2]
    assert abs(float(fit["level"]) - 2.0) < 3 * fit["level"].std_error < 1.0


class Formula(gr.Model):
    a = gr.Parameter(1.0)
    u = gr.Input()
    y = gr.Output(a * u, noise=0.1)
    equations = []


REFUSALS = {
    "one particle": (lambda: gr.ParticleML(particles=1), "needs two at least"),
    "proposal": (lambda: gr.ParticleML(proposal="best"), "proposal"),
    "substeps": (lambda: gr.ParticleML(substeps=0), "substeps"),
    "flat": (
        lambda: estimates(posed(Decay(), record(), ["a"], gr.ParticleML(initial_covariance="diffuse")), 1),
        "no distribution that particles can be drawn from",
    ),
    "static": (
        lambda: posed(Formula(), gr.Experiment(inputs={"u": [1.0, 2]}, outputs={"y": [1.0, 2]}), ["a"], METHOD),
        "is static, and a particle filter follows models in time",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case):
    make, words = REFUSALS[case]
    with pytest.raises(GrisailleError, match=words):
        make()


class Dry(Counts):
    """Nothing is counted below zero."""

    x = gr.Variable(-4.0)
    n = gr.Output(gr.maximum(x, 0.0), distribution=gr.laws.Poisson())
    equations = [der(x) == -0.01 * Counts.rate * (x + 4.0) + 0.01 * Counts.w]


def test_a_measurement_that_nothing_explains_is_named():
    n = np.zeros(8)
    n[5] = 3.0
    with pytest.raises(EstimationError, match="no particle explains the measurement of n at t = 2"):
        gr.fit(Dry(), gr.Experiment(LONG[:8], outputs={"n": n}), ["rate"], gr.ParticleML(particles=32))
