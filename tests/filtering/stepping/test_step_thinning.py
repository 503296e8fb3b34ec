"""Steps taken away where they are not needed: log L stays that of steps without end, on stiff models and others.

The reference integrates the equations of mean and covariance between samples by SciPy's LSODA, and updates by the
textbook's formulas.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.estimators.kalman_ml import LikelihoodSearch
from grisaille.filtering.stepping import step_thinning, substeps
from grisaille.optimization import scoring

TIMES = 0.01 * np.arange(41)
VOLTS = 6.0 * np.sign(np.sin(2 * np.pi * TIMES / 0.23)) + 2.0 * np.sin(2 * np.pi * TIMES / 0.071)
START = {"i": 0.01, "v": 0.04, "th": 1e-6}


def motor(L, hiss, load):
    """A motor whose friction turns round within a small part of an interval; L/R from milliseconds to microseconds."""
    inductance, sigma_i, sigma_v = L, hiss, load

    class Motor(gr.Model):
        R, k = gr.Parameter(1.2, bounds=(0.1, 10.0)), gr.Parameter(0.05, bounds=(1e-3, 1.0))
        J, Tc = gr.Parameter(2e-4, bounds=(1e-6, 1e-2)), gr.Parameter(0.01, bounds=(0.0, 1.0))
        i, v, th = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        u = gr.Input()
        hiss = gr.Disturbance(gr.spectra.white(), scale=sigma_i)
        load = gr.Disturbance(gr.spectra.white(), scale=sigma_v)
        angle = gr.Output(th, noise=2e-3)
        amps = gr.Output(i, noise=0.05)
        equations = [
            inductance * der(i) == u - R * i - k * v + hiss,
            J * der(v) == k * i - 1e-4 * v - Tc * gr.tanh(v / 0.5) + load,
            der(th) == v,
        ]

    return Motor


def rate(x, u, L, R=1.2, k=0.05, J=2e-4, Tc=0.01):
    i, v, _ = x
    f = np.array([(u - R * i - k * v) / L, (k * i - 1e-4 * v - Tc * np.tanh(v / 0.5)) / J, v])
    bend = Tc / 0.5 / np.cosh(min(abs(v / 0.5), 300.0)) ** 2
    A = np.array([[-R / L, -k / L, 0.0], [k / J, (-1e-4 - bend) / J, 0.0], [0.0, 1.0, 0.0]])
    return f, A


def record(L, seed=3):
    """By exponential steps of the current and Heun's of the rest."""
    rng, x, seen, n = np.random.default_rng(seed), np.zeros(3), [], 200
    h = (TIMES[1] - TIMES[0]) / n
    for u in VOLTS:
        seen.append([x[2] + 2e-3 * rng.standard_normal(), x[0] + 0.05 * rng.standard_normal()])
        for _ in range(n):
            rest = (u - 0.05 * x[1]) / 1.2
            i = rest + (x[0] - rest) * np.exp(-1.2 / L * h)
            dv = rate(x, u, L)[0][1]
            x = np.array([i, x[1] + h * dv, x[2] + h * x[1]]) + np.array([0.0, 0.1 * np.sqrt(h), 0.0]) * (
                rng.standard_normal(3)
            )
    seen = np.array(seen)
    return gr.Experiment(TIMES, {"u": VOLTS}, {"angle": seen[:, 0], "amps": seen[:, 1]})


def reference(L, hiss, load, data):
    """log L of the extended filter."""
    x, P, total = np.zeros(3), np.diag(list(START.values())), 0.0
    W, C, R = np.diag([(hiss / L) ** 2, (load / 2e-4) ** 2, 0.0]), np.array([[0, 0, 1.0], [1.0, 0, 0]]), [4e-6, 2.5e-3]
    y = np.column_stack([data.outputs["angle"].values, data.outputs["amps"].values])

    def slope(t, s, u):
        f, A = rate(s[:3], u, L)
        P = s[3:].reshape(3, 3)
        return np.concatenate([f, (A @ P + P @ A.T + W).ravel()])

    for k, u in enumerate(VOLTS):
        e, S = y[k] - C @ x, C @ P @ C.T + np.diag(R)
        total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        K = P @ C.T @ np.linalg.inv(S)
        x, P = x + K @ e, P - K @ S @ K.T
        if k + 1 < len(TIMES):
            s = np.concatenate([x, P.ravel()])
            end = solve_ivp(slope, (0.0, 0.01), s, "LSODA", rtol=1e-9, atol=1e-13, args=(u,)).y[:, -1]
            x, P = end[:3], (end[3:].reshape(3, 3) + end[3:].reshape(3, 3).T) / 2
    return total


def problem_of(model, data, **options):
    method = gr.KalmanML(filter="extended", initial_covariance=START, **options)
    return build_problem(model(), data, ["R", "k", "J", "Tc"], method)


@pytest.mark.parametrize("L, hiss, load", [(1e-2, 0.0, 1e-4), (1e-5, 0.0, 1e-4), (1e-5, 2e-4, 1e-4), (1e-5, 2e-4, 0.0)])
def test_stiff_and_not_log_likelihood_is_that_of_small_steps(L, hiss, load):
    """White noise on the fast state, on the slow one and on both; few steps, whatever the pole."""
    data = record(L)
    problem = problem_of(motor(L, hiss, load), data)
    value = problem.evaluate(problem.guess, sensitive=False).log_likelihood
    absolute, relative = substeps.TOLERANCE["linearize"]
    assert value == pytest.approx(reference(L, hiss, load, data), abs=absolute + relative * abs(value))
    steps = problem.cases[0].discretisation
    counts = steps.substeps * np.array(steps.finer or (1,))
    assert counts.mean() <= max(4, counts.max() / 4)


@pytest.fixture(scope="module")
def sharp():
    return problem_of(motor(1e-4, 1e-3, 1e-4), record(1e-4))


def test_steps_are_spent_where_the_friction_turns(sharp):
    steps = sharp.cases[0].discretisation
    counts = steps.substeps * np.array(steps.finer)
    assert counts.max() >= 8 * np.median(counts)
    assert counts.mean() < 0.4 * counts.max()


def test_derivatives_are_those_of_the_steps_taken(sharp):
    slope, scale = sharp.evaluate(sharp.guess).gradient, sharp.guess
    back = sharp.gradient(sharp.guess)[1]
    for k, size in enumerate(scale):
        h = 1e-5 * size * np.eye(len(scale))[k]
        f = [sharp.evaluate(sharp.guess + j * h, sensitive=False).objective for j in (-2, -1, 1, 2)]
        difference = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h[k])
        assert slope[k] == pytest.approx(difference, rel=1e-6, abs=1e-7 * np.abs(slope * scale).max() / size)
    assert back == pytest.approx(slope, rel=1e-8)


def test_nothing_is_given_away_that_log_likelihood_feels(monkeypatch):
    """Where fewer steps move log L by more than the tolerance all are kept."""
    data = record(1e-3)
    monkeypatch.setattr(step_thinning, "LIKELIHOOD_SHARE", dict.fromkeys(step_thinning.LIKELIHOOD_SHARE, 0.0))
    every = problem_of(motor(1e-3, 2e-3, 1e-4), data).cases[0].discretisation
    monkeypatch.undo()
    fewer = problem_of(motor(1e-3, 2e-3, 1e-4), data).cases[0].discretisation
    assert every.substeps * np.mean(every.finer or (1,)) > 2 * fewer.substeps * np.mean(fewer.finer)


def test_beside_cells_with_many_steps_there_are_a_quarter_as_many(sharp):
    steps = sharp.cases[0].discretisation
    counts = steps.substeps * np.array(steps.finer)
    for many in np.flatnonzero(counts >= 16):
        beside = counts[max(many - 1, 0) : many + 2]
        assert counts[many] < beside.max() or (4 * beside >= counts[many]).all()


def test_steps_that_are_given_stay(sharp):
    given = problem_of(motor(1e-3, 2e-3, 1e-4), record(1e-3), substeps=8).cases[0].discretisation
    assert given == replace(given, substeps=8, finer=())


def test_a_search_that_thinned_steps_lead_astray_begins_again_with_all_of_them(monkeypatch):
    """A polish that finds no minimum as long as some cells have fewer steps stands for a search that stalls there."""
    problem = problem_of(motor(1e-2, 0.0, 1e-4), record(1e-2))
    steps = problem.cases[0].discretisation
    assert steps.finer
    assert steps.everywhere().key == (steps.most, steps.doublings, steps.newton, ())
    polish, asked = scoring.polish, []

    def stalling(search, evaluation, free):
        found, own = polish(search, evaluation, free), search.criterion.cases[0].discretisation
        asked.append(own.most if not own.finer else 0)
        return found if len(asked) > 1 else replace(found, is_minimum=False)

    monkeypatch.setattr(scoring, "polish", stalling)
    method = gr.KalmanML(filter="extended", initial_covariance=START)
    monkeypatch.setattr(LikelihoodSearch, "gone_on", lambda *_: None)
    estimate = method.estimate(problem)
    assert asked == [0, steps.most]
    assert estimate.converged
    assert estimate.cases[0].discretisation.finer == ()
