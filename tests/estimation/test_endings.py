"""How searches end: limits that are kept, one meaning of converged, and interruptions that keep what was reached."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation import Fitted
from grisaille.optimization import SearchJournal

TIMES = np.linspace(0.0, 8.0, 33)


class Pair(gr.Model):
    a, b = gr.Parameter(0.3, bounds=(0.01, 9.0)), gr.Parameter(2.0, bounds=(0.01, 9.0))
    x, z = gr.Variable(1.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.02)
    y = gr.Output(z, noise=0.01)
    equations = [der(x) == -a * x, der(z) == a * x - b * z + w]


class Driven(gr.Model):
    """The same with a disturbance in every equation, for splines."""

    a, b = gr.Parameter(0.3, bounds=(0.01, 9.0)), gr.Parameter(2.0, bounds=(0.01, 9.0))
    x, z = gr.Variable(1.0), gr.Variable(0.0)
    v, w = (gr.Disturbance(gr.spectra.white(), scale=0.02) for _ in range(2))
    y = gr.Output(z, noise=0.01)
    equations = [der(x) == -a * x + v, der(z) == a * x - b * z + w]


def record() -> gr.Experiment:
    a, b = 0.8, 1.3
    z = a / (b - a) * (np.exp(-a * TIMES) - np.exp(-b * TIMES))
    return gr.Experiment(TIMES, {}, {"y": z + 0.01 * np.random.default_rng(5).standard_normal(33)})


METHODS = {
    "trust-region": gr.OutputError(),
    "gauss-newton": gr.OutputError(optimizer="gauss-newton"),
    "levenberg-marquardt": gr.OutputError(optimizer="levenberg-marquardt"),
    "nelder-mead": gr.OutputError(optimizer="nelder-mead"),
    "multiple shooting": gr.OutputError(shooting="multiple", pieces=3),
    "soft loss": gr.OutputError(loss="soft_l1"),
    "kalman": gr.KalmanML(),
    "transform": gr.KalmanML(bounds="transform"),
    "simulated": gr.SimulatedPEM(realizations=4),
    "simulated simplex": gr.SimulatedPEM(realizations=4, search="nelder-mead"),
    "stochastic": gr.SimulatedPEM(realizations=4, search="stochastic"),
    "variances": gr.SimulatedPEM(realizations=4, match="mean-variance"),
}
COLLOCATION = {
    "amle": gr.Collocation(criterion="amle"),
    "laplace": gr.Collocation(criterion="laplace"),
    "smoothing": gr.Collocation(criterion="smoothing"),
}
BEYOND = {"kalman": 30, "transform": 30, "stochastic": 70}
"""Evaluations after a search: the curvature for standard errors (or the first epoch of batches); three otherwise."""


@pytest.mark.parametrize("name", METHODS)
def test_a_limit_is_kept_and_told(name: str) -> None:
    method, few = METHODS[name], 4
    limit = {"max_iterations": 1} if isinstance(method, gr.SimulatedPEM) else {"max_evaluations": few}
    fit = gr.fit(Pair(), record(), ["a", "b"], type(method)(**{**method.options, **limit}))
    most = 50 if "simplex" in name else BEYOND.get(name, 0) + few
    assert fit.estimate.evaluations <= most + 3
    assert not (fit.converged and "limit" in fit.status)
    if not fit.converged:
        assert fit.status.startswith("NOT converged after") and "the limit of evaluations was reached" in fit.status


def test_a_limit_is_kept_over_all_rounds_of_noise_levels() -> None:
    class Open(gr.Model):
        a, b = gr.Parameter(0.3), gr.Parameter(2.0)
        x, z = gr.Variable(1.0), gr.Variable(0.0)
        y, v = gr.Output(z), gr.Output(x + z)
        equations = [der(x) == -a * x, der(z) == a * x - b * z]

    x, z = np.exp(-0.8 * TIMES), 0.8 / 0.5 * (np.exp(-0.8 * TIMES) - np.exp(-1.3 * TIMES))
    noise = np.random.default_rng(5).standard_normal((2, 33))
    data = gr.Experiment(TIMES, {}, {"y": z + 0.01 * noise[0], "v": x + z + 0.2 * noise[1]})
    for limit in (3, 9, 25, 400):
        fit = gr.fit(Open(), data, ["a", "b"], gr.OutputError(max_evaluations=limit))
        assert fit.estimate.evaluations <= limit + 3
        assert fit.converged or "limit" in fit.status
        assert fit.converged == (limit == 400), fit.status


@pytest.mark.parametrize("name", [*METHODS, *COLLOCATION])
def test_an_interruption_keeps_what_was_reached(name: str) -> None:
    method, seen = METHODS.get(name) or COLLOCATION[name], []

    def stop(evaluations: int, objective: float) -> None:
        seen.append(objective)
        if len(seen) == 3:
            raise KeyboardInterrupt

    from grisaille.estimators import build_problem, fit_problem

    model = Driven() if name in COLLOCATION else Pair()
    problem = build_problem(model, record(), ["a", "b"], method)
    fit = fit_problem(model, problem, method, {}, stop, kind=Fitted)
    assert not fit.converged and fit.status.startswith("INTERRUPTED")
    values = np.array([float(fit["a"]), float(fit["b"])])
    assert not np.array_equal(values, [0.3, 2.0]) and np.isfinite(values).all()
    assert "INTERRUPTED" in str(fit)
    again = gr.fit(model, record(), ["a", "b"], method, guess=fit)
    assert again.converged


@pytest.mark.parametrize(
    "options",
    [{"optimizer": "ipopt"}, {"optimizer": "ipopt", "transcription": "direct"}, {"transcription": "direct"}],
    ids=str,
)
def test_a_signal_ends_steps_over_trajectories(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In compiled code, too, from which no exception comes back."""
    step, seen = SearchJournal.step, []

    def stop(self: SearchJournal, theta: np.ndarray) -> None:
        step(self, theta)
        seen.append(theta)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SearchJournal, "step", stop)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    try:
        fit = gr.fit(Driven(), record(), ["a", "b"], gr.Collocation(criterion="amle", **options))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert fit.status.startswith("INTERRUPTED after 3 evaluations") and len(seen) == 3
    np.testing.assert_array_equal(fit.estimate.theta, seen[-1])


def test_direct_collocation_keeps_its_first_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grisaille.estimators.collocation.element_trajectories.Elements.with_tested_residuals", stopped)
    fit = gr.fit(Pair(), record(), ["a", "b"], gr.Collocation())
    assert fit.status.startswith("INTERRUPTED") and float(fit["a"]) == pytest.approx(0.8, abs=0.2)


def test_an_interruption_stops_a_study(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimation import EstimationProblem

    evaluate, calls = EstimationProblem.evaluate, []

    def stop(self, theta, **options):
        calls.append(theta)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return evaluate(self, theta, **options)

    monkeypatch.setattr(EstimationProblem, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        gr.bootstrap(
            gr.fit(Pair(), record(), ["a", "b"], METHODS["trust-region"]), runs=50, executor="serial", progress=False
        )
    assert len(calls) == 30


def test_an_interruption_before_anything_was_reached_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimation import EstimationProblem

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EstimationProblem, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        gr.fit(Pair(), record(), ["a", "b"], gr.OutputError())
