"""Intensities as roots under direct collocation: those of splines where both apply, and of models with constraints."""

from __future__ import annotations

import numpy as np
import pytest
from collocation.direct_problems import Pendulum, data

import grisaille as gr
from grisaille import der
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 8.0, 41)


class Pair(gr.Model):
    a, k = gr.Parameter(0.6, bounds=(0.01, 10.0)), gr.Parameter(0.5, bounds=(0.01, 5.0))
    x, z = gr.Variable(start=2.0), gr.Variable(start=-1.0)
    v, w = gr.Disturbance(gr.spectra.white(), scale=0.4), gr.Disturbance(gr.spectra.white(), scale=0.3)
    y, s = gr.Output(x, noise=0.1), gr.Output(z, noise=0.1)
    equations = [der(x) == -a * x + z + w, der(z) == -k * z * abs(z) + v]


@pytest.fixture(scope="module")
def record() -> gr.Experiment:
    found = gr.simulate(Pair(), TIMES, realizations=1, seed=3, noise=True)
    return gr.Experiment(TIMES, outputs={n: found[n].values.ravel() for n in ("y", "s")})


def test_misfits_with_their_traces_are_those_of_splines(record: gr.Experiment) -> None:
    unknowns = ["a", "k", "start(x)"]
    splines = gr.fit(Pair(), record, unknowns, gr.Collocation(criterion="amle", refine=0), progress=False)
    method = gr.Collocation(criterion="amle", transcription="direct")
    problem = build_problem(Pair(), record, unknowns, method)
    found = problem.trajectories.minimize(problem, problem.guess, ~problem.levels)
    ours = found.misfit(problem.cases, problem.outputs).ratios
    theirs = splines.estimate.evaluation.solution.misfit(problem.cases, problem.outputs).ratios
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)


def test_two_intensities_are_those_of_splines(record: gr.Experiment) -> None:
    unknowns = ["a", "k", "scale(v)", "scale(w)"]
    splines, direct = (
        gr.fit(Pair(), record, unknowns, gr.Collocation(criterion="amle", refine=0, transcription=t), progress=False)
        for t in ("spline", "direct")
    )
    for name in unknowns:
        assert direct[name] == pytest.approx(float(splines[name]), rel=5e-3)
        assert direct[name].std_error == pytest.approx(splines[name].std_error, rel=0.05)
    assert direct.notes[-1].startswith(("bias:", "the intervals of the other unknowns hold for the intensities found"))


def test_intensity_of_a_model_of_index_three() -> None:
    times = np.linspace(0.0, 12.0, 61)
    push = {"u": (times, np.sin(1.3 * times))}
    swing = data(Pendulum(k=0.3), times, "phi", u=push["u"][1], seed=5, name="swing")[0]
    unknown = ["k", "scale(w)"]
    root = gr.fit(Pendulum(), swing, unknown, gr.Collocation(criterion="amle"), guess={"k": 1.0}, progress=False)
    marginal = gr.fit(Pendulum(), swing, unknown, gr.Collocation(criterion="laplace"), guess={"k": 1.0}, progress=False)
    assert root.converged
    assert abs(np.log(root["scale(w)"] / marginal["scale(w)"])) < 0.5
    assert root["scale(w)"].std_error > 0
    assert not [n for n in root.notes if n.startswith("at bound")]
