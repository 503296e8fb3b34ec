"""Stochastic approximation: unbiased batches, several unknowns of different sizes, bounds, the stopping rule."""

from __future__ import annotations

import numpy as np
import pytest
from estimators.simulated_pem.mean_models import SHORT, Drifting, Squared, record

import grisaille as gr
from grisaille.estimators import build_problem
from grisaille.estimators.simulated_pem import MeanCriterion


def test_batches_are_unbiased_and_naive_products_are_not() -> None:
    """Over 250 batches of 4 the mean gradient is that of a large ensemble; error times sensitivity is not."""
    data = record(Squared(a=1.2), 3, SHORT)
    problem = build_problem(Squared(), data, ["a", "scale(w)"], gr.SimulatedPEM(realizations=4))
    made = MeanCriterion(problem)
    theta = problem.guess
    made.at(theta)
    large = made.with_runners(4000, 10**6).at(theta).gradient
    found, naive = [], []
    for k in range(250):
        value = made.with_runners(4, 4 * k).at(theta)
        found.append(value.gradient)
        naive.append(value.jacobian.T @ value.residuals)
    error = np.std(found, axis=0) / np.sqrt(250)
    assert (np.abs(np.mean(found, axis=0) - large) < 3 * error).all()
    assert (np.abs(np.mean(naive, axis=0) - large) > 5 * error).any()


def test_fresh_realizations_have_no_number_in_common() -> None:
    data = record(Squared(a=1.2), 3, SHORT)
    problem = build_problem(Squared(), data, ["a"], gr.SimulatedPEM(realizations=4))
    made = MeanCriterion(problem)
    made.at(problem.guess)
    whole = made.with_runners(8).at(problem.guess).predictions[0].mean
    halves = [made.with_runners(4, k).at(problem.guess).predictions[0].mean for k in (0, 4)]
    np.testing.assert_allclose(whole, np.mean(halves, axis=0), rtol=1e-12)


@pytest.mark.parametrize("polish", [True, False])
def test_several_unknowns_of_different_sizes(polish: bool) -> None:
    """u is measured in other units, so that b is a million times a; far from the guess."""

    class Scaled(Drifting):
        b = gr.Parameter(1e6, bounds=(1e5, 1e8))
        equations = [gr.der(Drifting.x) == -Drifting.a * Drifting.x + b / 1e6 * Drifting.u + Drifting.w]

    data = record(Drifting(a=1.2, b=1.5), 3)
    newton = gr.fit(Scaled(), data, ["a", "b"], gr.SimulatedPEM(realizations=64))
    method = gr.SimulatedPEM(realizations=64, search="stochastic", polish=polish)
    fit = gr.fit(Scaled(), data, ["a", "b"], method, guess={"a": 3.0, "b": 4e6})
    assert fit.converged
    for name in ("a", "b"):
        allowed = 1e-3 if polish else 0.35
        assert abs(float(fit[name]) - float(newton[name])) < allowed * newton[name].std_error
        assert fit[name].std_error == pytest.approx(newton[name].std_error, rel=0.2)


def test_bounds_are_kept() -> None:
    data = record(Squared(a=1.2), 3)
    method = gr.SimulatedPEM(realizations=32, search="stochastic", polish=False)
    fit = gr.fit(Squared(), data, ["a"], method, bounds={"a": (0.3, 0.9)})
    assert float(fit["a"]) == pytest.approx(0.9, abs=0.01)
    assert fit.trace["a"].max() <= 0.9
