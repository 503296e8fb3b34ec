"""Weighting and unknowns in turn: ended early, the estimates are those of many more rounds."""

from __future__ import annotations

import numpy as np
import pytest
from estimators.simulated_pem.mean_models import TIMES, TwoTanks, record

import grisaille as gr
from grisaille.estimators.simulated_pem import alternating_weighting as mean_settling


def test_rounds_end_when_the_unknowns_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    data = record(TwoTanks(k=1.0), 3, TIMES[:101], noise=0.05)
    method = gr.SimulatedPEM(realizations=16, rtol=1e-4, threads=1)
    few = gr.fit(TwoTanks(), data, ["k"], method)
    monkeypatch.setattr(mean_settling, "SETTLED_DISTANCE", 1e-7)
    many = gr.fit(TwoTanks(), data, ["k"], method)
    assert few.converged and many.converged
    assert few.estimate.evaluations <= many.estimate.evaluations
    assert abs(float(few["k"]) - float(many["k"])) < 0.02 * many["k"].std_error


def test_a_weighting_that_never_settles_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_settling, "has_settled", lambda *_: False)
    monkeypatch.setattr(mean_settling, "MAX_ROUNDS", 1)
    data = record(TwoTanks(k=1.0), 3, np.linspace(0.0, 6.0, 31), noise=0.05)
    fit = gr.fit(TwoTanks(), data, ["k"], gr.SimulatedPEM(realizations=8, rtol=1e-4, threads=1))
    assert not fit.converged
    assert "the weighting still moved the estimates after 1 rounds" in fit.status
