"""Unknowns of single experiments: passes over records grow with the number of experiments, not with its square."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem
from grisaille.filtering import FilterRunner

TIMES = 0.3 * np.arange(12)


class Linear(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x + w]


class Bent(gr.Model):
    k = gr.Parameter(0.5, bounds=(0.01, 10.0))
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.2)
    y = gr.Output(x, noise=0.05)
    equations = [der(x) == -k * x**2 + w]


def records(count):
    rng = np.random.default_rng(4)
    return [
        gr.Experiment(TIMES, outputs={"y": np.exp(-0.5 * TIMES) + 0.08 * rng.normal(size=12)}, name=f"e{k}")
        for k in range(count)
    ]


@pytest.fixture
def passes(monkeypatch):
    """Counts passes of filters over records."""
    counted, plain = [], FilterRunner._likelihood

    def counting(self, *arguments):
        counted.append(self)
        return plain(self, *arguments)

    monkeypatch.setattr(FilterRunner, "_likelihood", counting)
    return counted


@pytest.mark.parametrize(
    ("model", "local", "count"), [(Linear, "start(x)", 24), (Bent, "start(x)", 8), (Linear, "noise(y)", 8)],
    ids=["starts", "starts of an extended filter", "levels"],
)  # fmt: skip
def test_passes_grow_with_the_number_of_experiments(model, local, count, passes):
    each = []
    for experiments in (count // 2, count):
        passes.clear()
        fit = gr.fit(model(), records(experiments), ["k", local], gr.KalmanML(), local=[local])
        assert fit.converged
        each.append(len(passes) / experiments)
    assert each[1] < 1.3 * each[0]
    if count > 20:
        passes.clear()
        assert "profiles of 24 unknowns of single experiments" in str(fit).replace("\n" + " " * 18, " ")
        assert len(passes) < 12 * count


def test_what_was_computed_before_is_what_would_be_computed_now():
    problem = build_problem(
        Linear(), records(3), ["k", "start(x)"], gr.KalmanML(), local=["start(x)"]
    ).discretised_problem
    at = problem.guess
    problem.evaluate(at)
    for k, by in ((1, 0.1), (2, -0.2), (1, 0.0), (0, 0.05), (3, 0.3)):
        at = at.copy()
        at[k] += by
        value, slope = problem.gradient(at)
        other = build_problem(
            Linear(), records(3), ["k", "start(x)"], gr.KalmanML(), local=["start(x)"]
        ).discretised_problem
        fresh = other.evaluate(at)
        assert value == fresh.objective
        np.testing.assert_array_equal(slope, fresh.gradient)
    values = [np.zeros(12)] * 3
    assert problem.renewed(values).evaluate(at).objective != fresh.objective
