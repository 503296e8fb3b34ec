"""Fits in several threads give the bits of fits one after the other, also where they share one problem."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 4.0, 13)


class Tank(gr.Model):
    k = gr.Parameter(0.4, bounds=(0.01, 5.0))
    q = gr.Parameter(0.8, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h + 0.05 * h**2, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


METHODS = [
    gr.OutputError(),
    gr.KalmanML(),
    gr.SimulatedPEM(realizations=2),
    gr.Collocation(),
]


def record(seed: int) -> gr.Experiment:
    rng = np.random.default_rng(seed)
    h, found = 1.5, []
    for _ in TIMES:
        found.append(h + 0.05 * h**2)
        for _ in range(10):
            h += (4 / 120) * (1.0 - 0.6 * h**1.5)
    return gr.Experiment(TIMES, {}, {"y": np.array(found) + 0.02 * rng.standard_normal(len(TIMES))})


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_threads_do_not_disturb_each_other(method) -> None:
    def fitted(seed: int) -> bytes:
        fit = gr.fit(Tank(), record(seed), ["k", "q"], method)
        return fit.estimate.theta.tobytes() + fit.estimate.covariance.tobytes()

    alone = [fitted(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fitted, (1, 2))) == alone


class Proportional(gr.Model):
    """Noise that follows the output, and a relation that jumps."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    q = gr.Parameter(0.9, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h, noise=0.02 * h)
    equations = [der(h) == gr.where(h > 1.47, 1.02, 1.0) * q - k * h**1.5 + w]


class Implicit(gr.Model):
    """An algebraic unknown, and an open noise level."""

    k = gr.Parameter(0.5, bounds=(0.01, 5.0))
    q = gr.Parameter(1.0, bounds=(0.0, 9.0))
    h, z = gr.Variable(1.5), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
    y = gr.Output(h)
    equations = [der(h) == q - z + w, z + 0.3 * z**3 == k * h**1.5]


class White(gr.Model):
    """White noise on every state, so that splines carry it."""

    k, q = gr.Parameter(0.4, bounds=(0.01, 5.0)), gr.Parameter(0.8, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == q - k * h**1.5 + w]


class WhiteProportional(gr.Model):
    """The same with noise that follows the output: what it follows is frozen, along with the knots."""

    k, q = gr.Parameter(0.5, bounds=(0.01, 5.0)), gr.Parameter(0.9, bounds=(0.0, 9.0))
    h = gr.Variable(1.5)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(h, noise=0.02 * h)
    equations = [der(h) == q - k * h**1.5 + w]


class Rows(gr.Model):
    """No derivatives: every row has a root of its own."""

    k, q = gr.Parameter(0.5, bounds=(0.01, 5.0)), gr.Parameter(1.0, bounds=(0.0, 9.0))
    u, z = gr.Input(), gr.Variable(0.5)
    y = gr.Output(z)
    equations = [z + 0.1 * z**3 == k * u + q]


LEVELS = np.linspace(0.0, 2.0, 9)
STATIC = gr.Experiment(None, {"u": LEVELS}, {"y": 0.8 * LEVELS + 0.9 + 0.01 * np.cos(9 * LEVELS)})
SHARED = {
    "output error": (Tank, gr.OutputError()),
    "open noise": (Implicit, gr.OutputError()),
    "moving noise": (Proportional, gr.OutputError()),
    "multiple shooting": (Proportional, gr.OutputError(shooting="multiple", pieces=3)),
    "rows": (Rows, gr.OutputError()),
    "filter": (Tank, gr.KalmanML()),
    "implicit filter": (Implicit, gr.KalmanML(max_evaluations=12)),
    "ensembles": (Tank, gr.SimulatedPEM(realizations=2, max_iterations=6)),
    "implicit ensembles": (Implicit, gr.SimulatedPEM(realizations=2, max_iterations=3)),
    "elements": (Tank, gr.Collocation()),
    "implicit elements": (Implicit, gr.Collocation()),
    "splines": (White, gr.Collocation(criterion="smoothing")),
    "splines of a likelihood": (WhiteProportional, gr.Collocation()),
    "splines by IPOPT": (White, gr.Collocation(criterion="amle", optimizer="ipopt")),
}


def posed(kind: str):
    model, method = SHARED[kind]
    return build_problem(model(), STATIC if kind == "rows" else record(1), ["k", "q"], method), method


@pytest.mark.parametrize("kind", SHARED)
def test_one_problem_in_two_threads(kind: str) -> None:
    def fitted(problem) -> bytes:
        found = method.estimate(problem)
        cases = repr([c.discretisation for c in found.cases]).encode()
        return found.theta.tobytes() + found.covariance.tobytes() + found.status.encode() + cases

    alone, method = posed(kind)
    one_after_the_other = [fitted(alone), fitted(alone)]
    assert one_after_the_other[0] == one_after_the_other[1]
    shared, _ = posed(kind)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(fitted, [shared, shared])) == one_after_the_other


@pytest.mark.parametrize("kind", [k for k in SHARED if k != "multiple shooting"])
def test_an_evaluation_does_not_depend_on_others(kind: str) -> None:
    def bits(problem, theta: np.ndarray) -> bytes:
        found = problem.evaluate(theta)
        assert found.completed, found.failure
        return found.residuals.tobytes() + found.gradient.tobytes()

    problem, _ = posed(kind)
    points = [problem.guess * factor for factor in (1.3, 1.0, 0.8)]
    first = [bits(problem, theta) for theta in points]
    assert [bits(problem, theta) for theta in points[::-1]] == first[::-1]
    fresh, _ = posed(kind)
    assert bits(fresh, points[2]) == first[2], "the order of evaluations does not matter"
