"""Variances of states at the start that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError


class Joined(gr.Model):
    """Two bodies that move together; their positions and speeds are one state each."""

    m = gr.Parameter(1.0, bounds=(0.1, 9.0))
    x1, v1 = gr.Variable(0.0), gr.Variable(0.0)
    x2, v2 = gr.Variable(0.0), gr.Variable(0.0)
    f = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(0.8), scale=1.2)
    y = gr.Output(x2, noise=0.05)
    equations = [der(x1) == v1, der(x2) == v2, m * der(v1) == f + w, 2 * der(v2) == -f - x2 - v2, x1 == x2]


class Twice(gr.Model):
    """One level with two names."""

    k = gr.Parameter(1.0)
    x1, x2 = gr.Variable(0.0), gr.Variable()
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x2, noise=0.05)
    equations = [der(x1) == -k * x1 + w, x2 == x1]


DATA = gr.Experiment(0.4 * np.arange(8), outputs={"y": 0.1 * np.cos(np.arange(8.0))})


def likelihood(start, **options):
    method = gr.KalmanML(initial_covariance=start, **options)
    return gr.evaluate(Joined(), DATA, method, parameters={"m": 1.0}).log_likelihood


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ({"x1": 0.3, "x2": 0.1}, "'x1' the variance 0.3 and 'x2' 0.1, but the equations make them the same state"),
        ({"v2": 0.0, "x1": 0.3, "v1": 0.2}, "'v2' the variance 0 and 'v1' 0.2"),
        ({"x2": np.inf, "x1": 0.3}, "'x2' the variance inf and 'x1' 0.3"),
    ],
)
def test_one_state_with_two_variances_is_refused_by_name(start, words):
    with pytest.raises(EstimationError, match=f"^initial_covariance= gives {words}"):
        likelihood(start)


def test_every_filter_refuses_it_and_equal_variances_are_one():
    with pytest.raises(EstimationError, match=r"^initial_covariance= gives 'x1'"):
        likelihood({"x1": 0.3, "x2": 0.1}, filter="unscented")
    once = likelihood({"x2": 0.3, "v1": 0.2})
    assert likelihood({"x1": 0.3, "x2": 0.3, "v1": 0.2, "v2": 0.2}) == once
    assert likelihood({"x1": 0.1, "v1": 0.2}) != pytest.approx(once, abs=1e-3)


def test_collocation_refuses_two_meshes_of_one_state():
    method = gr.Collocation(knots={"x1": 6, "x2": 9})
    with pytest.raises(EstimationError, match="knots= gives 'x1' 6 and 'x2' 9, but the equations make them the same"):
        gr.evaluate(Twice(), DATA, method, parameters={"k": 1.0})
