"""Steps of filters in studies: a filter follows its measurements, and so do its steps."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 2.0, 9)


class Braked(gr.Model):
    """Fast where it is large."""

    k = gr.Parameter(1.0, bounds=(0.01, 50.0))
    x = gr.Variable(0.1)
    w = gr.Disturbance(gr.spectra.white(), scale=0.5)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x**3 + w]


def record(level):
    return gr.Experiment(TIMES, {}, {"y": level * np.cos(TIMES)}, name="A")


@pytest.mark.parametrize("options", [{}, {"propagation": "moments"}, {"filter": "unscented"}, {"horizon": 2}])
def test_other_measurements_have_steps_of_their_own(options):
    method = gr.KalmanML(**options)
    planned, alone = (build_problem(Braked(), record(level), ["k"], method) for level in (0.1, 3.0))
    renewed = planned.renewed([record(3.0).outputs["y"].values])
    steps, own, others = (p.discretised_problem.cases[0].discretisation for p in (planned, alone, renewed))
    assert own != steps
    assert others == own
    assert renewed.evaluate(renewed.guess).log_likelihood == alone.evaluate(alone.guess).log_likelihood
