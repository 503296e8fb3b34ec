"""Algebraic unknowns that stay implicit: the same as the model solved by hand, with the equations met at all times."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import grisaille as gr
from grisaille import asinh, der, exp, sinh, sqrt
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 3.0, 16)
random = np.random.default_rng(3)
SEEN = np.exp(-0.5 * TIMES) + 0.2 * np.sin(2 * TIMES) + 0.05 * random.normal(size=len(TIMES))
SEEN[7:9] = np.nan
VALUES = {"a": 0.8, "c": 0.35, "scale(w)": 0.5, "noise(y)": 0.06, "start(x)": 1.9}
WAYS = [
    {"filter": "extended"},
    {"filter": "extended", "propagation": "moments"},
    {"filter": "iterated"},
    {"filter": "unscented"},
]


class Implicit(gr.Model):
    """A hardening spring: z + c z³ = x + 0.2 w."""

    a, c = gr.Parameter(0.9), gr.Parameter(0.3)
    x, z = gr.Variable(start=2.0), gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    y = gr.Output(z + 0.1 * x, noise=0.05)
    equations = [der(x) == -a * z + w, z + c * z**3 == x + 0.2 * w]


class Explicit(gr.Model):
    """The same, solved by Cardano's formula."""

    a, c = gr.Parameter(0.9), gr.Parameter(0.3)
    x = gr.Variable(start=2.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    z = 2 / sqrt(3 * c) * sinh(asinh(1.5 * (x + 0.2 * w) * sqrt(3 * c)) / 3)
    y = gr.Output(z + 0.1 * x, noise=0.05)
    equations = [der(x) == -a * z + w]


def posed(model, **options):
    data = gr.Experiment(TIMES, {}, {"y": SEEN})
    method = gr.KalmanML(substeps=2, **options)
    return build_problem(model, data, list(VALUES), method, guess=VALUES)


@pytest.mark.parametrize("options", WAYS)
def test_equals_the_model_solved_by_hand(options):
    found, wanted = (p.evaluate(p.guess) for p in (posed(Implicit(), **options), posed(Explicit(), **options)))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
    assert np.allclose(found.slope, wanted.slope, rtol=1e-9, atol=1e-10)
    assert np.allclose(found.curvature, wanted.curvature, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", WAYS)
def test_the_equations_hold_after_every_update(options):
    problem = posed(Implicit(), **options)
    runner = problem.cases[0].runner
    own = problem.cases[0].own(problem.guess)
    found, q, m = runner.states(own, problem.cases[0].discretisation), runner.posed(own, False).q, runner.filter.model
    residual = ca.Function("g", [m.t, m.X, m.z, m.u, m.q], [m.residual])
    u = np.zeros(m.u.numel())
    left = [float(residual(0.0, x, z, u, q)) for x, z in zip(found.x_filt, found.z, strict=True)]
    assert np.abs(left).max() < 1e-12


def test_states_of_algebraic_unknowns():
    method = gr.KalmanML(substeps=2)
    data = gr.Experiment(TIMES, {}, {"y": SEEN})
    fits = [gr.fit(M(), data, estimate=["a", "scale(w)"], method=method) for M in (Implicit, Explicit)]
    assert fits[0]["a"] == pytest.approx(float(fits[1]["a"]), rel=1e-6)
    seen = [fit.states(names=["y"]).y for fit in fits]
    assert np.allclose(seen[0], seen[1], rtol=1e-5)
    z = fits[0].states(names=["z"]).z.sel(given="smoothed")
    assert (z.sel(statistic="std") > 0).all()


class Multiplied(gr.Model):
    """White noise whose factor is an algebraic unknown."""

    a = gr.Parameter(0.9)
    x, z = gr.Variable(start=2.0), gr.Variable(start=1.0)
    v = gr.Disturbance(gr.spectra.white(interpretation="ito"), scale=0.3)
    y = gr.Output(z, noise=0.05)
    equations = [der(x) == -a * z + z * v, z + 0.3 * exp(z) == x]


def test_noise_multiplied_by_an_algebraic_unknown():
    data = gr.Experiment(TIMES, {}, {"y": np.exp(-0.5 * TIMES)})
    guess = {"a": 0.8, "scale(v)": 0.3, "start(x)": 2.0}
    problem = build_problem(Multiplied(), data, list(guess), gr.KalmanML(substeps=2), guess=guess)
    found = problem.evaluate(problem.guess).slope
    for k in range(3):
        h = 1e-5 * np.eye(3)[k]
        ends = [problem.evaluate(problem.guess + j * h, sensitive=False).objective for j in (1, -1)]
        assert found[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def factors(reading: str) -> tuple[gr.Model, gr.Model]:
    """Noise multiplied by ½ + z with z + z³ = x, and the same with Cardano's root in place of z."""
    white = gr.Disturbance(gr.spectra.white(interpretation=reading), scale=0.8)

    class Solved(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.01, 5.0))
        x, z = gr.Variable(1.0), gr.Variable(0.5)
        w, y = white, gr.Output(x, noise=0.05)
        equations = [der(x) == -k * x + (z + 0.5) * w, z + z**3 == x]

    class Written(gr.Model):
        k = gr.Parameter(0.5, bounds=(0.01, 5.0))
        x = gr.Variable(1.0)
        w, y = white, gr.Output(x, noise=0.05)
        q = gr.sqrt(x * x / 4 + 1 / 27)
        equations = [der(x) == -k * x + ((q + x / 2) ** (1 / 3) - (q - x / 2) ** (1 / 3) + 0.5) * w]

    return Solved(), Written()


@pytest.mark.parametrize("reading", ["ito", "stratonovich"])
@pytest.mark.parametrize(
    "method",
    [
        gr.KalmanML(filter="extended", substeps=2),
        gr.KalmanML(filter="unscented"),
        gr.Collocation(criterion="laplace", transcription="direct"),
    ],
    ids=["extended", "unscented", "direct"],
)
def test_readings_differ_by_the_slope_of_the_root(reading: str, method: object) -> None:
    """½ G ∂G/∂z dz/dx is in the drift of one of them, whichever way z is found."""
    random = np.random.default_rng(2)
    y = 1 + 0.1 * np.cumsum(random.standard_normal(9)) + 0.05 * random.standard_normal(9)
    data = gr.Experiment(np.linspace(0.0, 0.8, 9), {}, {"y": y})
    solved, written = (gr.evaluate(m, data, method, {"k": 0.5}) for m in factors(reading))
    assert solved.objective == pytest.approx(written.objective, rel=1e-9)
    assert solved.gradient["k"] == pytest.approx(written.gradient["k"], rel=1e-6)
