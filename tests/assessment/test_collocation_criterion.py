"""Profiles, surfaces and ratio tests of collocation fits: against exact likelihoods, standard errors and held fits."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Oscillator, data

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = np.linspace(0.0, 10.0, 41)
PUSH = np.sign(np.sin(1.3 * TIMES))


class Vessel(gr.Model):
    """Linear in its state; b enters linearly, a does not."""

    a = gr.Parameter(0.8, bounds=(0.01, 10.0))
    b = gr.Parameter(1.5)
    x = gr.Variable(start=1.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + b * u + w]


@pytest.fixture(scope="module")
def vessel():
    return data(Vessel(), TIMES, "y", u=PUSH, seed=3, name="A")[0]


@pytest.fixture(scope="module")
def swing():
    return data(Oscillator(), TIMES, "y", u=PUSH, seed=2, name="A")[0]


@pytest.fixture(scope="module")
def amle(vessel):
    return gr.fit(Vessel(), vessel, ["a", "b"], gr.Collocation(criterion="amle"))


@pytest.fixture(scope="module")
def marginal(vessel):
    return gr.fit(Vessel(), vessel, ["a", "b"], gr.Collocation(criterion="laplace"))


def exact(model, record, names, **start):
    return gr.fit(model, record, names, gr.KalmanML(initial_covariance=start))


def test_the_profile_of_the_marginal_likelihood_of_splines_is_the_exact_one(vessel, marginal):
    ours = marginal.profile("a", points=4)
    theirs = exact(Vessel(), vessel, ["a", "b"], x=0.0).profile("a", points=4)
    assert ours.shape == "bounded"
    assert ours.threshold == theirs.threshold
    np.testing.assert_allclose(ours.interval, theirs.interval, rtol=1e-5)
    np.testing.assert_allclose(ours.table, theirs.table, rtol=1e-4, atol=1e-5)
    assert not ours.notes


def test_the_profile_of_the_marginal_likelihood_of_direct_collocation_is_the_exact_one(swing):
    names = ["a", "scale(w)"]
    fit = gr.fit(Oscillator(), swing, names, gr.Collocation(criterion="laplace"))
    theirs = exact(Oscillator(), swing, names, x=0.0, v=0.0).profile("scale(w)", points=2)
    ours = fit.profile("scale(w)", points=2)
    np.testing.assert_allclose(ours.interval, theirs.interval, rtol=1e-4)


def test_a_profile_in_a_linear_unknown_is_the_parabola_of_the_standard_error(vessel):
    fit = gr.fit(Vessel(), vessel, ["b"], gr.Collocation(criterion="amle"))
    found = fit.profile("b", points=3)
    parabola = ((found.table["value"] - found.estimate) / found.std_error) ** 2
    np.testing.assert_allclose(found.table["deviance"], parabola, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.interval, fit.intervals().loc["b"], rtol=1e-6)
    assert "not a likelihood" in found.notes[0]


def test_a_profile_is_that_of_held_fits(vessel, amle):
    found = amle.profile("a", points=3)
    held = gr.fit(Vessel(a=found.interval[0]), vessel, ["b"], gr.Collocation(criterion="amle"))
    assert 2 * (held.objective - amle.objective) == pytest.approx(found.threshold, rel=1e-5)
    nearest = found.table.iloc[(found.table["value"] - found.interval[0]).abs().argmin()]
    assert float(held["b"]) == pytest.approx(float(nearest["b"]), rel=2e-2)


def test_direct_collocation_without_a_likelihood(swing):
    fit = gr.fit(Oscillator(), swing, ["a", "b"], gr.Collocation(criterion="amle"))
    found = fit.profile("a", points=3)
    assert found.shape == "bounded"
    held = gr.fit(Oscillator(a=found.interval[1]), swing, ["b"], gr.Collocation(criterion="amle"))
    assert 2 * (held.objective - fit.objective) == pytest.approx(found.threshold, rel=1e-5)
    surface = fit.surface("a", "b", points=3)
    assert float(surface.data["deviance"][1, 1]) == pytest.approx(0.0, abs=1e-6)
    assert float(surface.data["deviance"].min()) > -1e-6


def test_in_turn_has_the_same_profile(vessel, amle):
    fit = gr.fit(Vessel(), vessel, ["a", "b"], gr.Collocation(criterion="ipda"))
    np.testing.assert_allclose(fit.profile("b", points=2).interval, amle.profile("b", points=2).interval, rtol=1e-4)


def test_surfaces(amle, marginal):
    held = amle.surface("a", "b", points=3)
    follows = amle.surface("a", "b", points=3, others="profiled")
    np.testing.assert_allclose(held.data["deviance"], follows.data["deviance"], atol=1e-6)
    assert float(marginal.surface("a", "b", points=3).data["deviance"][1, 1]) == pytest.approx(0.0, abs=1e-6)


def test_ratio_tests_need_a_likelihood(vessel, amle, marginal):
    theirs = exact(Vessel(), vessel, ["a", "b"], x=0.0).test({"b": 1.0})
    assert marginal.test({"b": 1.0}).ratio == pytest.approx(theirs.ratio, rel=1e-5)
    with pytest.raises(EstimationError, match=r"criterion='amle' is not one.*criterion='laplace'"):
        amle.test({"b": 1.0})
    small = gr.fit(Vessel(), vessel, ["a"], gr.Collocation(criterion="amle"))
    with pytest.raises(EstimationError, match="Collocation with criterion='amle'"):
        gr.compare({"small": small, "large": amle}, nested=[("small", "large")])


def test_priors_count_and_scales_that_were_found_stay(vessel):
    told = gr.fit(Vessel(), vessel, ["a", "b"], gr.Collocation(criterion="amle"), priors={"b": gr.Normal(1.0, 0.01)})
    low, high = told.profile("b", points=2).interval
    assert high - low < 0.05
    found = gr.fit(Vessel(), vessel, ["a"], gr.Collocation(criterion="amle", intensities="estimate"))
    profile = found.profile("a", points=2)
    assert np.ptp(profile.table["scale(w)"]) == 0
    with pytest.raises(EstimationError, match=r"'scale\(w\)' was found from the misfit.*laplace"):
        found.profile("scale(w)")


def test_scales_that_were_found_stay_in_direct_collocation(swing):
    found = gr.fit(Oscillator(), swing, ["a"], gr.Collocation(criterion="amle", intensities="estimate"))
    profile = found.profile("a", points=2)
    assert profile.shape == "bounded"
    assert np.ptp(profile.table["scale(w)"]) == 0


def test_smoothing_says_why_not(vessel):
    fit = gr.fit(Vessel(), vessel, ["a"], gr.Collocation(criterion="smoothing"))
    with pytest.raises(EstimationError, match=r"criterion='smoothing' has no profiles.*gr.monte_carlo"):
        fit.profile("a")
    moved = gr.fit(Vessel(), vessel, ["a"], gr.Collocation(criterion="amle", debias=True))
    with pytest.raises(EstimationError, match="debias=True moved the estimates"):
        moved.profile("a")


def test_a_loaded_fit_has_the_same_profile(amle, swing, tmp_path):
    direct = gr.fit(Oscillator(), swing, ["a", "b"], gr.Collocation(criterion="amle"))
    for fit in (amle, direct):
        fit.save(tmp_path / "fit.nc")
        again = gr.load(tmp_path / "fit.nc")
        np.testing.assert_allclose(
            again.profile("a", points=2).interval, fit.profile("a", points=2).interval, rtol=1e-5
        )
