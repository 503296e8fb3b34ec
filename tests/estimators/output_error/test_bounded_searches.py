"""Searches end in bounded work, with an answer or a reason, and nothing takes a finished fit with it."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import SimulationError
from grisaille.estimation import EstimationProblem


class Slide(gr.Model):
    """A mass with dry friction."""

    m = gr.Parameter(1.0, bounds=(0.01, 100.0))
    Fc = gr.Parameter(1.0, bounds=(0.0, 100.0))
    d = gr.Parameter(1.0, bounds=(0.0, 100.0))
    q, v = gr.Variable(0.0), gr.Variable(0.0)
    u = gr.Input()
    y = gr.Output(q, noise=0.001)
    equations = [der(q) == v, m * der(v) == u - d * v - Fc * gr.sign(v)]


TRUTH = {"m": 1.3, "Fc": 0.8, "d": 0.6}


def test_a_minimum_in_an_edge_is_reached_where_the_default_search_stops_short() -> None:
    rng, t = np.random.default_rng(2), np.arange(1000) * 0.01
    u = 1.2 * np.sin(2 * np.pi * (0.2 + 0.15 * t) * t)
    y = gr.simulate(Slide(**TRUTH), t, {"u": u}).y.values
    y = y + 0.001 * rng.standard_normal(t.size) + 0.02 * np.ptp(y) * np.sin(1.3 * t)
    data = gr.Experiment(t, {"u": u}, {"y": y})
    fit = gr.fit(Slide(), data, list(TRUTH), guess={"m": 1.95, "Fc": 0.53, "d": 0.4})
    other = gr.fit(
        Slide(), data, list(TRUTH), gr.OutputError(optimizer="levenberg-marquardt"), guess=dict(fit.estimates)
    )
    assert fit.converged and "trust region had stopped" in fit.status
    assert fit.estimate.objective < other.estimate.objective + 0.05
    assert fit.estimate.evaluations < 400


def test_nothing_to_search_and_finer_steps_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.arange(200) * 0.01
    still = gr.fit(Slide(), gr.Experiment(t, {"u": 0 * t}, {"y": 0 * t}), list(TRUTH))
    assert not still.converged and "none of the unknowns m, Fc, d moves" in still.status

    def fails(self: EstimationProblem, evaluation: object) -> EstimationProblem:
        raise SimulationError("steps were used up")

    monkeypatch.setattr(EstimationProblem, "refined", fails)
    monkeypatch.setattr("grisaille.estimators.output_error.least_squares_stages.TOO_LONG", -1.0)
    u = 3 * np.sin(4 * t)
    y = gr.simulate(Slide(**TRUTH), t, {"u": u}).y.values + 0.001 * np.random.default_rng(0).standard_normal(t.size)
    fit = gr.fit(Slide(), gr.Experiment(t, {"u": u}, {"y": y}), list(TRUTH))
    assert fit.converged and abs(float(fit["m"]) - 1.3) < 5 * fit["m"].std_error
    assert any("not confirmed on finer steps" in n and "standard errors" in n for n in fit.notes)


def test_levels_of_two_outputs_cost_little_more_than_declared_ones() -> None:
    class Tanks(gr.Model):
        a, b = gr.Parameter(0.5, bounds=(0.01, 10.0)), gr.Parameter(0.5, bounds=(0.01, 10.0))
        x, z = gr.Variable(1.0), gr.Variable(0.5)
        y, v = gr.Output(x), gr.Output(1e6 * z)
        equations = [der(x) == -a * gr.sqrt(x), der(z) == a * gr.sqrt(x) - b * gr.sqrt(z)]

    t, noise = np.linspace(0.0, 1.5, 80), np.random.default_rng(1).standard_normal((2, 80))
    exact = gr.simulate(Tanks(a=0.8, b=0.6), t)
    data = gr.Experiment(t, {}, {"y": exact.y.values + 0.05 * np.sin(9 * t), "v": exact.v.values + 1e4 * noise[1]})
    fit = gr.fit(Tanks(), data, ["a", "b"])
    assert fit.converged and fit.estimate.evaluations < 40


class Heated(gr.Model):
    """A room between two temperatures at which its heater is switched."""

    tau, power = gr.Parameter(4.0, bounds=(0.1, 40.0)), gr.Parameter(6.0, bounds=(1.0, 100.0))
    T, outside, on = gr.Variable(18.0), gr.Input(), gr.Discrete(1)
    y = gr.Output(T)
    equations = [der(T) == (outside - T) / tau + power * on, gr.when(T > 21, on == 0).otherwise(T < 19, on == 1)]


def test_a_minimum_that_misses_switches_is_doubted() -> None:
    t = np.arange(0.0, 24.0, 0.1)
    outside = {"outside": 5.0 + 4.0 * np.sin(2 * np.pi * t / 24)}
    y = gr.simulate(Heated(), t, outside).y.values + 0.05 * np.random.default_rng(1).normal(size=t.size)
    data = gr.Experiment(t, outside, {"y": y})
    near, far = (
        gr.fit(Heated(), data, ["tau", "power"], gr.OutputError(), guess={"tau": 4.0 * f, "power": 6.0 / f})
        for f in (1.02, 1.2)
    )
    assert abs(float(near["tau"]) - 4.0) < 4 * near["tau"].std_error
    assert abs(float(far["tau"]) - 4.0) > 1.0
    assert [any(note.startswith("minima:") for note in fit.notes) for fit in (near, far)] == [False, True]
