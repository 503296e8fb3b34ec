"""A filter from outside the package: nothing inside knows it, and a fit by it is that of the exact one."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError, EstimationError
from grisaille.estimators import build_problem
from grisaille.filtering import Filter, FilterMethod, FilterStates, Likelihood, ModelFunctions


class Tank(gr.Model):
    """A level driven by white noise."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    b = gr.Parameter(2.0, bounds=(0.0, 9.0))
    u = gr.Input()
    h = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(h, noise=0.05)
    equations = [der(h) == b * u - k * h + w]


@dataclass(frozen=True)
class ByHand(FilterMethod):
    """The Kalman filter of one state as a textbook has it."""

    scale: float = 1.0

    def make(self, model, record, start):
        return _ByHand(model, record, start)


class _ByHand(Filter):
    def run(self, at):
        f, q, (t, u), y = ModelFunctions(self.model), at.q, self.at_samples(self.cells(at.q)), self.record.y[:, 0]
        (x,), ((P,),) = self.start_moments(at)
        e, S, means, variances = (np.full(len(t), np.nan) for _ in range(4))
        for k in range(len(t)):
            if k:
                d = t[k] - t[k - 1]
                constant, at_one = f.drift(0.0, np.array([[0.0], [1.0]]), u[k - 1], q)[:, 0]
                a, B = at_one - constant, f.noise(0.0, np.zeros((1, 1)), u[k - 1], q)[0, 0, 0]
                F = np.exp(a * d)
                x, P = F * x + constant * (F - 1) / a, F * P * F + B**2 * (F**2 - 1) / (2 * a)
            R = f.variance(0.0, np.zeros((1, 1)), u[k], q)[0, 0, 0]
            e[k], S[k] = y[k] - x, P + R
            if np.isfinite(y[k]):
                x, P = x + P / S[k] * e[k], P - P**2 / S[k]
            means[k], variances[k] = x, P
        return e, S, means, variances

    def log_likelihood(self, at):
        e, S, _, _ = self.run(at)
        return Likelihood.of(e[:, None], S[:, None, None])

    def states(self, at):
        _, _, x, P = self.run(at)
        return FilterStates(x[:, None], P[:, None, None])


TIMES = np.linspace(0.0, 12.0, 61)
INPUT = np.where(TIMES % 4 < 2, 1.0, 0.3)
START = {"h": 0.04}


def record() -> gr.Experiment:
    seen = gr.simulate(Tank(), TIMES, {"u": INPUT}, realizations=1, seed=3, noise=True)["y"].values[0]
    seen[[7, 20]] = np.nan
    return gr.Experiment(TIMES, {"u": INPUT}, {"y": seen}, name="tank")


@pytest.fixture(scope="module")
def fits():
    names = ["k", "b", "scale(w)"]
    ways = [gr.KalmanML(filter=f, initial_covariance=START) for f in (ByHand(), "linear")]
    return [gr.fit(Tank(), record(), names, way) for way in ways]


@pytest.mark.parametrize("start", [START, "first-sample", "stationary"])
def test_the_likelihood_is_that_of_the_exact_filter(start):
    names = ["k", "b", "scale(w)", "start(h)"]
    problems = [
        build_problem(Tank(), record(), names, gr.KalmanML(filter=f, initial_covariance=start))
        for f in (ByHand(), "linear")
    ]
    found, wanted = (p.evaluate(p.guess) for p in problems)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-9)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-6, atol=1e-6 * np.abs(wanted.slope).max())
    assert np.allclose(found.curvature, wanted.curvature, rtol=1e-5, atol=1e-7 * np.abs(wanted.curvature).max())
    assert np.allclose(found.residuals, wanted.residuals, atol=1e-9)


def test_a_fit_finds_the_same_and_says_how(fits):
    own, exact = fits
    assert own.converged, own.status
    for name in own.parameters.index:
        se = exact.parameters.std_error[name]
        assert abs(own.parameters.estimate[name] - exact.parameters.estimate[name]) < 1e-4 * se
        assert own.parameters.std_error[name] == pytest.approx(se, rel=1e-3)
    assert any(note.startswith("derivatives: the filter ByHand has none") for note in own.notes)
    assert not any(note.startswith("derivatives:") for note in exact.notes)


def test_states_are_filtered_only_where_there_is_no_smoother(fits):
    own, exact = (fit.states(names=["h"]).h for fit in fits)
    assert own.given.values.tolist() == ["filtered"]
    assert np.allclose(own.sel(given="filtered"), exact.sel(given="filtered"), atol=1e-4)
    with pytest.raises(EstimationError, match="ByHand predicts from sample to sample only"):
        fits[0].predict(horizon=3)


def test_it_is_saved_by_its_name_and_numbers(fits, tmp_path, monkeypatch):
    fits[0].save(tmp_path / "fit.nc")
    again = gr.load(tmp_path / "fit.nc")
    assert again.method == fits[0].method and again.method.filter == ByHand()
    assert str(again) == str(fits[0])
    monkeypatch.delitem(FilterMethod.known, "ByHand")
    with pytest.raises(DataError, match="The filter ByHand is not known here: import the module"):
        gr.load(tmp_path / "fit.nc")


def test_records_that_continue_and_others_are_validated_as_by_the_exact_filter(fits):
    later, u = np.linspace(12.2, 18.0, 30), np.full(30, 0.3)
    seen = gr.simulate(Tank(), later, {"u": u}, realizations=1, seed=4, noise=True)["y"].values[0]
    for times in (later, later - 12.2):
        other = gr.Experiment(times, {"u": u}, {"y": seen}, name="other")
        own, exact = (fit.validate(other) for fit in fits)
        assert "begins in the state that" in str(own) or times[0] == 0.0
        np.testing.assert_allclose(own.table["rms"], exact.table["rms"], rtol=1e-4)


@dataclass(frozen=True)
class Forgetful(FilterMethod):
    """Loses its state where nothing was measured."""

    def make(self, model, record, start):
        return _Forgetful(model, record, start)


class _Forgetful(_ByHand):
    def run(self, at):
        e, S, means, variances = super().run(at)
        e[np.argmax(np.isnan(e)) :] = np.nan
        return e, S, means, variances


def test_samples_that_a_filter_leaves_out_are_not_taken_for_gaps():
    words = r"the filter _?Forgetful has no innovation \(NaN\) of 'y' at t = 1.6, where it was measured"
    with pytest.raises(EstimationError, match=words):
        gr.fit(Tank(), record(), ["k"], gr.KalmanML(filter=Forgetful(), initial_covariance=START))


def test_options_of_our_filters_are_refused_beside_it():
    for option in ({"robust": 3.0}, {"substeps": 4}, {"propagation": "moments"}, {"horizon": 2}):
        with pytest.raises(EstimationError, match="goes with the package's own filters: ByHand"):
            gr.KalmanML(filter=ByHand(), **option)
    with pytest.raises(EstimationError, match="FilterMethod"):
        gr.KalmanML(filter="kalman")
    with pytest.raises(EstimationError, match="finite variances"):
        gr.fit(Tank(), record(), ["k"], gr.KalmanML(filter=ByHand(), initial_covariance="diffuse"))


class Nothing(Filter):
    """A filter that breaks down."""

    def log_likelihood(self, at):
        raise EstimationError("it has no value here.")

    states = log_likelihood


@dataclass(frozen=True)
class Broken(FilterMethod):
    kind: str = "raises"

    def make(self, model, record, start):
        return Nothing(model, record, start) if self.kind == "raises" else self.kind


def test_it_is_short() -> None:
    assert sum(len(inspect.getsource(part).splitlines()) for part in (ByHand, _ByHand)) <= 40


def test_a_filter_that_breaks_down_says_so():
    with pytest.raises(EstimationError, match="it has no value here"):
        gr.fit(Tank(), record(), ["k"], gr.KalmanML(filter=Broken()))
    with pytest.raises(EstimationError, match="must return a filter"):
        gr.fit(Tank(), record(), ["k"], gr.KalmanML(filter=Broken("no filter")))
