"""Fits of samples known by a limit alone: beside a likelihood written with SciPy, saved, drawn again, refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import grisaille as gr
from grisaille.errors import DataError, EstimationError

rng = np.random.default_rng(4)
U = np.linspace(-2.0, 2.0, 60)
Y = 1 + 0.5 * U + 0.4 * rng.normal(size=60)
LOW, HIGH = np.where(U < 0, 0.6, 0.3), 2.0
IS_LOW, IS_HIGH = LOW > Y, HIGH < Y
CELLS: list[Any] = [f"<{lo}" if is_low else f">{HIGH}" if is_high else y
                    for y, lo, is_low, is_high in zip(Y.tolist(), LOW, IS_LOW, IS_HIGH, strict=True)]  # fmt: skip
NAMES = ["a", "b", "s"]


class Line(gr.Model):
    """A straight line with normal scatter, seen between limits."""

    u, low = gr.Input(), gr.Input(default=-9.0)
    a, b = gr.Parameter(1.0), gr.Parameter(0.5)
    s, fixed = gr.Parameter(0.4, bounds=(0.01, 10.0)), gr.Parameter(2.0)


class FromData(Line):
    """All limits come from the data."""

    y = gr.Output(Line.a + Line.b * Line.u, distribution=gr.laws.Censored(of=gr.Normal(std=Line.s)))


class FromColumn(Line):
    """The lower limit is a column, the upper one a parameter."""

    law = gr.laws.Censored(below=Line.low, above=Line.fixed, of=gr.Normal(std=Line.s))
    y = gr.Output(Line.a + Line.b * Line.u, distribution=law)


def cost(p: np.ndarray) -> float:
    mean = p[0] + p[1] * U
    inside = np.where(IS_HIGH, norm.logsf((HIGH - mean) / p[2]), norm.logpdf(Y, mean, p[2]))
    return -float(np.where(IS_LOW, norm.logcdf((LOW - mean) / p[2]), inside).sum())


@pytest.fixture(scope="module")
def best() -> Any:
    tight = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000}
    return minimize(cost, [1.0, 0.5, 0.4], method="Nelder-Mead", options=tight)


@pytest.fixture(scope="module")
def marked() -> gr.Experiment:
    return gr.Experiment(inputs={"u": U}, outputs={"y": CELLS}, name="A")


@pytest.fixture(scope="module")
def fit(marked: gr.Experiment) -> gr.Fit:
    return gr.fit(FromData(), marked, NAMES)


def test_marked_samples_count_with_the_probability_beyond_their_limits(fit: gr.Fit, best: Any) -> None:
    assert IS_LOW.sum() > 8 and IS_HIGH.sum() > 1
    assert fit.converged
    np.testing.assert_allclose([fit.estimates[n] for n in NAMES], best.x, atol=1e-4 * float(fit.std_errors.min()))
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-9)


def test_their_information_is_the_observed_one(fit: gr.Fit) -> None:
    """Of unmarked samples that of a normal law; of marked ones −∂² log Φ, by differences."""
    theta, n = np.array([fit.estimates[k] for k in NAMES]), (~IS_LOW & ~IS_HIGH)
    rows = np.stack([np.ones(60), U], axis=1)[n] / theta[2]
    information = np.zeros((3, 3))
    information[:2, :2], information[2, 2] = rows.T @ rows, 2 * n.sum() / theta[2] ** 2

    def beyond(p: np.ndarray) -> float:
        mean = p[0] + p[1] * U
        high = norm.logsf((HIGH - mean) / p[2])[IS_HIGH].sum()
        return float(norm.logcdf((LOW - mean) / p[2])[IS_LOW].sum() + high)

    h = 1e-4 * np.eye(3)
    information -= [[(beyond(theta + i + j) - beyond(theta + i - j) - beyond(theta - i + j) + beyond(theta - i - j))
                     / 4e-8 for j in h] for i in h]  # fmt: skip
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(information), rtol=1e-3)


def test_limits_may_be_columns_and_parameters(fit: gr.Fit) -> None:
    values = np.clip(Y, LOW, HIGH)
    columns = gr.Experiment(inputs={"u": U, "low": LOW}, outputs={"y": values}, name="A")
    found = gr.fit(FromColumn(), columns, NAMES)
    np.testing.assert_allclose(list(found.estimates.values()), list(fit.estimates.values()), atol=1e-5)
    assert found.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-8)
    own = gr.Experiment(inputs={"u": U}, outputs={"y": CELLS}, name="A")  # marks go before the law's own limit
    again = gr.fit(FromColumn(), own, NAMES)
    assert again.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-8)


def test_a_sample_knows_its_limit_better_than_the_law() -> None:
    """At or below 2.5, where the law would have everything from 2 up censored, and at or above −9.5, likewise."""
    cells = ["<2.5", ">-9.5", 1.0, 2.2]
    data = gr.Experiment(inputs={"u": np.zeros(4)}, outputs={"y": cells}, name="A")
    density = gr.log_density(FromColumn(), data, ["a", "s"])
    expected = norm.logcdf(2.5, 1, 0.4) + norm.logsf(-9.5, 1, 0.4) + norm.logpdf(1, 1, 0.4) + norm.logsf(2, 1, 0.4)
    assert density(np.array([1.0, 0.4])) == pytest.approx(expected, rel=1e-10)


def test_limits_must_not_move() -> None:
    data = gr.Experiment(inputs={"u": U}, outputs={"y": np.clip(Y, LOW, HIGH)})
    with pytest.raises(
        EstimationError, match="'above' of the law Censored of output 'y' contains 'fixed', which is est"
    ):
        gr.fit(FromColumn(), data, [*NAMES, "fixed"])


def test_limits_that_leave_nothing_between_them_are_refused() -> None:
    crossed = {"u": U, "low": np.where(np.arange(60) == 7, 2.5, LOW)}
    with pytest.raises(DataError, match=r"no law Censored\(Normal\) of 'y' at t = 7, where below = 2.5 is not smaller"):
        gr.fit(FromColumn(), gr.Experiment(inputs=crossed, outputs={"y": np.clip(Y, LOW, HIGH)}), NAMES)
    with pytest.raises(DataError, match=r"cannot be drawn: at t = 7 below = 2\.5 is not smaller than above = 2"):
        gr.simulate(FromColumn(), np.arange(60.0), crossed, noise=True)


def test_data_all_of_which_are_beyond_a_limit_are_judged() -> None:
    """Each sample has one value with all of the probability, of which residuals cannot know anything."""
    unseen = gr.Experiment(inputs={"u": U, "low": np.full(60, 90.0)}, outputs={"y": np.full(60, 90.0)}, name="A")
    found = gr.fit(FromColumn(fixed=99.0), unseen, ["a"])
    assert np.isfinite(found.residuals(standardized=True)["residual"]).all()
    assert found.diagnose().verdicts and "constant (90)" in str(found)


def test_a_saved_fit_has_its_marks(fit: gr.Fit, marked: gr.Experiment, tmp_path: Path) -> None:
    fit.save(tmp_path / "fit.nc")
    loaded = gr.load(tmp_path / "fit.nc")
    assert str(loaded) == str(fit)
    assert loaded.experiments[0] == marked
    assert loaded.intervals(method="profile").equals(fit.intervals(method="profile"))


def test_bootstraps_draw_values_that_end_at_the_limits(fit: gr.Fit) -> None:
    runs = gr.bootstrap(fit, runs=2, executor="serial")
    assert runs.counts["converged"] == 2
    drawn = runs.data(0)[0]
    values, marks = drawn.outputs["y"].values, drawn.marks["y"]
    assert ((marks < 0) == (IS_LOW & (values == LOW))).all()
    assert (values[IS_LOW] >= LOW[IS_LOW]).all() and (marks[~IS_LOW & ~IS_HIGH] == 0).all()
    refitted = gr.fit(FromData(), drawn, NAMES)
    np.testing.assert_allclose(runs.table.iloc[0, :3].astype(float), list(refitted.estimates.values()), rtol=1e-4)


def test_limits_of_a_plan_hold_in_every_data_set(marked: gr.Experiment) -> None:
    runs = gr.monte_carlo(FromData(), marked, NAMES, runs=2, executor="serial")
    first, second = (runs.data(k)[0] for k in (0, 1))
    assert (first.marks["y"] != second.marks["y"]).any()
    for drawn in (first, second):
        assert (drawn.outputs["y"].values[IS_LOW] >= LOW[IS_LOW]).all()
    again = gr.fit(FromData(), second, NAMES)
    np.testing.assert_allclose(runs.table.iloc[1, :3].astype(float), list(again.estimates.values()), rtol=1e-4)
