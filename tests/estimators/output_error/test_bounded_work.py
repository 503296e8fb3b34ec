"""Fits of models that bend and switch end in bounded work, and say what their own options can change."""

from dataclasses import replace

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.simulation import FIT_ADVICE, SIMULATION_ADVICE, SimulationSteps


class Hysteresis(gr.Model):
    """A Bouc–Wen oscillator, whose rates bend wherever v or z changes its sign."""

    beta = gr.Parameter(1e3, bounds=(1.0, 1e5))
    gamma = gr.Parameter(0.8, bounds=(0.0, 5.0))
    x = gr.Variable(0.0, nominal=1e-4)
    v = gr.Variable(0.0, nominal=1e-2)
    z = gr.Variable(0.0, nominal=10.0)
    u = gr.Input()
    y = gr.Output(x, noise=1e-7)
    equations = [
        der(x) == v,
        2.0 * der(v) == u - 10.0 * v - 5e4 * x - z,
        der(z) == 5e4 * v - beta * (gamma * abs(v) * z - 1.1 * v * abs(z)),
    ]


class Braked(gr.Model):
    """Dry friction with an uneven damping: abs(v) bends where sign(v) jumps."""

    v, u = gr.Variable(0.0), gr.Input()
    equations = [95.1 * der(v) == u - 210.0 * v + 40.0 * abs(v) - 19.7 * gr.sign(v)]


class Sided(gr.Model):
    """The same law, side by side."""

    v, u = gr.Variable(0.0), gr.Input()
    equations = [95.1 * der(v) == u - gr.where(v > 0, 19.7 + 170.0 * v, -19.7 + 250.0 * v)]


def test_a_bend_at_a_switch_does_not_use_up_the_steps() -> None:
    t = 1e-3 * np.arange(1001)
    force = {"u": 35.0 * np.sin(20.0 * t) + 5.0 * np.sin(11.0 * t)}
    bent, sided = (gr.simulate(m, t, force, max_steps=20_000) for m in (Braked(), Sided()))
    assert np.abs(bent["v"] - sided["v"]).max() < 1e-7 * np.abs(sided["v"]).max()
    assert bent.attrs["events"] >= 6
    assert bent.attrs["steps"] < 1.2 * sided.attrs["steps"]


def test_steps_are_refined_within_the_cost_of_adaptive_ones() -> None:
    t = np.arange(600) / 750.0
    phases = np.random.default_rng(3).uniform(0, 2 * np.pi, 30)
    u = 18.0 * sum(np.sin(2 * np.pi * (5 + 4.7 * k) * t + p) for k, p in enumerate(phases))
    run = gr.simulate(Hysteresis(), t, {"u": u}, rtol=1e-10)
    data = gr.Experiment(t, {"u": u}, {"y": run["y"].values})
    fit = gr.fit(Hysteresis(), data, ["beta", "gamma"], gr.OutputError(), guess={"beta": 20.0, "gamma": 0.01})
    assert fit.converged
    assert abs(float(fit["gamma"]) * float(fit["beta"]) / 800.0 - 1) < 0.01

    (case,) = fit.estimate.cases
    refined = case.refined(fit.estimate.theta, 1e4).discretisation
    equal = (
        replace(case, discretisation=SimulationSteps("explicit", 2.5e-4))
        .refined(fit.estimate.theta, 1e4)
        .discretisation
    )
    assert refined.step == equal.step == 0, "bends ask for adaptive steps, not for equal ones without end"


def test_advice_names_options_of_the_caller() -> None:
    for option in ("max_steps", "method=", "atol"):
        assert option in f"{SIMULATION_ADVICE.steps} {SIMULATION_ADVICE.size}"
        assert option not in f"{FIT_ADVICE.steps} {FIT_ADVICE.size} {FIT_ADVICE.tolerance} {FIT_ADVICE.step}"
