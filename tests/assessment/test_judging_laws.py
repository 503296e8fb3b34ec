"""What judges and shows fits of outputs with laws: tests, notes, bands, scores, comparisons, reports."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from assessment.laws_of_counts import MEAN, Counts, Heavy, T, counts, heavy
from scipy import stats

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.estimation.predictions import mixture_quantile

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "law_residuals.py"), run_name="imported")
COUNTED = gr.fit(Counts(), counts(5), ["k", "b"])
HEAVY = gr.fit(Heavy(), heavy(3), ["k", "b", "scale"])
FALSE = ("declared noise", "OutputError(loss", "noise=None", "innovation", "robust loss", "recorded in steps")


def test_residuals_are_those_of_the_law_and_normal_outputs_stay() -> None:
    table = COUNTED.residuals(standardized=True)
    plain = COUNTED.residuals()
    z = (table["output"] == "z").to_numpy()
    assert np.allclose(table["residual"][z], plain["residual"][z] / 0.1, rtol=1e-12)
    y = plain[~z]
    low, high = (stats.poisson.cdf(y["measured"] - k, y["predicted"]) for k in (1, 0))
    u = stats.norm.cdf(table["residual"][~z])
    assert (u >= low - 1e-12).all() and (u <= high + 1e-12).all()
    assert np.allclose(y["residual"], y["measured"] - y["predicted"])


def test_another_seed_spreads_counts_otherwise_and_nothing_else() -> None:
    first, other = (COUNTED.residuals(standardized=True, seed=k) for k in (0, 1))
    is_count = (first["output"] == "y").to_numpy()
    assert np.array_equal(first["residual"], COUNTED.residuals(standardized=True)["residual"])
    assert not np.isclose(first["residual"], other["residual"])[is_count].any()
    assert np.array_equal(first["residual"][~is_count], other["residual"][~is_count])
    found = COUNTED.diagnose(seed=1)
    assert found and np.array_equal(found.series[0].residuals, other["residual"][is_count])


def test_a_right_law_is_healthy_and_nothing_false_is_noted() -> None:
    for fit in (COUNTED, HEAVY):
        assert fit.diagnose(), str(fit.diagnose())
        said = f"{fit} {fit.diagnose()}".replace("they are as large as the declared noise", "")  # that of z
        assert not [words for words in FALSE if words in said], said
    assert "they scatter as widely as the law Poisson" in str(COUNTED.diagnose())
    assert "size" not in set(HEAVY.diagnose().table["test"])  # its scale was estimated


def test_counts_that_scatter_more_are_named_with_the_law_to_take() -> None:
    fit = gr.fit(Counts(), counts(2, size=1.5), ["k", "b"])
    said = " ".join(fit.doubts)
    assert "over-dispersed: the scatter is 1." in said and "gr.laws.NegativeBinomial(size=…)" in said
    size = next(v for v in fit.diagnose().verdicts if (v.output, v.test) == ("y", "size"))
    assert not size.healthy and "that of the law Poisson" in size.sentence
    assert not [words for words in FALSE if words in f"{fit} {fit.diagnose()}".replace("as the declared noise", "")]


def test_far_from_the_data_the_law_is_named() -> None:
    record = counts(4)
    y = record.outputs["y"].values + 60.0 * (np.arange(len(T)) % 2)
    fit = gr.fit(Counts(), record.replace(outputs={"y": y, "z": record.outputs["z"].values}), ["k", "b"])
    said = " ".join(fit.notes)
    assert "times what the law Poisson leaves" in said and "declared noise" not in said


@pytest.mark.parametrize("law", ["Poisson", "Student", "Gamma", "LogNormal"])
def test_right_models_are_not_refused_too_often(law: str) -> None:
    """A small version of ``benchmarks/law_residuals.py``."""
    sets = 25
    for test, count, below in STUDY["shares"](STUDY["STUDIES"][law], sets, 60):
        limits = [stats.binom.isf(1e-4, count, level) for level in STUDY["LEVELS"]]
        assert count == sets and (below <= limits).all(), (test, below)


def test_bands_are_quantiles_of_the_law() -> None:
    found = COUNTED.predict("A", bands="noise")
    mean, std, lower, upper = found["y"].values
    assert np.allclose(std, np.sqrt(mean))
    assert np.array_equal(lower, stats.poisson.ppf(0.025, mean)) and np.array_equal(
        upper, stats.poisson.ppf(0.975, mean)
    )
    mean, _, lower, upper = HEAVY.predict("A", bands="noise")["y"].values
    assert np.allclose(upper - mean, float(HEAVY["scale"]) * stats.t.ppf(0.975, 4.0), rtol=1e-9)
    assert np.allclose(mean - lower, upper - mean)


def test_bands_with_parameters_are_those_of_a_mixture() -> None:
    """Against draws: few samples leave the mean, which is searched by its logarithm, as uncertain as the counts."""
    record = gr.Experiment(inputs={"t": T[:4]}, outputs={"y": np.array([7.0, 4.0, 5.0, 3.0])}, name="A")
    fit = gr.fit(Counts(), record, ["b"])
    random = np.random.default_rng(0)
    b = float(fit["b"]) * np.exp(float(fit.std_errors[0] / fit["b"]) * random.standard_normal(200_000))
    drawn = random.poisson(b)
    _, std, lower, upper = fit.predict("A", bands="all")["y"].values[:, 0]
    assert std == pytest.approx(drawn.std(), rel=0.01)
    assert abs(lower - np.quantile(drawn, 0.025)) <= 1 and abs(upper - np.quantile(drawn, 0.975)) <= 1
    assert lower == np.floor(lower) and upper == np.floor(upper)
    noise = fit.predict("A", bands="noise")["y"].values[3, 0]
    assert upper > noise


def test_the_quantile_of_a_mixture_has_its_probability() -> None:
    law: Any = gr.laws.Student(df=5.0, scale=1.0).filled({"mean": np.repeat([-2.0, 0.5, 3.0], 2)})
    y = mixture_quantile(law, (3, 2), 0.9)
    assert np.allclose(stats.t.cdf(y[0] - np.array([-2.0, 0.5, 3.0]), 5.0).mean(), 0.9, atol=1e-4)


def test_log_scores_of_records_that_were_not_fitted() -> None:
    found = COUNTED.validate(counts(11, name="B"))
    y = found.residuals()
    mine = y[y["output"] == "y"]
    assert found.table.loc["y", "log_score"] == pytest.approx(
        stats.poisson.logpmf(mine["measured"], mine["predicted"]).mean(), rel=1e-9
    )
    mine = y[y["output"] == "z"]
    assert found.table.loc["z", "log_score"] == pytest.approx(stats.norm.logpdf(mine["residual"], scale=0.1).mean())
    assert found.diagnosis and "log_score" in str(found)


def test_sandwich_errors_are_those_of_the_scores() -> None:
    record = counts(2, size=1.5)
    plain = gr.fit(Counts(), record, ["k", "b"])
    fit = gr.fit(Counts(), record, ["k", "b"], gr.OutputError(covariance="sandwich"))
    k, b = fit.estimate.theta
    m = b * np.exp(-k * T)
    by_mean = (record.outputs["y"].values - m) / m
    scores = np.stack([by_mean * -T * m, by_mean * m / b], axis=1)
    errors = (record.outputs["z"].values - k * T) / 0.01
    scores = np.concatenate([scores, np.stack([errors * T, np.zeros(len(T))], axis=1)])
    slopes = np.stack([-T * m, m / b], axis=1) / np.sqrt(m)[:, None]
    information = slopes.T @ slopes + np.diag([np.sum(T**2) / 0.01, 0.0])
    n = len(scores)
    inverse = np.linalg.inv(information)
    assert np.allclose(fit.estimate.covariance, inverse @ (scores.T @ scores) @ inverse * n / (n - 2), rtol=1e-6)
    assert np.allclose(plain.estimate.covariance, inverse, rtol=1e-6)
    assert fit.std_errors[1] > 1.1 * plain.std_errors[1]
    with pytest.raises(EstimationError, match="made for squares of errors"):
        plain.with_errors("robust")


def test_likelihoods_are_compared_and_profiled() -> None:
    small = gr.fit(Counts(), counts(5), ["b"])
    found = gr.compare({"small": small, "large": COUNTED}, nested=[("small", "large")])
    mean = [f.residuals().query("output == 'y'")["predicted"] for f in (small, COUNTED)]
    y, z = (COUNTED.residuals().query(f"output == '{n}'") for n in "yz")
    log_likelihood = stats.poisson.logpmf(y["measured"], mean[1]).sum() + stats.norm.logpdf(z["residual"], 0, 0.1).sum()
    assert COUNTED.log_likelihood == pytest.approx(log_likelihood)
    assert found.table.loc["large", "aic"] == pytest.approx(4 - 2 * log_likelihood)
    ratio = 2 * (COUNTED.log_likelihood - small.log_likelihood)
    assert found.tests["p"].iloc[0] == pytest.approx(stats.chi2.sf(ratio, 1))
    assert COUNTED.test({"k": 0.3}).p == pytest.approx(stats.chi2.sf(ratio, 1), rel=1e-4)


def test_probabilities_beside_densities_are_remarked_on() -> None:
    class Continuous(Counts):
        y = gr.Output(Counts.b * gr.exp(-Counts.k * Counts.t), noise=2.0)

    other = gr.fit(Continuous(), counts(5), ["k", "b"])
    assert any("as if a density held over a whole count" in n for n in gr.compare({"a": COUNTED, "b": other}).notes)


def test_sensitivities_are_scaled_by_the_information_of_the_law() -> None:
    model = Counts().replace({"k": 0.3, "b": 5.0})
    found = gr.sensitivity(model, counts(1), ["b"])
    assert found.table.loc["b", "size(y)"] == pytest.approx(np.sqrt(np.mean(MEAN)))  # b ∂m/∂b over √m is √m
    assert found.table.loc["b", "size(z)"] == 0
    assert gr.sensitivity(Heavy(), heavy(1)).scatter == ("scale",)  # which moves no prediction, and is estimated


def test_the_law_is_shown_with_its_estimates(tmp_path: Path) -> None:
    scale = f"{float(HEAVY['scale']):.6g}"
    assert f"laws              y: Student(df=4, scale={scale})" in str(HEAVY)
    assert f"Student(df=4, scale={scale})" in HEAVY._repr_html_()
    page = HEAVY.report(tmp_path / "heavy.html", profiles=False).read_text("utf-8")
    assert f"Student(df=4, scale={scale})" in page and "quantile residual" in page
    assert re.search(r"Student\(df = <math><mn>4</mn></math>, scale = <math><mi[^>]*>scale</mi>", Heavy()._repr_html_())
    figure = HEAVY.plot()
    assert figure.axes[1].get_ylabel() == "quantile residual"


class Source(gr.Model):
    """A decay whose start is declared."""

    k = gr.Parameter(0.3, bounds=(0.01, 3.0))
    x = gr.Variable(start=100.0)
    y = gr.Output(x, distribution=gr.laws.Poisson())
    equations = [gr.der(x) == -k * x]


def test_a_declared_start_that_counts_contradict_is_named() -> None:
    t = np.linspace(0.0, 6.0, 40)
    y = np.random.default_rng(0).poisson(150.0 * np.exp(-0.3 * t)).astype(float)
    wrong = gr.fit(Source(), gr.Experiment(t, outputs={"y": y}), ["k"], gr.OutputError())
    right = gr.fit(Source(), gr.Experiment(t, outputs={"y": np.round(100.0 * np.exp(-0.3 * t))}), ["k"],
                   gr.OutputError())  # fmt: skip
    assert wrong.notes[0].startswith("start: the record does not begin where x was declared to")
    assert not any(n.startswith("start:") for n in right.notes)


def test_limits_that_differ_from_sample_to_sample_are_judged_and_drawn() -> None:

    class Limited(Counts):
        low = gr.Input()
        y = gr.Output(Counts.b * gr.exp(-Counts.k * Counts.t),
                      distribution=gr.laws.Censored(below=low, of=gr.laws.LogNormal(log_std=0.3)))  # fmt: skip

    low = np.where(T < 3.0, 0.5, 1.5)
    y = np.maximum(MEAN * np.exp(0.3 * np.random.default_rng(8).standard_normal(len(T))), low)
    fit = gr.fit(Limited(), gr.Experiment(inputs={"t": T, "low": low}, outputs={"y": y}, name="A"), ["k", "b"])
    assert fit.diagnose(), str(fit.diagnose())
    _, _, lower, upper = fit.predict("A", bands="noise")["y"].values
    location = float(fit["b"]) * np.exp(-float(fit["k"]) * T)
    assert np.allclose(lower, np.maximum(low, location * np.exp(-1.959964 * 0.3)), rtol=1e-5)
    assert np.allclose(upper, np.maximum(low, location * np.exp(1.959964 * 0.3)), rtol=1e-5)
    assert "Censored(below=low, of=LogNormal(log_std=0.3))" in str(fit)
