"""States and predictions of particle filters against those of Kalman filters, on linear models."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.particles import TIMES, Lever, Network, measured, posed

import grisaille as gr

INDEX_1 = (Network(), {"y": measured(0.8, 2), "flow": measured(0.6, 3, (4, 7))}, "a", {"x": 0.1, "v": 0.05})
INDEX_3 = (Lever(), {"y": measured(0.4, 4)}, "c", {"x": 0.1, "v": 0.2})
FAR = 0.15
"""Of a posterior deviation: 4000 particles leave 0.02 of it, and three times that where few ancestors are left."""


@pytest.fixture(scope="module", params=[INDEX_1, INDEX_3], ids=["index 1", "index 3"])
def both(request):
    """Problems by particles and by the Kalman filter."""
    model, outputs, name, start = request.param
    data = gr.Experiment(TIMES, outputs=outputs)
    particles = gr.ParticleML(particles=4000, substeps=16, initial_covariance=start)
    return [posed(model, data, [name], m) for m in (particles, gr.KalmanML(initial_covariance=start))]


def runs(both):
    for problem in both:
        case = problem.discretised_problem.cases[0]
        yield case.runner, problem.guess, case.discretisation


def test_filtered_and_smoothed_states(both):
    found, wanted = (runner.states(theta, steps) for runner, theta, steps in runs(both))
    n = min(found.x_filt.shape[1], wanted.x_filt.shape[1])
    for x, P in (("x_filt", "P_filt"), ("x_smooth", "P_smooth")):
        variances = (np.diagonal(getattr(part, P), axis1=1, axis2=2)[:, :n] for part in (found, wanted))
        mine, theirs = variances
        size = np.sqrt(np.maximum(theirs, 1e-6))
        off = np.abs(getattr(found, x)[:, :n] - getattr(wanted, x)[:, :n]) / size
        assert off.max() < FAR, x
        assert np.abs(np.sqrt(np.maximum(mine, 0)) / size - 1).max() < FAR, P


def test_predictions_over_several_samples(both):
    """Three samples ahead, and from before the first one."""
    origins = np.arange(len(TIMES)) - 3
    origins[origins < 0] = -1
    seen = []
    for runner, theta, steps in runs(both):
        at = runner.posed(theta, False)
        filter = runner.filter_on(steps, theta)
        moments, _ = filter.ahead.known(at, origins)
        seen.append((moments.x, moments.P))
    n = min(x.shape[1] for x, _ in seen)
    (x, P), (wanted, theirs) = seen
    size = np.sqrt(np.maximum(np.diagonal(theirs, axis1=1, axis2=2)[:, :n], 1e-6))
    assert (np.abs(x[:, :n] - wanted[:, :n]) / size).max() < FAR
    assert np.abs(np.sqrt(np.diagonal(P, axis1=1, axis2=2)[:, :n]) / size - 1).max() < FAR


def test_innovations_are_those_of_the_kalman_filter(both):
    found, wanted = (
        runner.filter_on(steps, theta).log_likelihood(runner.posed(theta, False)) for runner, theta, steps in runs(both)
    )
    seen = np.isfinite(wanted.innovations)
    assert (np.isfinite(found.innovations) == seen).all()
    size = np.sqrt(wanted.variances)
    assert (np.abs(found.innovations - wanted.innovations) / size)[seen].max() < FAR
