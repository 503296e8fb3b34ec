"""Standard errors from ensembles: their two parts against what many records and many ensembles show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimators.simulated_pem.mean_models import TIMES, Drifting, Squared, record
from scipy.stats import binom

import grisaille as gr
from grisaille.errors import EstimationError


@pytest.mark.parametrize("match", ["mean", "mean-variance"])
def test_monte_carlo_part_is_the_scatter_over_ensembles(match: str) -> None:
    """One record, 10 seeds of the model; a variance from 10 values is known to 47 %."""
    data, count = record(Squared(a=1.2), 3, TIMES[:101]), 12 if match == "mean" else 100
    method = gr.SimulatedPEM(realizations=count, match=match, threads=1)
    fits = [gr.fit(Squared(a=1.2), data, ["a"], replace(method, seed=s)) for s in range(10)]
    scatter = np.var([float(f["a"]) for f in fits], ddof=1)
    told = np.mean([f.estimate.ensemble.monte_carlo_share * f["a"].std_error ** 2 for f in fits])
    assert 0.33 < told / scatter < 3.0


def test_experiments_share_the_random_numbers_of_the_model() -> None:
    """Copies of a record divide what records differ by, and nothing of what ensembles do."""
    found = []
    for copies in (1, 3):
        records = [record(Squared(a=1.2), 3, TIMES[:101]) for _ in range(copies)]
        fit = gr.fit(Squared(a=1.2), records, ["a"], gr.SimulatedPEM(realizations=24, threads=1))
        found.append((fit["a"].std_error ** 2, fit.estimate.ensemble.monte_carlo_share))
    (one, share), (three, larger) = found
    assert three * larger == pytest.approx(one * share, rel=1e-3)
    assert three * (1 - larger) == pytest.approx(one * (1 - share) / 3, rel=1e-3)


def test_intervals_hold_the_truth() -> None:
    """30 records of 100 samples; the exact binomial test at 0.1 % against 95 %."""
    plan = gr.Experiment(TIMES[:101], {"u": 1.0}, {"y": np.zeros(101)})
    study = gr.monte_carlo(
        Squared(a=1.2), plan, ["a"], gr.SimulatedPEM(realizations=24, threads=1), runs=30, seed=5, executor="serial",
        progress=False,
    )  # fmt: skip
    told = study.summary().table.loc["a"]
    assert told["intervals"] == 30
    assert binom.cdf(told["hits"], 30, 0.95) > 0.0005


def test_size_of_errors_is_compared_with_realizations() -> None:
    """A right model is healthy without being white; one with too small a disturbance is not."""
    data = record(Drifting(a=1.2, b=1.5), 3)
    fit = gr.fit(Drifting(), data, ["a", "b"], gr.SimulatedPEM(realizations=200))
    told = fit.diagnose()
    assert told
    assert {v.test for v in told.verdicts} == {"size"}
    assert "need be neither white nor normal" in str(told)
    rough = record(Drifting(a=1.2, b=1.5), 3, parameters={"scale(w)": 0.9})
    small = gr.fit(Drifting(), rough, ["a", "b"], gr.SimulatedPEM(realizations=200))
    assert not small.diagnose()
    assert "as large as in simulated records" in str(small.diagnose())


def test_profiles_are_refused_in_words() -> None:
    fit = gr.fit(Squared(), record(Squared(a=1.2), 3), ["a"], gr.SimulatedPEM(realizations=16))
    with pytest.raises(EstimationError, match=r"criterion of SimulatedPEM is not one.*fit.intervals\(\)"):
        fit.profile("a")
