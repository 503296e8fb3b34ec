"""Data sets from a truth: closed forms for linear regression, gaps, several experiments, disturbances, verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from study.examples import METHOD, PLAN, SERIAL, Decay, Line, X, line_study

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.study import binomial_p_value, coverage_verdict


@pytest.fixture(scope="module")
def study():
    return line_study(120)


def test_spread_is_that_of_linear_regression(study) -> None:
    A = np.column_stack([np.ones_like(X), X])
    theory = 0.1 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    summary = study.summary()
    assert np.allclose(summary.table["std"], theory, rtol=4 / np.sqrt(2 * 120))
    assert np.allclose(summary.table["mean_std_error"], theory, rtol=1e-6)
    assert (summary.table["bias"].abs() < 4 * summary.table["bias_error"]).all()
    assert summary.table["truth"].tolist() == [1.5, -0.4]
    assert (summary.table["verdict"] == "as claimed").all()
    assert summary.counts["converged"] == summary.counts["runs"] == 120


def test_runs_can_be_left_out_and_are_counted(study) -> None:
    summary = study.summary(left_out=[0, 5, 5])
    kept = study.estimates.drop(index=[0, 5])
    assert summary.table.loc["p", "mean"] == pytest.approx(float(kept["p"].mean()), rel=1e-12)
    assert summary.table.loc["p", "intervals"] == 118
    assert "120 of 120 runs converged, 2 left out" in str(summary)
    assert study.summary(left_out=np.array([0, 5])).table.equals(summary.table)
    for wrong in (3, None, [True, False], "12"):
        with pytest.raises(gr.GrisailleError, match=r"left_out is .*; give the numbers of runs"):
            study.summary(left_out=wrong)
    with pytest.raises(EstimationError, match="left_out names run 120: runs are numbered from 0 to 119"):
        study.summary(left_out=[120])


def test_a_fit_of_more_unknowns_may_be_the_guess(study) -> None:
    fit = study.repeat(3)
    one = gr.monte_carlo(Line(), PLAN, ["p"], runs=2, guess=fit, **SERIAL)
    assert one.names == ("p",) and one.table["converged"].all()


def test_data_of_a_run_are_those_of_simulate(study) -> None:
    (made,) = study.data(7)
    seed = int(study.table["seed"][7])
    direct = gr.simulate(Line(), np.arange(12.0), inputs={"x": X}, noise=True, seed=seed)
    assert np.allclose(made.measurements("y").values, direct.y.values, rtol=1e-12)


def test_a_run_can_be_repeated_alone(study) -> None:
    again = study.repeat(73)
    row = study.table.loc[73]
    assert [row["p"], row["q"]] == again.estimate.theta.tolist()
    assert again.experiments == tuple(study.data(73))
    alone = gr.fit(Line(), study.data(73), ["p", "q"], METHOD)
    assert np.allclose(alone.estimate.theta, again.estimate.theta, rtol=1e-9)
    assert np.allclose(again.residuals()["measured"], again.experiments[0].measurements("y").values, rtol=0)


def test_longer_studies_begin_with_shorter_ones(study) -> None:
    assert line_study(10).table.equals(study.table.head(10))


def test_gaps_skips_and_experiments_are_kept() -> None:
    y = np.where(np.arange(12) % 3 == 0, np.nan, 0.0)
    plan = [
        gr.Experiment(inputs={"x": X}, outputs={"y": y}, name="A", skip=2),
        gr.Experiment(inputs={"x": X}, outputs={"y": np.zeros(12)}, name="B"),
    ]
    study = gr.monte_carlo(Line(), plan, ["p", "q"], runs=2, **SERIAL)
    a, b = study.data(1)
    assert np.array_equal(np.isnan(a.outputs["y"].values), np.isnan(y))
    assert len(a.measurements("y").values) == 7 and len(b.measurements("y").values) == 12
    assert study.table["degrees_of_freedom"].tolist() == [17, 17]
    assert abs(a.measurements("y").values[0] - b.measurements("y").values[1]) > 1e-6


def test_unknown_noise_is_asked_for_and_estimated() -> None:
    class Quiet(Line):
        y = gr.Output(Line.p + Line.q * Line.x)

    with pytest.raises(EstimationError, match=r"noise of output 'y' is unknown.*give noise=\{'y': …\}"):
        gr.monte_carlo(Quiet(), PLAN, ["p", "q"], runs=2, **SERIAL)
    study = gr.monte_carlo(Quiet(), PLAN, ["p", "q"], runs=40, noise={"y": 0.2}, **SERIAL)
    assert study.table["noise(y)"].mean() == pytest.approx(0.2, rel=0.15)
    with pytest.raises(EstimationError, match="noise= names 'z'"):
        gr.monte_carlo(Line(), PLAN, ["p"], runs=2, noise={"z": 1.0}, **SERIAL)


def test_dynamic_model_with_a_free_start() -> None:
    times = np.linspace(0.0, 4.0, 17)
    plan = gr.Experiment(times, {}, {"y": np.zeros(17)}, start={"x": 0.8})
    study = gr.monte_carlo(Decay(), plan, ["a", "start(x)"], runs=6, seed=2, **SERIAL)
    assert study.truth.tolist() == pytest.approx([0.5, 0.8])
    assert study.counts["converged"] == 6
    z = (study.estimates - study.truth) / study.table[["std_error(a)", "std_error(start(x))"]].to_numpy()
    assert (z.abs() < 4.5).all(axis=None)


def test_disturbances_are_drawn_and_lost_data_are_counted() -> None:
    class Kicked(gr.Model):
        """Strong enough kicks drive x over its threshold, from where it escapes."""

        a = gr.Parameter(1.0)
        x = gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=1.2)
        y = gr.Output(x, noise=0.01)
        equations = [der(x) == x**2 - a * x + w]

    plan = gr.Experiment(np.linspace(0.0, 5.0, 11), {}, {"y": np.zeros(11)})
    study = gr.monte_carlo(Kicked(), plan, ["a"], runs=12, bounds={"a": (0.2, 5.0)}, seed=1, **SERIAL)
    lost = study.table["failure"] == "data"
    assert 0 < lost.sum() < 12
    assert study.table.loc[lost, "status"].str.contains("the data could not be simulated").all()
    assert study.table["seed"].nunique() == 12
    assert f"{lost.sum()} (data)" in str(study)
    good = int(np.flatnonzero(~lost)[0])
    y = study.data(good)[0].measurements("y").values
    assert y.std() > 0.1


def test_coverage_is_judged_exactly() -> None:
    assert coverage_verdict(177, 200, 0.95, binomial_p_value(177, 200, 0.95)) == "too seldom"
    assert coverage_verdict(180, 200, 0.95, binomial_p_value(180, 200, 0.95)) == "as claimed"
    assert coverage_verdict(400, 400, 0.95, binomial_p_value(400, 400, 0.95)) == "too often"
    assert coverage_verdict(0, 0, 0.95, np.nan) == "no intervals"


def test_wrong_noise_is_noticed() -> None:
    """Three times the noise that the fit believes in: intervals cover too seldom, and the text says so."""
    study = gr.monte_carlo(Line(), PLAN, ["p", "q"], runs=60, noise={"y": 0.3}, **SERIAL)
    assert (study.summary().table["verdict"] == "too seldom").all()
    assert "intervals at 95 % hold the truth; too seldom" in str(study)


def test_estimates_at_a_bound_have_no_interval() -> None:
    study = gr.monte_carlo(Line(q=0.0), PLAN, ["p", "q"], runs=20, bounds={"q": (0.0, 1.0)}, **SERIAL)
    row = study.summary().table.loc["q"]
    assert 3 <= row["at_bound"] <= 17
    assert row["intervals"] == 20 - row["at_bound"]


def test_picture(study) -> None:
    figure = study.plot()
    assert [a.get_xlabel() for a in figure.axes if a.get_xlabel()] == ["p", "q"]


def test_a_parameter_may_be_called_like_a_column() -> None:
    class Odd(gr.Model):
        status = gr.Parameter(1.0)
        x = gr.Input()
        y = gr.Output(status * x, noise=0.1)

    study = gr.monte_carlo(Odd(), PLAN, ["status"], runs=2, **SERIAL)
    assert study.table["status"].str.startswith("converged").all()
    assert study.estimates["status"].between(0.5, 1.5).all()


def test_mistakes() -> None:
    for options, words in (({"runs": 0}, "above zero"), ({"method": "xyzzy"}, "give 'auto'")):
        with pytest.raises(EstimationError, match=words):
            gr.monte_carlo(Line(), PLAN, ["p"], **{**SERIAL, "runs": 1, **options})
    with pytest.raises(EstimationError, match="level is 95"):
        line_study(1).summary(95)
