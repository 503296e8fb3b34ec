"""``gr.compare``: closed forms, nested tests, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from assessment.lines import METHOD, Line, X, line_experiment, line_fit
from scipy.stats import f

import grisaille as gr
from grisaille.errors import EstimationError


def test_table_in_closed_form() -> None:
    whole, mean = line_fit(), line_fit(names=("p",))
    found = gr.compare({"line": whole, "mean": mean})
    y = line_experiment().measurements("y").values
    rms = np.sqrt(np.mean((y - y.mean()) ** 2))
    log_likelihood = -6 * (np.log(2 * np.pi * rms**2) + 1)
    row = found.table.loc["mean"]
    assert row["rms(y)"] == pytest.approx(rms)
    assert row["log_likelihood"] == pytest.approx(log_likelihood)
    assert row["aic"] == pytest.approx(-2 * log_likelihood + 4)
    assert row["bic"] == pytest.approx(-2 * log_likelihood + 2 * np.log(12))
    assert found.table["parameters"].tolist() == [3, 2]
    assert found.best == "line" and found.table.loc["line", "delta_aic"] == 0


def test_likelihood_ratio() -> None:
    whole, mean = line_fit(), line_fit(names=("p",))
    found = gr.compare({"line": whole, "mean": mean}, nested=[("mean", "line")])
    ratio = 2 * (whole.log_likelihood - mean.log_likelihood)
    assert found.tests["ratio"].tolist() == pytest.approx([ratio])
    assert found.tests["p"].tolist() == pytest.approx([f.sf(10 * np.expm1(ratio / 12), 1, 10)])  # exact for a line
    assert "the larger fits better" in str(found)


def test_ratio_of_true_small_models_is_chi_square() -> None:
    """A slope that is zero: the ratio exceeds the 10 % quantile in 10 of 100 fits; exact bounds at 0.1 % are 2 … 21."""
    x, random, hits = np.linspace(-1, 1, 40), np.random.default_rng(8), 0
    model = Line()
    for _ in range(100):
        data = gr.Experiment(inputs={"x": x}, outputs={"y": 1 + 0.1 * random.standard_normal(40)})
        fits = {"large": gr.fit(model, data, ["p", "q"], METHOD), "small": gr.fit(model, data, ["p"], METHOD)}
        hits += gr.compare(fits, nested=[("small", "large")]).tests["p"].iloc[0] < 0.1
    assert 2 <= hits <= 21


def test_what_is_not_a_likelihood_is_said() -> None:
    robust = gr.fit(Line(), line_experiment(), ["p", "q"], gr.OutputError(loss="huber"))
    found = gr.compare({"plain": line_fit(), "robust": robust})
    assert np.isnan(found.table.loc["robust", ["aic", "bic", "log_likelihood"]].astype(float)).all()
    assert "robust: its criterion is not a likelihood" in str(found)
    with pytest.raises(EstimationError, match="means nothing"):
        gr.compare({"plain": line_fit(names=("p",)), "robust": robust}, nested=[("plain", "robust")])


def test_different_data_are_not_ranked() -> None:
    found = gr.compare({"A": line_fit(seed=1), "B": line_fit(seed=2)})
    assert found.best is None
    assert "different measurements" in str(found)
    assert found.table["rms(y)"].notna().all()


def test_priors_are_mentioned() -> None:
    firm = line_fit(priors={"p": gr.Normal(1.5, 0.01)})
    assert "fitted with priors" in str(gr.compare({"firm": firm}))
    with pytest.raises(EstimationError, match="with priors"):
        gr.compare({"firm": firm, "mean": line_fit(names=("p",))}, nested=[("mean", "firm")])


def test_mistakes() -> None:
    fit, mean = line_fit(), line_fit(names=("p",))
    other = gr.fit(Line(), line_experiment(x=X + 0.5), ["p"], METHOD)
    for arguments, words in (
        (({},), "dict of fits by label"),
        (([fit],), "dict of fits by label"),
        (({"a": 3},), "'a' is a int, not a fit"),
        (({"a": fit, "b": mean}, [("a", "c")]), "names 'c'"),
        (({"a": fit, "b": mean}, [("a", "b")]), "no more parameters"),
        (({"a": fit, "b": other}, [("b", "a")]), "different measurements"),
    ):
        with pytest.raises(EstimationError, match=words):
            gr.compare(*arguments)


def test_a_larger_fit_that_is_worse_is_refused() -> None:
    class ThroughZero(Line):
        y = gr.Output(Line.p * Line.x + Line.q * Line.x**2)

    fits = {"small": line_fit(names=("p",)), "large": line_fit(ThroughZero)}
    with pytest.raises(EstimationError, match="not nested"):
        gr.compare(fits, nested=[("small", "large")])
