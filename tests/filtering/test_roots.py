"""Algebraic unknowns where inputs jump: the likelihood of the same model with the unknown given, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from zoo.filter_reference import carry

import grisaille as gr
from grisaille import der
from grisaille.compilation.kalman import run_reverse
from grisaille.estimators import build_problem
from grisaille.filtering import AlgebraicRoots

TIMES = np.linspace(0.0, 4.0, 41)
SEEN = slice(0, None, 5)
"""Measured at every fifth instant only: inputs jump between samples, too."""


def implicit(equation, size=1.0):
    class Implicit(gr.Model):
        a = gr.Parameter(1.0, bounds=(0.1, 10.0))
        x, z = gr.Variable(0.0), gr.Variable(start=0.0)
        u = gr.Input()
        w = gr.Disturbance(gr.spectra.white(), scale=0.1 * size)
        y = gr.Output(x, noise=0.05 * size)
        equations = [der(x) == a * (z - x) + w, equation(z) == u]

    return Implicit()


class Given(gr.Model):
    """The same, its unknown an input."""

    a, size = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(1.0)
    x = gr.Variable(0.0)
    z = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.1 * size)
    y = gr.Output(x, noise=0.05 * size)
    equations = [der(x) == a * (z - x) + w]


def diode(v):
    return v + 1e-9 * (gr.exp(v / 0.025) - 1)


def measured_diode(v):
    return v + 1e-9 * np.expm1(min(v / 0.025, 600))


PLANTS = {
    "cubic": (lambda z: z + z**3, lambda z: z + z**3, (-10.0, 10.0), 1.0),
    "far": (lambda z: z + z**3, lambda z: z + z**3, (-300.0, 300.0), 1.0),
    "diode": (diode, measured_diode, (-0.7, 0.7), 1.0),
    "rectifier": (diode, measured_diode, (-5.0, 5.0), 1.0),
    "limited": (lambda z: z + 5 * gr.tanh(10 * z), lambda z: z + 5 * np.tanh(10 * z), (-30.0, 30.0), 1.0),
    "small": (lambda z: 1e9 * z + (1e9 * z) ** 3, lambda z: 1e9 * z + (1e9 * z) ** 3, (-10.0, 10.0), 1e-9),
    "large": (lambda z: 1e-9 * z + (1e-9 * z) ** 3, lambda z: 1e-9 * z + (1e-9 * z) ** 3, (-10.0, 10.0), 1e9),
}


def both(name, **options):
    symbolic, numeric, levels, size = PLANTS[name]
    u = np.where(TIMES % 0.7 < 0.3, *levels)
    z = np.array(
        [brentq(lambda v, at=at: numeric(v) - at, -40 * size, 40 * size, xtol=1e-15 * size, rtol=1e-14) for at in u]
    )
    y = np.full(len(TIMES), np.nan)
    y[SEEN] = np.random.default_rng(3).standard_normal(len(y[SEEN])) * size
    method = gr.KalmanML(substeps=1, **options)
    one = gr.Experiment(TIMES, {"u": u}, {"y": y})
    other = gr.Experiment(TIMES, {"z": z}, {"y": y})
    return (
        gr.evaluate(implicit(symbolic, size), one, method, estimate=["a"]),
        gr.evaluate(Given(size=size), other, gr.KalmanML(filter="linear"), estimate=["a"]),
    )


@pytest.mark.parametrize("name", PLANTS)
def test_the_likelihood_is_that_of_the_unknown_given(name):
    found, wanted = both(name, filter="extended")
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-9, abs=1e-9)
    assert found.gradient["a"] == pytest.approx(wanted.gradient["a"], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("filter", ["iterated", "unscented"])
def test_other_filters(filter):
    found, wanted = both("rectifier", filter=filter)
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-9, abs=1e-9)


def test_a_root_that_is_lost_is_refused_by_name(monkeypatch):
    """Without fresh solutions after jumps the Newton steps end elsewhere, and the fit says so."""
    monkeypatch.setattr(AlgebraicRoots, "jumps", lambda self, given: [])
    with pytest.raises(gr.EstimationError, match=r"z is not solved along the record: before t = .*Newton steps"):
        both("rectifier", filter="extended")


def test_an_equation_without_a_solution_after_a_jump():
    """z² = u has none for u < 0."""

    class Square(gr.Model):
        a = gr.Parameter(1.0)
        x, z = gr.Variable(0.0), gr.Variable(start=1.0)
        u = gr.Input(default=1.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(x, noise=0.05)
        equations = [der(x) == a * (z - x) + w, z**2 + 0.1 * gr.sin(z) == u]

    data = gr.Experiment(TIMES, {"u": np.where(TIMES < 2, 1.0, -1.0)}, {"y": np.zeros(len(TIMES))})
    with pytest.raises(gr.EstimationError, match=r"z could not be solved after the jump of the inputs at t = 2"):
        gr.evaluate(Square(), data, gr.KalmanML(substeps=1), estimate=["a"])


def test_every_kind_of_pass_restarts(monkeypatch):
    """Forward and reverse derivatives, and NumPy's."""
    symbolic, _, levels, _ = PLANTS["rectifier"]
    u = np.where(TIMES % 0.7 < 0.3, *levels)
    data = gr.Experiment(TIMES, {"u": u}, {"y": np.sin(TIMES)})
    problem = build_problem(implicit(symbolic), data, ["a"], gr.KalmanML(substeps=2))
    runner, given, steps = problem.cases[0].runner, problem.cases[0].own(problem.guess), problem.cases[0].discretisation
    whole = runner.likelihood(given, steps, sensitive=True).likelihood
    filter, (q, dq, start) = runner.filter_on(steps, given), runner.posed(given, True)
    assert steps.restarts and np.isfinite(filter.restarts).any()
    pass_, s = filter.prepared(q), filter.start(filter.prepared(q), q, dq, start.x, start.z)
    back = run_reverse(filter.program.reverse, pass_, q, s[0])
    monkeypatch.setattr("grisaille.filtering.passes.Passes.carry", carry)
    plain = runner.likelihood(given, steps, sensitive=True).likelihood
    assert whole.value == pytest.approx(plain.value, rel=1e-8)
    for gradient in (-0.5 * float((s[1:] @ back.ds + dq @ back.lq)[0]), plain.gradient[0]):
        assert whole.gradient[0] == pytest.approx(gradient, rel=1e-8)
