"""What records simulated with a fit say about its intervals."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.estimators.simulated_pem import MeanCriterion, constant_part, projection_form, quadratic_zeros

TIMES = np.linspace(0.0, 30.0, 61)
BOTH = gr.SimulatedPEM(realizations=100, match="mean-variance")


class Even(gr.Model):
    a = gr.Parameter(0.8, bounds=(0.1, 5.0))
    x = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.3)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -a * x + u + w]


class Bursts(Even):
    """The same with a gain that is log-normal."""

    equations = [der(Even.x) == -Even.a * Even.x + Even.u + 0.5 * gr.exp(4 * Even.w)]


class Growth(Even):
    """The same with a rate that is disturbed."""

    equations = [der(Even.x) == -Even.a * Even.x + Even.u + 2 * Even.w * Even.x]


def _record(model: gr.Model, seed: int = 12, end: float = 30.0) -> gr.Experiment:
    times = np.linspace(0.0, end, int(2 * end) + 1)
    pump = {"u": 1.0 + np.sign(np.sin(0.5 * times))}
    run = gr.simulate(model, times, pump, realizations=1, seed=seed, noise=True)
    return gr.Experiment(times, pump, {"y": run["y"].values[0]})


@pytest.mark.parametrize(
    ("model", "end", "is_marked"), [(Even, 120.0, False), (Bursts, 30.0, True), (Growth, 30.0, True)]
)
def test_intervals_that_hold_too_seldom_are_marked(model, end, is_marked):
    fit = gr.fit(model(), _record(model(), end=end), ["a", "scale(w)"], BOTH)
    assert ("std. error*" in str(fit)) == is_marked
    covered = [fit.estimate.ensemble.covered[name] for name in ("a", "scale(w)")]
    assert (min(covered) < 0.87) == is_marked
    assert any("hold it too seldom" in n and "simulated with this fit" in n for n in fit.notes) == is_marked


def test_the_mean_alone_is_not_checked_so():
    fit = gr.fit(Even(), _record(Even()), ["a"], gr.SimulatedPEM(realizations=30))
    assert not fit.estimate.caution and not fit.estimate.ensemble.covered


def test_the_gradient_of_a_record_is_that_of_the_criterion():
    """At another point, of the record that was measured."""
    problem = build_problem(Growth(), _record(Growth()), ["a", "scale(w)"], BOTH)
    criterion = MeanCriterion(problem)
    here, there = criterion.at(problem.guess), criterion.at(1.1 * problem.guess)
    form, d = projection_form(here, there, 0, (len(TIMES), 1)), here.errors[:, None]
    made = np.einsum("ti,tin->n", d, form.linear) + np.einsum("ti,tijn,tj->n", d, form.quadratic, d)
    assert made + constant_part(criterion, here, there) == pytest.approx(there.gradient, rel=1e-9)


def test_zeros_of_quadratics():
    rng = np.random.default_rng(1)
    H = np.array([[4.0, 1.0], [1.0, 3.0]])
    T = 0.2 * rng.normal(size=(2, 2, 2))
    T = 0.5 * (T + np.swapaxes(T, 1, 2))
    roots = 0.5 * rng.normal(size=(5, 2))

    def gradient(d: np.ndarray, root: np.ndarray) -> np.ndarray:
        def inside(v: np.ndarray) -> np.ndarray:
            return H @ v + 0.5 * np.einsum("nij,i,j->n", T, v, v)

        return inside(d) - inside(root)

    e = np.eye(2)
    points = [np.zeros(2), *e, *-e, e[0] + e[1]]
    g = np.array([[gradient(d, root) for d in points] for root in roots])
    assert quadratic_zeros(g, 2, [(0, 1)]) == pytest.approx(roots, abs=2e-3)
