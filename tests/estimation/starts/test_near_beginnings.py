"""Scales that make up for wrong parameters: a search begins under the declared ones."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation import SUSPICIOUS_SCALE_FACTOR, scan_levels, search_near_levels
from grisaille.estimators import build_problem
from grisaille.optimization import Search

TIMES = 0.1 * np.arange(121)
FORCE = np.sign(np.sin(0.7 * TIMES)) + np.sin(1.9 * TIMES)


class Cart(gr.Model):
    """Pushed, slowed down and shaken a little."""

    a, b = gr.Parameter(0.2, bounds=(0.0, 9.0)), gr.Parameter(4.0, bounds=(0.1, 90.0))
    v = gr.Variable(0.0)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.white(), scale=0.01)
    y = gr.Output(v, noise=0.01)
    equations = [der(v) == -a * v + b * u + w]


@pytest.fixture(scope="module")
def data():
    """By the exact discretisation, a = 0.5, b = 1.5, scale 0.02."""
    rng, v, seen = np.random.default_rng(5), 0.0, []
    F = np.exp(-0.05)
    for u in FORCE:
        seen.append(v + 0.01 * rng.standard_normal())
        v = F * v + 1.5 * u * (1 - F) / 0.5 + 0.02 * np.sqrt((1 - F**2) / 1.0) * rng.standard_normal()
    return gr.Experiment(TIMES, {"u": FORCE}, {"y": np.array(seen)})


@pytest.mark.parametrize("filter", ["linear", "extended"])
def test_parameters_are_brought_nearer_before_levels_are_believed(data, filter):
    method = gr.KalmanML(filter=filter)
    problem = build_problem(Cart(), data, ["a", "b", "scale(w)"], method).discretised_problem
    search = Search(problem)
    assert scan_levels(search, problem.cases, problem.open_levels)[2] > SUSPICIOUS_SCALE_FACTOR * 0.01
    guessed = search_near_levels(search, problem.cases, problem.open_levels)
    assert guessed[2].guess > SUSPICIOUS_SCALE_FACTOR * 0.01 and guessed[1].guess == 4.0
    a, b, scale = search.guess
    assert abs(a - 0.5) < 0.1 and abs(b - 1.5) < 0.1 and scale < 0.11


def test_the_fit_is_that_from_a_good_guess(data):
    far, near = (
        gr.fit(Cart(), data, ["a", "b", "scale(w)"], gr.KalmanML(), guess=g) for g in ({}, {"a": 0.5, "b": 1.5})
    )
    assert far.converged and far.log_likelihood == pytest.approx(near.log_likelihood, abs=1e-6)
    assert far["b"] == pytest.approx(near["b"], rel=1e-6)


def test_guesses_that_are_right_are_left_alone(data):
    problem = build_problem(Cart(a=0.5, b=1.5), data, ["a", "b", "scale(w)"], gr.KalmanML()).discretised_problem
    search = Search(problem)
    search_near_levels(search, problem.cases, problem.open_levels)
    assert search.guess[:2].tolist() == [0.5, 1.5]
