"""Noise that follows the estimates: one rule for variables and parameters; what robust fits report."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.linspace(0, 3, 15)
Y = np.exp(-0.5 * T) * (1 + 0.05 * np.random.default_rng(3).standard_normal(15))
DATA = gr.Experiment(T, {}, {"y": Y})


class ByState(gr.Model):
    """Noise in proportion to what is measured."""

    k, s = gr.Parameter(0.6, bounds=(0.01, 10)), gr.Parameter(0.05, bounds=(1e-3, 1.0))
    x = gr.Variable(start=1.0)
    y = gr.Output(x, noise=0.05 * x)
    equations = [der(x) == -k * x]


class ByParameter(ByState):
    """The same noise, written as a formula of time."""

    y = gr.Output(ByState.x, noise=0.05 * gr.exp(-ByState.k * gr.time))


class ByLevel(ByState):
    """A level that stands nowhere else."""

    y = gr.Output(ByState.x, noise=ByState.s)


@pytest.mark.parametrize("options", [{}, {"shooting": "multiple", "pieces": 3}, {"loss": "huber"}])
def test_one_rule_for_variables_and_parameters(options: dict[str, object]) -> None:
    one, other = (gr.fit(m(), DATA, ["k"], gr.OutputError(**options)) for m in (ByState, ByParameter))
    assert float(one["k"]) == pytest.approx(float(other["k"]), abs=1e-4 * one["k"].std_error)
    assert one["k"].std_error == pytest.approx(other["k"].std_error, rel=1e-5)
    assert all("noise of y: its formula follows the estimates" in str(fit) for fit in (one, other))


def test_a_level_that_nothing_predicted_depends_on_is_estimated_by_the_likelihood() -> None:
    """Least squares would make it infinite; with the likelihood it is that of filters."""
    fit, other = (gr.fit(ByLevel(), DATA, ["k", "s"], method) for method in (gr.OutputError(), gr.KalmanML()))
    for name in ("k", "s"):
        assert float(fit[name]) == pytest.approx(float(other[name]), abs=1e-4 * other[name].std_error)
    with pytest.raises(gr.EstimationError, match="'s' stands in the noise of output 'y' and in nothing that is pred"):
        gr.fit(ByLevel(), DATA, ["k", "s"], gr.OutputError(loss="huber"))
    assert gr.fit(ByLevel(), DATA, ["k"], gr.OutputError()).converged


@pytest.mark.parametrize("noise", [0.05, None])
def test_a_robust_fit_reports_what_it_minimised(noise: float | None) -> None:
    class Level(gr.Model):
        a, u = gr.Parameter(1.0, bounds=(-20, 20)), gr.Input()
        y = gr.Output(a * u, noise=noise)

    y = np.where(np.arange(30) < 22, 1.0, 3.0) + 0.05 * np.random.default_rng(0).standard_normal(30)
    data, method = gr.Experiment(inputs={"u": np.ones(30)}, outputs={"y": y}), gr.OutputError(loss="cauchy")
    fit = gr.fit(Level(), data, ["a"], method)
    r = (y - float(fit["a"])) / (noise or float(fit["noise(y)"]))
    assert fit.objective == pytest.approx(0.5 * np.sum(np.log1p(r**2)), rel=1e-9)
    assert f"criterion         {fit.objective:.6g}" in str(fit)
    there = gr.evaluate(Level(), data, method, parameters=fit)
    assert there.objective == pytest.approx(fit.objective, rel=1e-4)
    assert np.isnan(fit.log_likelihood) and np.isnan(there.log_likelihood)
