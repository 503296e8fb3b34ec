"""On linear models every filter is the Kalman filter: the same likelihood, derivatives and smoothed states."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import textbook_kalman as textbook
from zoo.filtered import INPUT as U, IRREGULAR as TIMES, SEEN as Y, Tanks, tank_record as experiment

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

EVERY = [
    {"filter": "extended", "substeps": 1},
    {"filter": "extended", "substeps": 3},
    {"filter": "iterated", "substeps": 1},
    {"filter": "unscented", "substeps": 1},
]
MOMENTS = [{"filter": f, "propagation": "moments"} for f in ("extended", "unscented")]
VALUES = {"a": 0.8, "b": 0.3, "scale(w)": 0.4, "noise(y2)": 0.12, "start(x1)": 0.4}


def posed(model, data, values, **options):
    return build_problem(model, data, list(values), gr.KalmanML(**options), guess=values)


def joint_normal(hold):
    a, b = VALUES["a"], VALUES["b"]
    A, B, W = np.array([[-a, 0.0], [b, -b]]), np.array([[1.0], [0.0]]), np.diag([VALUES["scale(w)"] ** 2, 0.0])
    steps = np.diff(TIMES)
    F, Q = zip(*(textbook.van_loan(A, W, h) for h in steps), strict=True)
    c = [textbook.held(A, B, h)[:, 0] * U[k] for k, h in enumerate(steps)]
    if hold == "foh":
        c = [c[k] + textbook.ramped(A, B, h)[:, 0] * (U[k + 1] - U[k]) for k, h in enumerate(steps)]
    R, seen = np.diag([0.04, VALUES["noise(y2)"] ** 2]), Y - np.outer(U, [0.1, 0.0])
    return textbook.dense(F, c, Q, np.eye(2), np.zeros(2), R, seen, np.array([0.4, -0.2]), Q[0])[0]


@pytest.mark.parametrize("hold", ["zoh", "foh"])
@pytest.mark.parametrize("options", EVERY + MOMENTS)
def test_the_joint_normal(options, hold):
    """Irregular samples, gaps, noise in one state only."""
    problem = posed(Tanks(), experiment(hold), VALUES, **options)
    tolerance = 1e-8 if options.get("propagation") == "moments" else 1e-10
    assert problem.evaluate(problem.guess).log_likelihood == pytest.approx(joint_normal(hold), rel=tolerance)


@pytest.mark.parametrize("start", ["stationary", {"x1": 0.2}, np.zeros((2, 2))], ids=["stationary", "one", "none"])
@pytest.mark.parametrize("options", EVERY)
def test_derivatives_and_smoothed_states(options, start):
    """Also from P₀ = 0 and from a state without any uncertainty."""
    exact = posed(Tanks(), experiment("foh"), VALUES, initial_covariance=start)
    other = posed(Tanks(), experiment("foh"), VALUES, initial_covariance=start, **options)
    found, wanted = (p.evaluate(p.guess) for p in (other, exact))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-10)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-9, atol=1e-9)
    assert np.allclose(found.curvature, wanted.curvature, rtol=1e-9, atol=1e-9)
    moments = [p.cases[0].runner.states(p.guess, p.cases[0].discretisation) for p in (other, exact)]
    for name, most in {"x_filt": 1e-11, "P_filt": 1e-11, "x_smooth": 1e-9, "P_smooth": 1e-9}.items():
        assert np.allclose(getattr(moments[0], name), getattr(moments[1], name), atol=most), name
    known = [predicted(p) for p in (other, exact)]
    assert np.allclose(known[0].x, known[1].x, atol=1e-11) and np.allclose(known[0].P, known[1].P, atol=1e-11)


def predicted(problem):
    """What is known of the states before every sample."""
    case = problem.cases[0]
    filter, at = case.runner.filter_on(case.discretisation, problem.guess), case.runner.posed(problem.guess, False)
    return filter.ahead.known(at, np.arange(len(case.grid)) - 1)[0]


class Stiff(gr.Model):
    """A fast state behind a slow one, and an integrator: A is singular and stiff."""

    k = gr.Parameter(3e4)
    x, v, s = gr.Variable(start=1.0), gr.Variable(start=0.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.5)
    y = gr.Output(v + s, noise=0.1)
    equations = [der(x) == -x + w, der(v) == k * (x - v), der(s) == v]


@pytest.mark.parametrize("filter", ["extended", "unscented"])
def test_stiff_and_singular(filter):
    t = np.linspace(0.0, 4.0, 9)
    data = gr.Experiment(t, {}, {"y": np.exp(-t) + 0.1 * np.cos(9 * t)})
    values = {"k": 3e4, "scale(w)": 0.4, "start(x)": 1.0}
    exact, other = (posed(Stiff(), data, values, filter=f, substeps=1) for f in ("linear", filter))
    found, wanted = (p.evaluate(p.guess) for p in (other, exact))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-10)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", EVERY)
def test_a_sensor_that_falls_silent_is_a_sensor_taken_away(options):
    silent = Y.copy()
    silent[8:, 0] = np.nan
    kept = TIMES[:9]
    both = gr.Experiment(TIMES, {"u": U}, {"y1": silent[:, 0], "y2": silent[:, 1]}, hold="zoh")
    apart = gr.Experiment(None, {"u": (TIMES, U)}, {"y1": (kept[:8], Y[:8, 0]), "y2": (TIMES, Y[:, 1])}, hold="zoh")
    found = [p.evaluate(p.guess).log_likelihood for p in (posed(Tanks(), d, VALUES, **options) for d in (both, apart))]
    assert found[0] == pytest.approx(found[1], rel=1e-10)


class Exact(Tanks):
    """One sensor without noise: P is singular after every update."""

    y1, y2 = gr.Output(Tanks.x1, noise=0.0), gr.Output(Tanks.x2, noise=0.1)


@pytest.mark.parametrize("options", EVERY)
def test_a_sensor_without_noise(options):
    values = {"a": 0.8, "scale(w)": 0.4}
    exact, other = (posed(Exact(), experiment("foh"), values, **o) for o in ({"filter": "linear"}, options))
    found, wanted = (p.evaluate(p.guess) for p in (other, exact))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-10)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-9)


class Coloured(gr.Model):
    """Index two: a velocity is prescribed up to a coloured force, and one state has no noise at all."""

    m, k = gr.Parameter(2.0), gr.Parameter(0.7)
    x1, x2, v1, v2 = (gr.Variable(start=0.0) for _ in range(4))
    f = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.5), scale=0.6)
    y = gr.Output(x1, noise=0.05)
    equations = [
        der(x1) == v1,
        der(x2) == v2,
        m * der(v1) == f - k * x1 - 0.3 * v1 + w,
        der(v2) == -f,
        x1 == x2,
    ]


@pytest.mark.parametrize("options", EVERY[1:])
def test_high_index(options):
    t = np.linspace(0.0, 5.0, 11)
    data = gr.Experiment(t, {}, {"y": 0.2 * np.sin(t)})
    values = {"k": 0.8, "scale(w)": 0.5}
    exact, other = (posed(Coloured(), data, values, **o) for o in ({"filter": "linear"}, options))
    found, wanted = (p.evaluate(p.guess) for p in (other, exact))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-10)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("filter", ["extended", "unscented"])
def test_a_flat_prior_is_for_the_exact_filter(filter):
    with pytest.raises(gr.EstimationError, match="'diffuse' needs the exact filter: use filter='linear'"):
        posed(Tanks(), experiment("zoh"), VALUES, filter=filter, initial_covariance="diffuse")
