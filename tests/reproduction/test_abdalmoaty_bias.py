"""Many data sets with one interpolated ensemble: the minimum of the method itself; bias, spread, coverage."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille_reproductions.abdalmoaty import PROGRAM, SPACING, TRANSIENT, TRUTH, times
from grisaille_reproductions.abdalmoaty_bias import consistency, finite_ensembles, used
from grisaille_reproductions.abdalmoaty_coverage import _rows, coverage
from grisaille_reproductions.abdalmoaty_curve import trace_curve
from grisaille_reproductions.abdalmoaty_estimates import simulate_data

N, M = 900, 10


@pytest.fixture(scope="module")
def curve():
    return trace_curve(PROGRAM, N, M, count=16, span=(2.0, 20.0))


def test_a_polynomial_in_the_drag_stands_for_simulations(curve) -> None:
    assert curve.distance(PROGRAM, 3.1) < 1e-3
    value, slope = (curve.weights(np.array([4.0]))[k][0] for k in (0, 1))
    ahead, behind = (curve.weights(np.array([4.0 + h]))[0][0] for h in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, atol=1e-8)
    assert value.sum() == pytest.approx(1)


def test_the_same_minimum_as_the_method_and_its_grid(curve) -> None:
    """One ensemble for all data sets changes nothing; grid and Gauss–Newton agree within a step of the grid."""
    y = simulate_data(PROGRAM, 1, N)
    assert used(N).start == TRANSIENT - 1
    (found,) = curve.fit(y, used(N))
    phi = np.concatenate([[0.0], y[0]])
    data = gr.Experiment(times(N), PROGRAM.inputs(N), {"phi": phi}, hold="foh", skip=TRANSIENT, name="one")
    options = {"realizations": M, "step": SPACING, "rtol": 1e-4}
    bounds = {"k": (2.0, 20.0)}
    fit = gr.fit(PROGRAM.model(), data, ["k"], gr.SimulatedPEM(**options), bounds=bounds, progress=False)
    assert abs(found - float(fit["k"])) < 0.01 * fit["k"].std_error
    points = 13
    grid = gr.SimulatedPEM(search="grid", points=points, **options)
    coarse = gr.fit(PROGRAM.model(), data, ["k"], grid, bounds=bounds, progress=False)
    assert abs(float(coarse["k"]) - float(fit["k"])) <= 18.0 / (points - 1)


def test_few_realizations_bias_and_the_correction() -> None:
    result = finite_ensembles("small", None, None, data_sets=24, samples=1000, realizations=(8, 24))
    moved = {
        m: result.ours(f"M = {m}, plain: bias of k") - result.ours(f"M = {m}, corrected: bias of k") for m in (8, 24)
    }
    assert moved[8] > 2 * moved[24] > 0, "the correction is of the order of 1/M"
    assert abs(result.ours("M = 24, corrected: bias of k")) < 4 * result.ours(
        "M = 24, corrected: standard error of that"
    )


def test_longer_records_spread_less_and_output_error_stays_off() -> None:
    result = consistency("small", None, None, data_sets=40, realizations=24, lengths=(1000, 4000))
    assert result.ours("corrected, N = 4000: std") < 0.5 * result.ours("corrected, N = 1000: std")
    error = result.ours("corrected, N = 4000: its standard error")
    assert abs(result.ours("corrected, N = 4000: bias")) < 3 * error
    assert result.ours("output error, N = 4000: bias") > 0.5


def test_coverage_is_judged_by_the_exact_test() -> None:
    told = {"mean": TRUTH, "std": 0.4, "mean_std_error": 0.4, "intervals": 400}
    verdict = {hits: _rows("ours", {**told, "hits": hits})[-1].ours for hits in (340, 370, 380, 398)}
    assert verdict == {340: "refused", 370: "not refused", 380: "not refused", 398: "refused"}


def test_intervals_are_counted(tmp_path) -> None:
    result = coverage("small", tmp_path, None, data_sets=3, samples=300, realizations=8)
    assert str(result["SimulatedPEM: intervals that hold the truth"].ours).endswith("of 3")
    assert result.ours("output error: mean of the standard errors [kg/m]") < 0.5 * result.ours(
        "SimulatedPEM: mean of the standard errors [kg/m]"
    )
    assert [p.name for p in result.figures] == ["coverage.png"]
