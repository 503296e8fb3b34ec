"""Direct collocation through ``gr.fit``: models that splines cannot take, priors, levels at zero, studies, files."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Oscillator, Pendulum, data

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.estimation import FitRequest, resolve_unknowns
from grisaille.estimators.collocation import pose_elements, solve
from grisaille.structure import structure_of

TIMES = np.linspace(0.0, 4.0, 31)
PUSH = np.sign(np.sin(3.0 * TIMES))
DRAG = 0.5


@pytest.fixture(scope="module")
def swing():
    return data(Pendulum(k=DRAG), TIMES, "phi", u=PUSH, seed=5, name="swing")[0]


@pytest.fixture(scope="module")
def fit(swing):
    return gr.fit(
        Pendulum(), swing, ["k", "start(x)"], gr.Collocation(criterion="amle"), guess={"k": 1.0}, progress=False
    )


def test_index_three_is_fitted_with_states_and_bands(fit) -> None:
    assert fit.converged
    assert abs(float(fit["k"]) - DRAG) < 3 * fit["k"].std_error
    assert abs(float(fit["start(x)"]) - 0.5) < 3 * fit["start(x)"].std_error
    states = fit.states().sel(given="smoothed")
    for name in ("x", "vy", "phi", "tension"):
        assert np.isfinite(states[name].sel(statistic="std")).all()
    length = states["x"].sel(statistic="mean") ** 2 + states["y"].sel(statistic="mean") ** 2
    np.testing.assert_allclose(length, 1.0, atol=1e-4)
    # x and y are tied by the circle: σ_x |x| = σ_y |y|
    x, y = states["x"], states["y"]
    tied = (
        np.abs(x.sel(statistic="mean") * x.sel(statistic="std")),
        np.abs(y.sel(statistic="mean") * y.sel(statistic="std")),
    )
    np.testing.assert_allclose(*tied, rtol=1e-2, atol=1e-6)


def test_residuals_have_exact_derivatives(swing) -> None:
    structure = structure_of(Pendulum())
    unknowns = resolve_unknowns(structure, [swing], ["k", "start(x)"], guess={"k": 0.2, "start(x)": 0.48})
    from grisaille.collocation.direct import DirectOptions

    problem = pose_elements(FitRequest(Pendulum(), structure, [swing], unknowns), DirectOptions(tolerance=1e-13))
    theta = problem.guess
    here = problem.evaluate(theta)
    for k in range(2):
        step = 1e-5 * np.eye(2)[k]
        ahead, behind = problem.evaluate(theta + step), problem.evaluate(theta - step)
        np.testing.assert_allclose(
            here.jacobian[:, k], (ahead.residuals - behind.residuals) / 2e-5, rtol=1e-4, atol=1e-4
        )
        assert here.slope[k] == pytest.approx((ahead.objective - behind.objective) / 2e-5, rel=1e-4)


def test_priors_count(swing) -> None:
    told = gr.fit(
        Pendulum(),
        swing,
        ["k"],
        gr.Collocation(criterion="amle"),
        priors={"k": gr.Normal(0.7, 1e-4)},
        guess={"k": 0.4},
        progress=False,
    )
    assert float(told["k"]) == pytest.approx(0.7, abs=1e-3)
    assert told["k"].std_error == pytest.approx(1e-4, rel=1e-2)


def test_level_that_the_data_do_not_need_is_zero() -> None:
    quiet = Oscillator(s=1e-6)
    record = data(quiet, np.linspace(0.0, 10.0, 41), "y", u=np.sign(np.sin(np.linspace(0.0, 10.0, 41))), seed=2)[0]
    found = gr.fit(
        Oscillator(),
        record,
        ["a", "scale(w)"],
        gr.Collocation(criterion="laplace"),
        guess={"scale(w)": 0.3},
        progress=False,
    )
    assert any(n.startswith("zero: scale(w)") for n in found.notes)
    exact = gr.fit(Oscillator(), record, ["a"], gr.OutputError(), progress=False)
    assert float(found["a"]) == pytest.approx(float(exact["a"]), rel=1e-3)


def test_renewed_data_give_an_independent_problem(swing) -> None:
    structure = structure_of(Pendulum())
    unknowns = resolve_unknowns(structure, [swing], ["k"], guess={"k": 0.2})

    from grisaille.collocation.direct import DirectOptions

    problem = pose_elements(FitRequest(Pendulum(), structure, [swing], unknowns), DirectOptions())
    values = swing.measurements("phi")[1]
    method = gr.Collocation(criterion="amle")
    before = solve(method, problem, None)
    other = solve(method, problem.renewed([values + 0.01 * np.cos(np.arange(len(values)))]), None)
    again = solve(method, problem.renewed([values], guess=np.array([0.3])), None)
    assert again.theta[0] == pytest.approx(before.theta[0], rel=1e-6)
    assert abs(other.theta[0] - before.theta[0]) > 1e-6


def test_fits_are_saved_and_loaded(fit, tmp_path) -> None:
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    assert float(loaded["k"]) == float(fit["k"])
    np.testing.assert_allclose(
        loaded.states()["x"].sel(statistic="mean"), fit.states()["x"].sel(statistic="mean"), atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "ipda"}, "hidden constraints.*'amle' or 'laplace'"),
        ({"transcription": "spline"}, "transcription='direct'"),
    ],
)
def test_what_direct_collocation_cannot_do_is_said(swing, options, words) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.fit(Pendulum(), swing, ["k"], gr.Collocation(**options), progress=False)
