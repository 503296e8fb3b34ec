"""Filters as loops over functions of one point: the numbers of their formulas, in text of bounded length."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from zoo.filter_reference import carry
from zoo.filtered import Pendulum, swing

import grisaille as gr
from grisaille import der, exp, log, sin
from grisaille.compilation import CSource, tangent_printer
from grisaille.compilation.kalman import build_filter, program, run_forward, run_reverse
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 3.0, 16)
FALL = np.exp(-0.5 * TIMES)
LONGEST = 1000
"""Lines of the longest function of a filter of sixteen states; written out, 23 000."""


class Spring(gr.Model):
    """A hardening spring, whose length is an algebraic unknown: z + c z³ = x + 0.2 w."""

    a, c = gr.Parameter(0.9), gr.Parameter(0.3)
    x, z = gr.Variable(start=2.0), gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    y = gr.Output(z + 0.1 * x, noise=0.05)
    equations = [der(x) == -a * z + w, z + c * z**3 == x + 0.2 * w]


class Drifting(gr.Model):
    """A drift that does not depend on the states, an input joined by lines, a curved output."""

    a = gr.Parameter(0.5)
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.3)
    u = gr.Input()
    w1, w2 = (gr.Disturbance(gr.spectra.white(), scale=0.2) for _ in range(2))
    y = gr.Output(exp(a * x) + 0.2 * v**2, noise=0.05)
    equations = [der(x) == a * u + w1, der(v) == sin(u) + w2]


class Gaps(gr.Model):
    """Three outputs, of which one is undefined where it is not measured, and noise that is a formula."""

    a, b = gr.Parameter(0.5), gr.Parameter(0.1)
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.3)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.resonance(frequency=2.0, damping=0.3), scale=0.2)
    y1 = gr.Output(log(x + v**2), noise=0.05)
    y2 = gr.Output(x * v, noise=0.02 + 0.1 * b)
    y3 = gr.Output(1 / u, noise=0.02)
    equations = [der(x) == -a * x**3 + v + 0.1 * gr.time, der(v) == -sin(x) - b * v * u + u + w]


def without(k: int) -> np.ndarray:
    """Ones, and nothing in every k-th place."""
    return np.where(np.arange(len(TIMES)) % k == 2, np.nan, 1.0)


INPUT = np.where(np.arange(len(TIMES)) == 2, 0.0, 0.6 + 0.3 * np.cos(TIMES))
RECORDS = {
    "spring": (Spring, gr.Experiment(TIMES, {}, {"y": FALL}), {"a": 0.8, "c": 0.35, "scale(w)": 0.3, "start(x)": 2.1}),
    "drifting": (
        Drifting, gr.Experiment(TIMES, {"u": np.cos(TIMES)}, {"y": 1 + FALL}, hold="foh"),
        {"a": 0.5, "scale(w1)": 0.2, "noise(y)": 0.05},
    ),
    "gaps": (
        Gaps,
        gr.Experiment(
            TIMES, {"u": INPUT},
            {"y1": 0.3 * FALL * without(4), "y2": 0.4 * FALL * without(3), "y3": np.where(INPUT > 0, 2 * FALL, np.nan)},
            hold="zoh",
        ),
        {"a": 0.5, "b": 0.1, "scale(w)": 0.2, "noise(y1)": 0.05},
    ),
    "pendulum": (Pendulum, None, {"k": 0.5, "L": 2.05, "scale(w)": 0.35, "noise(phi)": 0.025}),
}  # fmt: skip
ROUNDING = {("unscented", "pendulum"): 1e-8}
"""Roots of a covariance that is singular on the constraints have half of its digits."""


CASES = [
    *(("extended", name, "linearize") for name in ("spring", "drifting", "gaps", "pendulum")),
    ("iterated", "spring", "linearize"),
    *(("unscented", name, "linearize") for name in ("spring", "gaps", "pendulum")),
    ("extended", "pendulum", "moments"),
    ("iterated", "gaps", "moments"),
    ("unscented", "spring", "moments"),
]


@pytest.mark.parametrize(("kind", "name", "propagation"), CASES)
def test_loops_have_the_numbers_of_formulas(monkeypatch, kind, name, propagation):
    """Likelihood, gradient forward and in reverse, information and innovations, with every length of text as loops."""
    monkeypatch.setattr(program, "MAX_UNROLLED_PRODUCTS", 0)
    monkeypatch.setattr("grisaille.filtering.passes.MIN_DIRECTIONS_FOR_REVERSE", 0.0)
    model, record, values = RECORDS[name]
    method = gr.KalmanML(filter=kind, propagation=propagation, substeps=2)
    problem = build_problem(model(), record or swing(), list(values), method, guess=values)
    runner, named = problem.cases[0].runner, problem.cases[0].own(problem.guess)
    steps = runner.discretise(named)
    assert runner.filter_on(steps, named).program.loops is not None
    looped = runner.likelihood(named, steps, sensitive=True).likelihood
    with monkeypatch.context() as here:
        here.setattr("grisaille.filtering.passes.Passes.carry", carry)
        wanted = runner.likelihood(named, steps, sensitive=True).likelihood
    bound = ROUNDING.get((kind, name), 1e-12)
    back = runner.gradient(named, steps).likelihood
    plain = runner.likelihood(named, steps, sensitive=False).likelihood
    for value in (looped.value, back.value, plain.value):
        assert value == pytest.approx(wanted.value, rel=bound)
    for given in ("gradient", "information", "slopes", "innovations", "variances"):
        here, there = getattr(looped, given), getattr(wanted, given)
        assert np.allclose(here, there, rtol=0, atol=bound * np.nanmax(np.abs(there)), equal_nan=True), given
    assert np.allclose(back.gradient, wanted.gradient, rtol=0, atol=bound * np.abs(wanted.gradient).max())


def chain(n: int) -> gr.Model:
    """n/2 − 1 masses on hardening springs, shaken by a resonance."""
    count = n // 2 - 1

    class Masses(gr.Model):
        k = gr.Parameter(4.0, bounds=(1.0, 9.0))
        x, v = gr.Variable(start=0.1, size=count), gr.Variable(start=0.0, size=count)
        w = gr.Disturbance(gr.spectra.resonance(frequency=1.5, damping=0.2), scale=0.4)
        y = gr.Output(x[count - 1], noise=0.02)

        def equations(self) -> list[object]:
            ends = [0.0, *(self.x[i] for i in range(count)), 0.0]
            pulls = [self.k * (b - a) + 0.5 * (b - a) ** 3 for a, b in pairwise(ends)]
            forces = [self.w, *(0.0 for _ in range(count - 1))]
            moved = [der(self.x[i]) == self.v[i] for i in range(count)]
            return moved + [der(self.v[i]) == pulls[i + 1] - pulls[i] + forces[i] for i in range(count)]

    return Masses()


@pytest.mark.parametrize("kind", ["extended", "iterated", "unscented"])
def test_no_function_of_a_filter_of_sixteen_states_is_long(kind):
    """Straight-line functions cost a compiler more than their length."""
    record = gr.Experiment(TIMES, {}, {"y": 0.1 * np.sin(2 * TIMES)})
    problem = build_problem(chain(16), record, ["k", "scale(w)"], gr.KalmanML(filter=kind, substeps=1))
    case = problem.cases[0]
    made = case.runner.prepared_at(case.own(problem.guess)).program
    for text in (made.forward_source(), made.reverse_source()):
        assert max(len(body.splitlines()) for body in re.split(r"^}", text, flags=re.MULTILINE)) < LONGEST
        assert len(text.splitlines()) < 5 * LONGEST


def test_directions_in_parts_are_the_same_bits(monkeypatch):
    """A filter whose functions are cut, beside the same one whole."""
    model, record, values = RECORDS["gaps"]
    found = []
    for whole in (10**9, 100):
        monkeypatch.setattr(tangent_printer, "MAX_WHOLE_LINES", whole)
        monkeypatch.setattr(tangent_printer, "INSTRUCTIONS_PER_FUNCTION", 60)
        monkeypatch.setattr("grisaille.compilation.printer.INSTRUCTIONS_PER_FUNCTION", 60)
        method = gr.KalmanML(filter="extended", propagation="moments", substeps=2)
        problem = build_problem(model(), record, list(values), method, guess=values)
        program._programs.clear()
        evaluation = problem.evaluate(problem.guess)
        found.append((evaluation.objective, evaluation.slope.tobytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["extended", "unscented"])
def test_matrices_of_the_thread_have_the_same_bits(kind):
    """As those of filters of many states, which have no room on a stack."""
    model, record, values = RECORDS["gaps"]
    problem = build_problem(model(), record, list(values), gr.KalmanML(filter=kind, substeps=2), guess=values)
    runner, named = problem.cases[0].runner, problem.cases[0].own(problem.guess)
    filter, (q, dq, start) = runner.filter_on(runner.discretise(named), named), runner.posed(named, True)
    given = filter.prepared(q)
    s = filter.start(given, q, dq, start.x, start.z)
    loops = filter.program.formulation.looped
    found = []
    for sizes in (loops.sizes, {**loops.sizes, "MOST_ON_STACK": 0}):
        made = replace(loops, sizes=sizes)
        forward, back = (build_filter(CSource(made.source(d), made.text_length), 1) for d in ("forward", "reverse"))
        passes = run_forward(forward, given, q, s[0], s[1:], dq, True), run_reverse(back, given, q, s[0])
        found.append([passes[0].base, passes[0].information, passes[0].kept, passes[1].ds, passes[1].lq])
    for here, there in zip(*found, strict=True):
        assert np.array_equal(here, there, equal_nan=True)


def test_forty_states():
    record = gr.Experiment(TIMES, {}, {"y": 0.1 * np.sin(2 * TIMES)})
    problem = build_problem(chain(40), record, ["k"], gr.KalmanML(filter="extended", substeps=1))
    found, h = problem.evaluate(problem.guess), 1e-4
    ends = [problem.evaluate(problem.guess + s * h, sensitive=False).objective for s in (1, -1)]
    assert found.slope[0] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)
