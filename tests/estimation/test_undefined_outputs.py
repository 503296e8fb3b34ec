"""Outputs that are undefined where nothing was measured, as log(c) is before a dose."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

T = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0, 24.0])
Y = np.log(10 * 1.2 / 1.1 * (np.exp(-0.1 * T) - np.exp(-1.2 * T))) + 0.1 * np.random.default_rng(1).normal(size=8)


class Oral(gr.Model):
    ka, CL = gr.Parameter(1.0, bounds=(0.1, 10)), gr.Parameter(2.0, bounds=(0.1, 50))
    gut, c = gr.Variable(300.0), gr.Variable(0.0)
    w = gr.Disturbance(gr.spectra.ornstein_uhlenbeck(1.0), scale=0.01)
    y = gr.Output(gr.log(c), noise=0.1)
    equations = [der(gut) == -ka * gut, 30 * der(c) == ka * gut - CL * c * (1 + w)]


@pytest.mark.parametrize(
    "method", [gr.OutputError(), gr.KalmanML(), gr.SimulatedPEM(realizations=20), gr.Collocation()], ids=type
)
def test_an_output_may_be_undefined_where_it_was_not_measured(method: gr.OutputError) -> None:
    fit = gr.fit(Oral(), gr.Experiment(T, outputs={"y": Y}, t0=0.0), ["ka", "CL"], method)
    assert float(fit["ka"]) == pytest.approx(1.262, abs=2e-3) and float(fit["CL"]) == pytest.approx(2.943, abs=4e-3)


def test_it_is_refused_where_it_was() -> None:
    record = gr.Experiment(np.r_[0.0, T], outputs={"y": np.r_[-3.0, Y]})
    with pytest.raises(gr.EstimationError, match="y is infinite or undefined, first at t = 0"):
        gr.fit(Oral(), record, ["ka", "CL"], gr.OutputError())
