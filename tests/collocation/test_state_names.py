"""Names in ``knots=``, ``order=`` and ``trajectories=``: states, equal variables, vectors, disturbances; and others."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem

TIMES = np.linspace(0.0, 10.0, 21)


class Drifting(gr.Model):
    """A state, one equal to it, a drifting disturbance and a vector of coloured ones."""

    a = gr.Parameter(1.0)
    x, same = gr.Variable(start=1.0), gr.Variable()
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    d = gr.Disturbance(gr.spectra.integrated(), scale=0.2)
    e = gr.Disturbance(gr.spectra.lowpass(bandwidth=0.5), scale=0.25, size=2)
    half = gr.Variable()
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -a * x + d + w + e[0] + 0.1 * e[1], same == x, half == x / 2]


@pytest.fixture(scope="module")
def record():
    return gr.Experiment(TIMES, {}, {"y": np.exp(-TIMES)})


def posed(record, **options):
    return build_problem(Drifting(), record, ["a"], gr.Collocation(**{"criterion": "amle", **options}))


def splines(record, **options):
    program = posed(record, **options).trajectories.programs[0]
    return dict(zip(program.record.stochastic.names, program.mesh.splines, strict=True))


def test_a_disturbance_stands_for_its_states(record):
    knots = {n: len(s.breaks) for n, s in splines(record, knots={"d": 7, "x": 9, "e": 11, "e[1]": 13}).items()}
    assert knots == {"x": 9, "d[0]": 7, "e[0][0]": 11, "e[1][0]": 13}
    orders = {n: s.order for n, s in splines(record, order={"d": 2, "e[0]": 3}).items()}
    assert orders == {"x": 4, "d[0]": 2, "e[0][0]": 3, "e[1][0]": 4}
    assert {n: len(s.breaks) for n, s in splines(record, knots={"d[0]": 7}).items()}["d[0]"] == 7


def test_a_variable_that_equals_a_state_stands_for_it(record):
    assert splines(record, order={"same": 2})["x"].order == 2


def test_trajectories_of_disturbances_are_in_their_own_units(record):
    wave = np.sin(TIMES)
    problem = posed(record, trajectories={"d": 0.3, "e[1]": (TIMES, wave), "x": 2.0})
    program = problem.trajectories.programs[0]
    found = program.mesh.at(TIMES).values(problem.trajectories.betas[0])
    at = program.record.stochastic.names.index
    np.testing.assert_allclose(found[:, at("x")], 2.0)
    np.testing.assert_allclose(0.2 * found[:, at("d[0]")], 0.3)
    np.testing.assert_allclose(0.25 * found[:, at("e[1][0]")], wave, atol=0.02)
    np.testing.assert_allclose(found[:, at("e[0][0]")], 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"knots": {"w": 5}}, r"knots= names 'w', a disturbance that is white noise"),
        ({"order": {"half": 3}}, r"order= names 'half', which is a formula of the states"),
        ({"knots": {"a": 5}}, r"knots= names 'a', which is a parameter"),
        ({"trajectories": {"q": 1.0}}, r"'q', which is not a state. The states of Drifting are x, d, e\[0\], e\[1\]\."),
        ({"trajectories": {"x": (TIMES, TIMES[1:])}}, r"trajectories\['x'\] has 21 times for 20 values"),
        ({"trajectories": {"x": TIMES}}, r"has 21 values and no times; give a number, or \(times, values\)"),
        ({"trajectories": {"x": np.nan}}, "not a finite number"),
        ({"trajectories": {"x": (TIMES[::-1], TIMES)}}, "times that do not increase"),
        ({"trajectories": {"x": "up"}}, "is 'up', which is not a number"),
    ],
)
def test_other_names_and_values_are_refused(record, options, words):
    with pytest.raises(EstimationError, match=words):
        posed(record, **options)
