"""Compiled filters: the numbers of the reference pass, and of their own derivatives in the other direction."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.filter_reference import carry
from zoo.filtered import FEED, FEED_TIMES, REACTOR, Bent, Pendulum, Reactor, swing

import grisaille as gr
from grisaille.compilation.kalman import FilterProgram
from grisaille.estimators import build_problem

RECORD = gr.Experiment(
    FEED_TIMES[:30],
    {"F": FEED[:30]},
    {
        "y1": 1 + 0.1 * np.sin(40 * FEED_TIMES[:30]),
        "y2": np.where(np.arange(30) % 7 == 3, np.nan, 0.25 + FEED_TIMES[:30] + 0.05 * np.cos(50 * FEED_TIMES[:30])),
        "y3": 1 + 0.4 * FEED_TIMES[:30] + 0.3 * (np.arange(30) == 11),
    },
    hold="zoh",
)
BENT = gr.Experiment(FEED_TIMES[:30], {}, {"y": 1 + FEED_TIMES[:30] + 0.1 * np.sin(60 * FEED_TIMES[:30])})
PENDULUM = {"k": 0.5, "L": 2.05, "scale(w)": 0.35, "noise(phi)": 0.025}


@pytest.fixture(autouse=True)
def _always_in_reverse(monkeypatch):
    """These records are too short for reverse mode to pay."""
    monkeypatch.setattr("grisaille.filtering.passes.MIN_DIRECTIONS_FOR_REVERSE", 0.0)


def posed(model, data, values, **options):
    """The runner, its steps, and the values."""
    problem = build_problem(model, data, list(values), gr.KalmanML(**options), guess=values)
    runner, named = problem.cases[0].runner, problem.cases[0].own(problem.guess)
    return runner, runner.discretise(named), named


def by_reference(runner, values, steps, **options):
    """The likelihood of a filter whose passes run in NumPy."""
    with pytest.MonkeyPatch.context() as here:
        here.setattr("grisaille.filtering.passes.Passes.carry", carry)
        return runner.likelihood(values, steps, **options)


CASES = [
    (Reactor, RECORD, REACTOR, {"propagation": "moments", "robust": 1.5}),
    (Reactor, RECORD, REACTOR, {"first_observation": "condition", "robust": ("smooth", 2.0)}),
    (Bent, BENT, {"a": 0.7, "scale(w)": 1.2}, {"filter": "unscented", "propagation": "moments"}),
    (Bent, BENT, {"a": 0.7, "scale(w)": 1.2}, {"filter": "unscented"}),
    (
        Bent, BENT, {"a": 0.7, "scale(w)": 1.2},
        {"filter": "unscented", "propagation": "square-root", "initial_covariance": {"x": 0.1}},
    ),
    (Pendulum, None, PENDULUM, {}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "data", "values", "options"), CASES)
def test_the_same_numbers(model, data, values, options):
    """By the reference and compiled, forward and in reverse, with gaps and an outlier."""
    compiled, steps, named = posed(model(), data or swing(), values, substeps=2, **options)
    wanted = by_reference(compiled, named, steps, sensitive=True).likelihood
    found = compiled.likelihood(named, steps, sensitive=True).likelihood
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    for name in ("gradient", "information", "slopes"):
        here, there = getattr(found, name), getattr(wanted, name)
        assert np.allclose(here, there, rtol=1e-10, atol=1e-12 * np.abs(there).max()), name
    for name in ("innovations", "variances"):
        assert np.allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-13, equal_nan=True), name
    back = compiled.gradient(named, steps).likelihood
    assert back.value == pytest.approx(found.value, rel=1e-13)
    assert np.allclose(back.gradient, found.gradient, rtol=1e-9, atol=1e-10)
    assert back.count == found.count
    plain = compiled.likelihood(named, steps, sensitive=False).likelihood
    assert plain.value == pytest.approx(found.value, rel=1e-13)


def test_the_program_reports_failure_as_the_reference_does():
    compiled, steps, _ = posed(Reactor(), RECORD, REACTOR, propagation="moments", substeps=2)
    broken = np.array(list({**REACTOR, "K1": -0.2, "mu_max": 50.0}.values()))
    failure = by_reference(compiled, broken, steps, sensitive=False).failure
    assert compiled.likelihood(broken, steps, sensitive=False).failure == failure != ""
    assert compiled.gradient(broken, steps).failure == failure


def test_no_names_of_the_user_in_c():
    compiled, _, _ = posed(Reactor(), RECORD, REACTOR, propagation="moments", substeps=2)
    program: FilterProgram = compiled.filter.program
    for text in (program.forward_source(), program.reverse_source()):
        assert not any(word in text for word in ("mu_max", "yield_", "S_F"))


def test_gradient_of_a_problem():
    """Objective and gradient in reverse are those of a full evaluation, priors included."""
    model = Reactor(mu_max=gr.Parameter(1.0, prior=gr.Normal(0.9, 0.1)))
    method = gr.KalmanML(propagation="moments", substeps=2)
    problem = build_problem(model, RECORD, list(REACTOR), method, guess=REACTOR)
    full = problem.evaluate(problem.guess)
    value, slope = problem.gradient(problem.guess)
    assert value == pytest.approx(full.objective, rel=1e-12)
    assert np.allclose(slope, full.slope, rtol=1e-9, atol=1e-9)
