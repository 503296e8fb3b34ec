"""Collocation of models that nothing disturbs: their paths follow the equations exactly, so it is output error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import grisaille as gr
from grisaille import der

TIMES = 0.1 * np.arange(41)
SIGMA = 0.05


class Decay(gr.Model):
    a, b = gr.Parameter(1.0, bounds=(1e-3, 50.0)), gr.Parameter(0.3)
    x = gr.Variable(start=1.0)
    y = gr.Output(x, noise=SIGMA)
    equations = [der(x) == b - a * x]


class Implicit(gr.Model):
    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    x, z = gr.Variable(start=1.0), gr.Variable()
    y = gr.Output(z, noise=SIGMA)
    equations = [der(x) == -a * x, z + z**3 == x]


class Algebraic(gr.Model):
    a = gr.Parameter(1.0, bounds=(1e-3, 50.0))
    u, z = gr.Input(), gr.Variable(start=0.5)
    y = gr.Output(z, noise=SIGMA)
    equations = [z + a * z**3 == u]


class Unused(Decay):
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)


def decay(theta: np.ndarray) -> np.ndarray:
    a, b = theta
    return b / a + (1.0 - b / a) * np.exp(-a * TIMES)


def cubic(values: np.ndarray, a: float = 1.0) -> np.ndarray:
    """z with z + a z³ = value, by Newton's method."""
    z = np.array(values)
    for _ in range(60):
        z -= (z + a * z**3 - values) / (1 + 3 * a * z**2)
    return z


def noisy(values: np.ndarray, **more: np.ndarray) -> gr.Experiment:
    y = values + SIGMA * np.random.default_rng(3).standard_normal(len(TIMES))
    return gr.Experiment(TIMES, more, {"y": y})


def reference(formula, start: list[float], record: gr.Experiment):
    y = record.measurements("y")[1]
    found = least_squares(lambda p: (formula(p) - y) / SIGMA, start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    return found.x, np.linalg.inv(found.jac.T @ found.jac), found.cost


@pytest.mark.parametrize("method", [
    gr.Collocation(criterion="amle"), gr.Collocation(), gr.Collocation(criterion="amle", debias=True),
    gr.Collocation(criterion="amle", optimizer="ipopt"),
], ids=["amle", "default", "debiased", "ipopt"])  # fmt: skip
def test_least_squares_of_the_closed_form(method: gr.Collocation) -> None:
    record = noisy(decay(np.array([1.3, 0.5])))
    theta, covariance, cost = reference(decay, [1.0, 0.3], record)
    fit = gr.fit(Decay(), record, ["a", "b"], method, progress=False)
    assert fit.converged
    errors = np.sqrt(np.diag(covariance))
    for k, name in enumerate(("a", "b")):
        assert abs(float(fit[name]) - theta[k]) < 1e-3 * errors[k]
    if method.criterion == "laplace":
        density = -cost - len(TIMES) * np.log(np.sqrt(2 * np.pi) * SIGMA)
        assert fit.log_likelihood == pytest.approx(density, abs=1e-5)
    states = fit.states().sel(given="smoothed")["x"]
    np.testing.assert_allclose(states.sel(statistic="mean"), decay(theta), atol=1e-5)


def test_an_implicit_equation() -> None:
    def formula(p: np.ndarray) -> np.ndarray:
        return cubic(np.exp(-p[0] * TIMES))

    record = noisy(formula(np.array([1.3])))
    theta, covariance, _ = reference(formula, [1.0], record)
    fit = gr.fit(Implicit(), record, ["a"], gr.Collocation(criterion="amle"), progress=False)
    assert fit.converged
    assert abs(float(fit["a"]) - theta[0]) < 1e-3 * np.sqrt(covariance[0, 0])
    assert fit["a"].std_error == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.05)


def test_no_states_at_all() -> None:
    u = np.linspace(0.1, 2.0, len(TIMES))
    record = noisy(cubic(u, 1.3), u=u)
    theta, covariance, _ = reference(lambda p: cubic(u, p[0]), [1.0], record)
    fit = gr.fit(Algebraic(), record, ["a"], gr.Collocation(criterion="amle"), progress=False)
    assert fit.converged
    assert abs(float(fit["a"]) - theta[0]) < 1e-3 * np.sqrt(covariance[0, 0])


def test_a_disturbance_that_enters_nowhere_has_no_scale() -> None:
    record = noisy(decay(np.array([1.3, 0.5])))
    fit = gr.fit(Unused(), record, ["a", "b", "scale(w)"], gr.Collocation(criterion="laplace"), progress=False)
    assert fit["scale(w)"].std_error == np.inf
    assert [n for n in fit.notes if n.startswith("dead: no output depends on scale(w)")]


def test_auto_takes_output_error_and_says_that_collocation_is_possible() -> None:
    record = noisy(decay(np.array([1.3, 0.5])))
    fit = gr.fit(Decay(), record, ["a", "b"], progress=False)
    assert fit.method == gr.OutputError()
    assert fit.why["Collocation"].startswith("possible")
