"""Unknowns that decide how strongly white noise acts: direct collocation is chosen, with the filter's answer."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError

TIMES = 0.5 * np.arange(81)
HEAT = np.sign(np.sin(0.7 * TIMES + 0.2))


class Wall(gr.Model):
    C, R = gr.Parameter(5.0, bounds=(0.1, 100.0)), gr.Parameter(2.0, bounds=(0.1, 50.0))
    u, T = gr.Input(), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.3)
    y = gr.Output(T, noise=0.05)
    equations = [C * der(T) == u - T / R + w]


class Rate(Wall):
    k = gr.Parameter(0.2, bounds=(0.01, 10.0))
    equations = [der(Wall.T) == k * (Wall.u - Wall.T / Wall.R + Wall.w)]


class Mass(Wall):
    """The capacity is a formula of the unknown."""

    m = gr.Parameter(2.5, bounds=(0.01, 30.0))
    D = gr.Parameter(2 * m)
    equations = [D * der(Wall.T) == Wall.u - Wall.T / Wall.R + Wall.w]


class Level(Wall):
    """A level beside it is still refused."""

    s = gr.Parameter(0.3, bounds=(0.01, 3.0))
    w = gr.Disturbance(gr.spectra.white(), scale=s)
    equations = [Wall.C * der(Wall.T) == Wall.u - Wall.T / Wall.R + w]


def record(model: gr.Model) -> gr.Experiment:
    run = gr.simulate(model, TIMES, inputs={"u": HEAT}, realizations=1, seed=3, noise=True)
    return gr.Experiment(TIMES, {"u": HEAT}, {"y": run["y"].values.ravel()})


@pytest.mark.parametrize(("model", "name"), [(Wall, "C"), (Rate, "k"), (Mass, "m")])
def test_the_filters_answer(model, name: str) -> None:
    data = record(model())
    fit, filtered = (
        gr.fit(model(), data, [name, "R"], m, progress=False)
        for m in (gr.Collocation(criterion="amle"), gr.KalmanML(initial_covariance={"T": 1e-12}))
    )
    assert fit.converged
    for unknown in (name, "R"):
        assert abs(float(fit[unknown]) - float(filtered[unknown])) < 0.05 * filtered[unknown].std_error
        assert fit[unknown].std_error == pytest.approx(filtered[unknown].std_error, rel=0.1)
    assert [n for n in fit.notes if n.startswith("bias:") and "this was subtracted" in n]


def test_splines_say_why_not() -> None:
    data = gr.Experiment(TIMES, {"u": HEAT}, {"y": np.zeros(len(TIMES))})
    with pytest.raises(EstimationError, match=r"unknown C decides how strongly a disturbance acts.*transcription='dir"):
        gr.fit(Wall(), data, ["C"], gr.Collocation(criterion="amle", transcription="spline"), progress=False)
    with pytest.raises(EstimationError, match=r"'s' is a noise level"):
        gr.fit(Level(), data, ["C", "s"], gr.Collocation(criterion="amle"), progress=False)


def test_other_unknowns_keep_splines() -> None:
    fit = gr.fit(Wall(), record(Wall()), ["R"], gr.Collocation(criterion="amle"), progress=False)
    assert fit.estimate.mesh.knots > 0
