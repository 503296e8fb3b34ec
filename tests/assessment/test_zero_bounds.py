"""Unknowns that end on a bound, zero above all: intervals, profiles and notes are one-sided and finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import grisaille as gr
from grisaille import der

X = np.linspace(0.1, 2.0, 25)
Y = 1.5 * X - 0.05 * X**3 + 0.05 * np.random.default_rng(3).standard_normal(25)


def fit_with(low: float, high: float, sign: float = 1.0, noise: float | None = 0.05, **options: object) -> gr.Fit:
    """A line with a cubic part that belongs on the other side of its bound."""

    class Cubic(gr.Model):
        k = gr.Parameter(1.0, bounds=(0.01, 9.0))
        s = gr.Parameter(0.1 * sign if high > 0.1 or sign < 0 else 0.5 * high, bounds=(low, high), **options)
        x = gr.Input()
        y = gr.Output(k * x + sign * s * x**3, noise=noise)

    return gr.fit(Cubic(), gr.Experiment(inputs={"x": X}, outputs={"y": Y}), ["k", "s"], gr.OutputError())


def one_sided_limit() -> float:
    """By hand: where the deviance, the line following, has grown by the one-sided quantile, from s = 0 on."""
    s = np.linspace(0, 0.02, 4001)
    left = Y[:, None] - s * X[:, None] ** 3
    deviance = np.sum(((left - X[:, None] * (X @ left) / (X @ X)) / 0.05) ** 2, axis=0)
    return float(np.interp(norm.ppf(0.95) ** 2, deviance - deviance[0], s))


@pytest.mark.parametrize(
    ("low", "high", "sign", "options"),
    [
        (0.0, 9.0, 1.0, {}),
        (1e-12, 5.0, 1.0, {}),
        (0.0, np.inf, 1.0, {"transform": "log"}),
        (-9.0, 0.0, -1.0, {}),
        (0.0, 0.02, 1.0, {}),
    ],
)
def test_limits_beside_a_bound_of_zero(low: float, high: float, sign: float, options: dict[str, object]) -> None:
    fit = fit_with(low, high, sign, **options)
    bound = low if sign > 0 else high
    row, limit = fit.parameters.loc["s"], one_sided_limit()
    assert row.estimate == bound and not fit.estimate.free[1]
    assert sorted([row.lower * sign, row.upper * sign]) == pytest.approx([bound, limit], rel=2e-3, abs=1e-11)
    assert f"bound {bound:g}; widen" in str(fit) and "dead" not in str(fit)
    profile = fit.profile("s", points=4)
    wider = [v for v in profile.interval if v is not None]
    assert len(wider) == 1 and limit < abs(wider[0]) < 1.5 * limit
    both = fit.intervals(method="profile").loc["s"]
    assert sorted(np.abs(both)) == pytest.approx([abs(bound), limit], rel=2e-3, abs=1e-11)


def test_an_open_side_ends_at_the_declared_bound() -> None:
    fit = fit_with(0.0, 0.001)
    assert fit.parameters.loc["s", ["lower", "upper"]].tolist() == [0.0, 0.001]
    free = fit_with(-1.0, 9.0, noise=5.0)  # nothing told: both ends are bounds, exactly
    assert free.intervals(method="profile").loc["k", "lower"] == 0.01


def test_bounds_far_apart_do_not_hold_what_lies_between() -> None:
    fit = fit_with(-1e9, 1e9)
    assert fit.estimate.free.all() and fit["s"].std_error > 0


@pytest.mark.parametrize("method", [gr.KalmanML(), gr.Collocation(), gr.SimulatedPEM(realizations=30, seed=1)])
def test_a_logarithm_does_not_run_towards_its_bound(method: gr.Estimator) -> None:
    class Shaken(gr.Model):
        k, s = gr.Parameter(0.5, bounds=(0.01, 9.0)), gr.Parameter(0.1, bounds=(1e-12, 5.0))
        x = gr.Variable(start=1.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.01)
        y = gr.Output(x, noise=0.02)
        equations = [der(x) == -k * x - s * x**3 + w]

    t = np.linspace(0, 4, 15)
    course = gr.simulate(Shaken(k=0.6, s=gr.Parameter(-0.15)), t)["x"].values
    data = gr.Experiment(t, {}, {"y": course + 0.02 * np.random.default_rng(2).standard_normal(15)})
    fit = gr.fit(Shaken(), data, ["k", "s"], method)
    row = fit.parameters.loc["s"]
    assert row.status == "at bound" and row.estimate == row.lower == 1e-12
    assert 0.001 < row.upper < 1.0
    assert not any(n.startswith("dead") for n in fit.notes)
