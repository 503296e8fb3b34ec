"""Fits through pickle and copies: by content, as a file would hold them, in this process and in others."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import grisaille as gr

T = np.linspace(0.0, 6.0, 25)


class Leaky(gr.Model):
    """x' = −a x + w."""

    a = gr.Parameter(0.8, bounds=(0.01, 9.0))
    x = gr.Variable(2.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.2)
    y = gr.Output(x, noise=0.05)
    equations = [gr.der(x) == -a * x + w]


class Line(gr.Model):
    """A static model."""

    p, q = gr.Parameter(0.1), gr.Parameter(0.2)
    u = gr.Input()
    y = gr.Output(p + q * u)


def data(name: str, seed: int) -> gr.Experiment:
    y = 2 * np.exp(-0.7 * T) + 0.05 * np.random.default_rng(seed).standard_normal(25)
    y[4] = np.nan
    return gr.Experiment(T, {}, {"y": y}, name=name)


def static_fit() -> gr.Fit:
    u = np.linspace(0, 1, 12)
    record = gr.Experiment(inputs={"u": u}, outputs={"y": 1 + u + 0.1 * np.cos(9 * u)})
    joint = gr.MultivariateNormal(["p", "q"], [1.0, 1.0], [[1.0, 0.1], [0.1, 1.0]])
    return gr.fit(Line(), record, ["p", "q"], gr.OutputError(), priors=[joint])


def fitted(method: object) -> gr.Fit:
    return gr.fit(Leaky(), [data("A", 1), data("B", 2)], ["a"], method)


FITS = {
    "static, joint prior": static_fit,
    "output error": lambda: fitted(gr.OutputError(loss="huber")),
    "likelihood": lambda: fitted(gr.KalmanML()),
    "ensemble": lambda: fitted(gr.SimulatedPEM(realizations=8)),
    "trajectories": lambda: fitted(gr.Collocation()),
}


@pytest.fixture(scope="module", params=list(FITS))
def fit(request: pytest.FixtureRequest) -> gr.Fit:
    return FITS[request.param]()


def same(one: gr.Fit, other: gr.Fit) -> None:
    """In print, bit for bit in numbers, and in what can be computed from it."""
    assert type(other) is gr.Fit and str(other) == str(one)
    assert other.parameters.equals(one.parameters) and other.residuals().equals(one.residuals())
    assert other.estimate.unknowns == one.estimate.unknowns and other.method == one.method
    assert other.experiments == one.experiments and other.initial_model == one.initial_model
    assert other.predict().equals(one.predict())


def test_pickle_gives_the_same_fit(fit: gr.Fit) -> None:
    same(fit, pickle.loads(pickle.dumps(fit)))


def test_copies_are_the_same_fit_and_its_own(fit: gr.Fit) -> None:
    made = copy.deepcopy(fit)
    same(fit, made)
    before = fit.estimate.theta.copy()
    made.estimate.theta[:] = 0.0
    assert np.array_equal(fit.estimate.theta, before)
    assert copy.copy(fit)[fit.names[0]] == fit[fit.names[0]]


def test_a_loaded_fit_pickles_and_a_pickled_one_saves(fit: gr.Fit, tmp_path: Path) -> None:
    fit.save(tmp_path / "fit.nc")
    same(fit, pickle.loads(pickle.dumps(gr.load(tmp_path / "fit.nc"))))
    pickle.loads(pickle.dumps(fit)).save(tmp_path / "again.nc")
    same(fit, gr.load(tmp_path / "again.nc"))


def test_a_pickled_fit_goes_on() -> None:
    fit = fitted(gr.KalmanML())
    back = pickle.loads(pickle.dumps(fit))
    assert back.states("B").equals(fit.states("B"))
    assert back.profile("a", points=3).interval == fit.profile("a", points=3).interval
    assert gr.fit(Leaky(), data("A", 1), ["a"], gr.KalmanML(), guess=back).converged


def test_a_fit_goes_to_another_process_and_back() -> None:
    """A fresh one, which never sees this file and the classes in it."""
    fit = static_fit()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(str, fit).result(timeout=300) == str(fit)
        same(fit, pool.submit(copy.copy, fit).result(timeout=300))


def test_a_criterion_at_given_values_pickles() -> None:
    """States are computed where they are asked for."""
    found = gr.evaluate(Leaky(), [data("A", 1), data("B", 2)], gr.KalmanML(), {"a": 0.6})
    back = pickle.loads(pickle.dumps(found))
    assert str(back) == str(found) and np.array_equal(back.residuals, found.residuals)
    assert all(back.states[name].equals(states) for name, states in found.states.items())


def test_studies_and_comparisons_pickle() -> None:
    fit = static_fit()
    study = gr.bootstrap(fit, runs=3, executor="serial")
    back = pickle.loads(pickle.dumps(study))
    assert back.table.equals(study.table) and back.intervals().equals(study.intervals())
    assert back.repeat(1)["p"] == study.repeat(1)["p"]
    compared = gr.compare({"one": fit, "two": fit})
    assert str(pickle.loads(pickle.dumps(compared))) == str(compared)
