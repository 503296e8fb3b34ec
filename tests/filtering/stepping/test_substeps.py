"""Steps of nonlinear filters: where they are needed, judged by log L, the same with and without a compiler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from zoo.filter_reference import run_interpreted

import grisaille as gr
from grisaille import der
from grisaille.compilation.kalman import PreparedPass, run_forward, run_reverse
from grisaille.estimators import build_problem
from grisaille.filtering import FilterRunner, local_errors, passes
from grisaille.filtering.stepping import StepPasses, substeps


class Pulse(gr.Model):
    """Van der Pol's oscillator: slow, then sudden."""

    m = gr.Parameter(8.0, bounds=(1.0, 100.0))
    x, v = gr.Variable(2.0), gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == v, der(v) == m * (1 - x**2) * v - x + u + w]


TIMES = np.arange(0, 16, 0.5)


def data(times=TIMES):
    """Integrated here, by small steps of Heun's method."""
    x, seen, step, noise = np.array([2.0, 0.0]), [], 1e-3, np.random.default_rng(4)

    def rate(x):
        return np.array([x[1], 8.0 * (1 - x[0] ** 2) * x[1] - x[0]])

    for _ in times:
        seen.append(x[0])
        for _ in range(round(0.5 / step)):
            first = rate(x)
            x = x + step / 2 * (first + rate(x + step * first))
    u = 0.1 * (times > 8)
    return gr.Experiment(times, {"u": u}, {"y": np.array(seen) + 0.05 * noise.standard_normal(len(times))})


def problem_of(**options):
    problem = build_problem(Pulse(), data(), ["m"], gr.KalmanML(**options))
    runner = problem.cases[0].runner
    q, dq, start = runner.posed(problem.cases[0].own(problem.guess), True)
    filter = runner.filter_on(problem.cases[0].discretisation, problem.guess)
    return problem, filter, q, dq, start


@pytest.mark.parametrize("propagation", ["moments", "linearize"])
def test_fine_steps_only_where_they_are_needed(propagation):
    problem, filter, q, _, _ = problem_of(propagation=propagation)
    steps, value = filter.steps(q), problem.evaluate(problem.guess).log_likelihood
    assert steps.max() >= 4 * np.median(steps)
    everywhere = replace(problem.cases[0].discretisation, finer=(), substeps=int(2 * steps.max()))
    other = problem.replace(cases=(replace(problem.cases[0], discretisation=everywhere),))
    change = abs(other.evaluate(problem.guess).log_likelihood - value)
    absolute, relative = substeps.TOLERANCE[propagation]
    assert change < 3 * (absolute + relative * abs(value))


def test_both_kinds_of_steps_have_one_limit():
    values = [
        p.evaluate(p.guess).log_likelihood
        for p, *_ in map(lambda o: problem_of(propagation=o), ("moments", "linearize"))
    ]
    assert values[0] == pytest.approx(values[1], abs=5e-3)


@pytest.mark.parametrize("propagation", ["moments", "linearize"])
def test_cells_with_steps_of_their_own(propagation):
    """NumPy's, forward and reverse passes agree; and a cell twice as fine is two cells."""
    _, filter, q, dq, start = problem_of(propagation=propagation, substeps=16)
    filter = filter.on(replace(filter.discretisation, finer=tuple([1, 3, 2] * 11)[: len(TIMES) - 1]))
    given = filter.prepared(q)
    s = filter.start(given, q, dq, start.x, start.z)
    forward = run_forward(filter.program.forward, given, q, s[0], s[1:], dq, True)
    plain = run_interpreted(filter.program, given.given, s[0], s[1:], dq, True)
    back = run_reverse(filter.program.reverse, given, q, s[0])
    assert np.allclose(forward.base, plain.base, rtol=1e-9)
    assert back.base[0] == pytest.approx(forward.base[0], rel=1e-12)
    assert (s[1:] @ back.ds + dq @ back.lq)[0] == pytest.approx(forward.base[1], rel=1e-7)
    every = given.given.step_by_step()
    split = run_forward(filter.program.forward, PreparedPass(every), q, s[0], s[1:], dq, True)
    assert np.allclose(split.base, forward.base, rtol=1e-10)
    at = np.concatenate([[0], np.cumsum(filter.steps(q))])
    assert np.allclose(split.kept[at], forward.kept, rtol=1e-9, atol=1e-12)


def test_local_errors_are_of_the_order_of_the_method():
    """A quarter with steps half as long, where the steps are small enough."""
    _, filter, q, _, start = problem_of(substeps=64)
    found = []
    for n in (64, 128):
        finer = filter.on(replace(filter.discretisation, substeps=2 * n))
        found.append(local_errors(StepPasses(finer, q, start.x[:1], start.z[:1]), np.full(len(TIMES) - 1, n)))
    slow = found[0] < 1e-2
    assert slow.sum() > 15
    assert np.median(found[0][slow] / found[1][slow]) == pytest.approx(4.0, rel=0.1)


def test_what_is_hardly_felt_is_taken_at_the_limit_and_more_is_refused(monkeypatch):
    """Where the work ends, steps that move log L by less than 0.02 are good enough."""
    monkeypatch.setattr(substeps, "USUAL_STEPS", 4)
    monkeypatch.setattr(substeps, "MAX_OPERATIONS", 0.0)
    monkeypatch.setattr(substeps, "MIN_EFFECT", 1e-9)
    with pytest.raises(gr.EstimationError, match=r"needs more than \d+ steps between samples at m = 8 \(log L"):
        problem_of(propagation="linearize")
    monkeypatch.setattr(substeps, "MIN_EFFECT", 1e3)
    _, filter, q, _, _ = problem_of(propagation="linearize")
    assert filter.steps(q).sum() <= 2 * substeps.ALWAYS_ALLOWED_STEPS * (len(TIMES) - 1)


def test_a_search_for_steps_runs_no_pass_twice(monkeypatch):
    problem, _, _, _, _ = problem_of()
    run, seen = passes.run_forward, []

    def counting(library, given, q, s, ds, dq, keep):
        g = given.given
        moved = b"" if g.given is None else g.given.tobytes()
        seen.append((g.steps.tobytes(), g.doublings, g.bounds.tobytes(), g.sample.tobytes(), moved))
        return run(library, given, q, s, ds, dq, keep)

    monkeypatch.setattr(passes, "run_forward", counting)
    case = problem.cases[0]
    assert case.runner.discretise(case.own(problem.guess)) == case.discretisation
    assert len(seen) > 8 and len(set(seen)) == len(seen)


def test_a_fit_chooses_steps_at_its_guess_and_where_its_search_ends(monkeypatch):
    """Not again where a second search hardly moves, nor for the test of the declared start."""
    choose, asked = FilterRunner.discretise, []

    def counting(runner, theta, known=None):
        asked.append(theta)
        return choose(runner, theta, known)

    monkeypatch.setattr(FilterRunner, "discretise", counting)
    fit = gr.fit(Pulse(), data(), ["m", "scale(w)"], gr.KalmanML(filter="extended"), guess={"m": 7.0})
    assert fit.converged, fit.status
    assert len(asked) == 2 and len(asked[0]) == 2
    again = gr.evaluate(Pulse(), data(), gr.KalmanML(filter="extended"), fit.estimates)
    assert again.log_likelihood == pytest.approx(fit.log_likelihood, abs=0.02)
