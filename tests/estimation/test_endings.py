"""How searches end: limits that are kept, one meaning of converged, and interruptions that keep what was reached."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

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
    "trust-region": gr.OutputError(compiled=False),
    "gauss-newton": gr.OutputError(compiled=False, optimizer="gauss-newton"),
    "levenberg-marquardt": gr.OutputError(compiled=False, optimizer="levenberg-marquardt"),
    "nelder-mead": gr.OutputError(compiled=False, optimizer="nelder-mead"),
    "kalman": gr.KalmanML(compiled=False),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_limit_is_kept_and_told(name: str) -> None:
    method = METHODS[name]
    few = type(method)(**{**method.options, "max_evaluations": 4})
    fit = gr.fit(Pair(), record(), ["a", "b"], few)
    # polishing and the curvature for standard errors come after the search
    assert fit.estimate.evaluations <= 4 + 25
    assert fit.converged or "limit" in fit.status
    assert not (fit.converged and "limit" in fit.status)


@pytest.mark.parametrize("name", ["trust-region", "gauss-newton", "kalman", "collocation", "laplace", "simulated"])
def test_an_interruption_keeps_what_was_reached(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        "collocation": gr.Collocation(compiled=False),
        "laplace": gr.Collocation(criterion="laplace", compiled=False),
        "simulated": gr.SimulatedPEM(realizations=4, compiled=False),
    }
    method, seen = METHODS.get(name) or others[name], []

    def stop(evaluations: int, objective: float) -> None:
        seen.append(objective)
        if len(seen) == 3:
            raise KeyboardInterrupt

    from grisaille.estimators.fitting import build_problem, fit_problem

    model = Driven() if name in ("collocation", "laplace") else Pair()
    problem = build_problem(model, record(), ["a", "b"], method)
    fit = fit_problem(model, problem, method, {}, stop)
    assert not fit.converged and fit.status.startswith("INTERRUPTED")
    values = np.array([float(fit["a"]), float(fit["b"])])
    assert not np.array_equal(values, [0.3, 2.0]) and np.isfinite(values).all()
    assert "INTERRUPTED" in str(fit)
    again = gr.fit(model, record(), ["a", "b"], method, guess=fit)
    assert again.converged


def test_direct_collocation_keeps_its_first_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grisaille.estimators.collocation.elements.Elements.judged", stopped)
    fit = gr.fit(Pair(), record(), ["a", "b"], gr.Collocation())
    assert fit.status.startswith("INTERRUPTED") and float(fit["a"]) == pytest.approx(0.8, abs=0.2)


def test_an_interruption_before_anything_was_reached_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from grisaille.estimation.problem import Problem

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        gr.fit(Pair(), record(), ["a", "b"], gr.OutputError(compiled=False))
