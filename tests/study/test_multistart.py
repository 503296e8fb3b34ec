"""Many starts: which minima, how many each, and failures that are rows."""

from __future__ import annotations

import numpy as np
import pytest
from study.examples import METHOD, SERIAL, Rooted, Valleys, X, valleys_data

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.study import find_basins


def rooted_data() -> gr.Experiment:
    return gr.Experiment(inputs={"x": X}, outputs={"y": np.sqrt(2.0) * X})


@pytest.fixture(scope="module")
def valleys():
    return gr.multistart(Valleys(), valleys_data(), ["p"], starts=12, **SERIAL)


def test_two_minima_are_found_and_told_apart(valleys) -> None:
    assert len(valleys.basins) == 2
    assert valleys.basins["count"].sum() == valleys.counts["converged"]
    assert valleys.basins["p"].tolist() == pytest.approx([1.0, -0.935], abs=0.01)
    assert valleys.basins["above_best"].iloc[0] == 0 < valleys.basins["above_best"].iloc[1]
    assert float(valleys.best["p"]) == valleys.basins["p"].iloc[0]


def test_criterion_tells_minima_apart_although_objectives_agree(valleys) -> None:
    """With estimated noise ½Σr² is (N − n)/2 at every minimum."""
    found = valleys.table[valleys.table["converged"]]
    assert np.allclose(found["objective"], (12 - 1) / 2)
    assert found.groupby("basin")["criterion"].mean().diff().iloc[1] > 0.1


def test_a_row_is_the_fit_from_its_guess(valleys) -> None:
    for run in (0, 5):
        row = valleys.table.loc[run]
        alone = gr.fit(Valleys(), valleys_data(), ["p"], METHOD, guess={"p": row["guess(p)"]})
        assert row["p"] == alone.estimate.theta[0]
        assert row["status"] == alone.status


def test_failed_starts_are_rows() -> None:
    study = gr.multistart(Rooted(), rooted_data(), ["p"], sampling={"p": [1.0, -2.0]}, **SERIAL)
    assert study.counts["failed"] == study.counts["failed: fit"] == 1
    assert study.failures.index.tolist() == [1]
    assert "cannot be simulated at the guess (p = -2)" in study.table["status"][1]
    assert study.table["guess(p)"].tolist() == [1.0, -2.0]
    assert float(study.best["p"]) == pytest.approx(2.0, rel=1e-6)
    assert "1 failed: 1 (fit)" in str(study)
    with pytest.raises(EstimationError, match="cannot be simulated"):
        study.repeat(1)


def test_a_study_of_failures_says_why() -> None:
    study = gr.multistart(Rooted(), rooted_data(), ["p"], sampling=[[-3.0]], **SERIAL)
    for ask in (lambda: study.best, study.plot):
        with pytest.raises(EstimationError, match="None of the 1 starts"):
            ask()
    assert len(study.basins) == 0


def test_waterfall(valleys) -> None:
    axes = valleys.plot().axes[0]
    assert axes.get_yscale() == "log"
    assert "minimum 0: " in axes.get_legend().get_texts()[0].get_text()


def test_basins_by_standard_errors_and_digits() -> None:
    estimates = np.array([[1.0], [1.05], [1.5], [1.0 + 1e-9], [1.0]])
    errors = np.full((5, 1), 1.0)
    criterion = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    converged = np.array([True, True, True, True, False])
    assert find_basins(estimates, errors, criterion, converged).tolist() == [0, 0, 1, 0, -1]
    assert find_basins(estimates, 0 * errors, criterion, converged).tolist() == [0, 1, 2, 0, -1]


def test_robust_losses_are_compared_by_their_loss() -> None:
    method = gr.OutputError(loss="cauchy", loss_scale=0.05)
    study = gr.multistart(Valleys(), valleys_data(), ["p"], method, starts=4, executor="serial")
    assert study.table["criterion"].nunique() >= 2
    assert float(study.best["p"]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"executor": 0}, "executor is 0"), ({"executor": "threads"}, "give None"), ({"starts": 0}, "whole number")],
)
def test_mistakes(options: dict, words: str) -> None:
    with pytest.raises(EstimationError, match=words):
        gr.multistart(Valleys(), valleys_data(), ["p"], **{**SERIAL, **options})


def test_repeat_refuses_runs_that_are_not_there(valleys) -> None:
    for run in (12, -1, 1.5):
        with pytest.raises(EstimationError, match="runs are numbered from 0 to 11"):
            valleys.repeat(run)
