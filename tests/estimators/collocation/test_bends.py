"""Trajectories whose best course lies on a bend of the equations."""

import numpy as np
import pytest

import grisaille as gr
from grisaille import der


class Plant(gr.Model):
    k = gr.Parameter(0.8, bounds=(0.05, 5))
    c = gr.Parameter(0.5, bounds=(-5, 5))
    x = gr.Variable(1.3)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == -gr.table(x - c, [-1, -0.5, 0, 0.5, 1], [-1, -0.1, 0, 2 * k, 2.2 * k]) + u + w]


def test_a_minimum_on_a_bend_is_found():
    """Newton's steps from either side ended on the other until they were used up: log L was −∞ at c = 0.40 and 0.43."""
    t = 0.2 * np.arange(60)
    u = np.where(t % 4 < 2, 1.5, -0.5)
    path = gr.simulate(Plant(), t, {"u": u}, realizations=1, seed=3)["y"].values.ravel()
    data = gr.Experiment(t, {"u": u}, {"y": path + 0.02 * np.random.default_rng(0).normal(size=60)})
    density = gr.log_density(Plant(), data, ["k", "c"], gr.Collocation())
    places = np.array([0.39, 0.40, 0.41, 0.42, 0.43])
    values = np.array([density([0.7, c]) for c in places])
    slopes = np.array([density.gradient(np.array([0.7, c]))[1] for c in places])
    assert np.isfinite(values).all()
    assert np.diff(values) == pytest.approx(0.01 * (slopes[1:] + slopes[:-1]) / 2, rel=0.15)
