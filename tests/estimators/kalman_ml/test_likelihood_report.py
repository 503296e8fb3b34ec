"""What a likelihood fit says about itself: edges, steps, information that makes no sense; steps that break a filter."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.estimation import root_of
from grisaille.estimators import build_problem
from grisaille.estimators.kalman_ml import LikelihoodSearch, edge_notes
from grisaille.filtering import FilterResult, FilterRunner
from grisaille.optimization import Search

TIMES = np.linspace(0.0, 4.0, 41)
METHOD = gr.KalmanML()


class Growth(gr.Model):
    """Growth that ends, disturbed."""

    r = gr.Parameter(1.0, bounds=(0.1, 10.0))
    x = gr.Variable(0.1)
    w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == r * x * (1 - x) + w]


@pytest.fixture(scope="module")
def data() -> gr.Experiment:
    run = gr.simulate(Growth(), TIMES, realizations=1, seed=2, noise=True)
    return gr.Experiment(TIMES, {}, {"y": run["y"].values.ravel()})


def breaking(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Steps chosen a second time are others, and with them the filter breaks down."""
    choose, likelihood, chosen = FilterRunner.discretise, FilterRunner.likelihood, []

    def other(runner: FilterRunner, values: Any, known: Any = None) -> Any:
        found = choose(runner, values, known)
        chosen.append(replace(found, substeps=steps) if chosen else found)
        return chosen[-1]

    def broken(runner: FilterRunner, values: Any, given: Any, *, sensitive: bool) -> FilterResult:
        if given.substeps == steps:
            return FilterResult(None, "broken down")
        return likelihood(runner, values, given, sensitive=sensitive)

    monkeypatch.setattr(FilterRunner, "discretise", other)
    monkeypatch.setattr(FilterRunner, "likelihood", broken)


def test_steps_that_break_the_filter_at_the_optimum_are_not_taken(
    data: gr.Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = gr.fit(Growth(), data, ["r"], METHOD)
    breaking(monkeypatch, 3)
    fit = gr.fit(Growth(), data, ["r"], METHOD)
    assert fit.converged, fit.status
    assert float(fit["r"]) == pytest.approx(float(plain["r"]), rel=1e-6)


def test_steps_stay_those_of_the_optimum_unless_the_search_goes_on(
    data: gr.Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem: Any = build_problem(Growth(), data, ["r"], METHOD)
    objective, before = problem.evaluate(problem.guess).objective, problem.cases[0].discretisation
    zeros: Any = SimpleNamespace(saddle=np.zeros(len(problem.unknowns), dtype=bool))
    search: Any = Search(problem)

    def more_doublings(runner: FilterRunner, values: Any, known: Any = None) -> Any:
        return replace(known, doublings=known.doublings + 3)

    monkeypatch.setattr(FilterRunner, "discretise", more_doublings)
    assert LikelihoodSearch(METHOD).gone_on(problem, search, zeros, problem.guess, objective) is None
    again = LikelihoodSearch(METHOD).gone_on(problem, search, zeros, problem.guess, objective + 1e-3)
    assert again is not None
    assert again.cases[0].discretisation == replace(before, doublings=before.doublings + 3)
    assert problem.cases[0].discretisation == before


def test_a_fit_says_that_shorter_steps_break_its_filter(data: gr.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch, 8)
    fit = gr.fit(Growth(), data, ["r"], gr.KalmanML(substeps=4))
    assert any("with steps half as long the filter breaks down" in note and "broken down" in note for note in fit.notes)


def test_the_nearest_edge_is_told() -> None:
    problem: Any = SimpleNamespace(unknowns=[SimpleNamespace(name=n) for n in ("a", "held", "b")])
    polished: Any = SimpleNamespace(
        covariance=np.diag([0.01, 0.0, 4.0]),
        edges=(np.array([1e-4, 0.0, 0.0]), np.array([0.0, 0.0, 1e-4])),
    )
    (note,) = edge_notes(problem, polished)
    assert note.startswith("edge: 5e-05 standard errors of b from the estimate the filter breaks down")
    for edges in ((), (np.array([1.0, 0.0, 0.0]),)):
        polished.edges = edges
        assert edge_notes(problem, polished) == []


def test_information_that_makes_no_sense_has_a_root() -> None:
    assert np.isfinite(root_of(np.array([[-1e9, 4e9], [4e9, 1e4]]))).all()
    sound = np.array([[4.0, 1.0], [1.0, 9.0]])
    assert root_of(sound).T @ root_of(sound) == pytest.approx(sound)
