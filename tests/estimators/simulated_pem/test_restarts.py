"""Other minima are looked for where errors are large, and what explains nothing says so."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.bound_experiment import Unknown
from grisaille.estimators.simulated_pem import space_filling_points

TIMES = np.linspace(0.0, 30.0, 61)
FLOW = {"u": 0.6 + 0.5 * np.sign(np.sin(0.5 * TIMES))}
HOURS = np.linspace(0.0, 5.0, 31)


class Weir(gr.Model):
    """A basin with a weir: below its edge nothing moves with the edge or with what flows over it."""

    c = gr.Parameter(1.5, bounds=(0.2, 6.0))
    q = gr.Parameter(1.0, bounds=(0.05, 20.0))
    h = gr.Variable(0.5)
    u = gr.Input()
    w = gr.Disturbance(gr.spectra.matern12(1.0), scale=0.1)
    y = gr.Output(h, noise=0.02)
    equations = [der(h) == u - 0.2 * h - q * gr.maximum(h - c, 0.0) + w]


class Reservoir(Weir):
    """The outlet is a table that begins at an edge."""

    equations = [
        der(Weir.h)
        == Weir.u - 0.2 * Weir.h - Weir.q * gr.table(Weir.h - Weir.c, [-9, 0, 1, 9], [0, 0, 1, 1.5]) + Weir.w
    ]


class Thermostat(gr.Model):
    """Periods match a record piece by piece: the mean has a minimum for each."""

    band = gr.Parameter(2.4, bounds=(0.5, 6.0))
    T = gr.Variable(18.0)
    on = gr.Discrete(1)
    w = gr.Disturbance(gr.spectra.matern12(2.0), scale=1.0)
    y = gr.Output(T, noise=0.1)
    equations = [
        der(T) == (10.0 + w - T) / 3.0 + 8.0 * on,
        gr.when(T > 19.0 + band, on == 0).otherwise(T < 19.0, on == 1),
    ]


def _record(model: gr.Model, times: np.ndarray, inputs: dict[str, np.ndarray], seed: int = 7) -> gr.Experiment:
    run = gr.simulate(model, times, inputs, realizations=1, seed=seed, noise=True)
    return gr.Experiment(times, inputs, {"y": run["y"].values[0]})


@pytest.mark.parametrize(("model", "guess"), [(Weir, {"c": 5.0, "q": 0.1}), (Reservoir, {"c": 5.0, "q": 0.1})])
def test_from_a_guess_at_which_nothing_moves(model, guess):
    fit = gr.fit(model(), _record(model(), TIMES, FLOW), ["c", "q"], gr.SimulatedPEM(realizations=30), guess=guess)
    assert fit.converged and "NOT" not in fit.status
    for name, truth in (("c", 1.5), ("q", 1.0)):
        assert abs(fit[name] - truth) < 4 * fit[name].std_error
    assert "another minimum: the search first ended at" in str(fit)


def test_across_events_and_with_the_mark():
    data = _record(Thermostat(), HOURS, {})
    method = gr.SimulatedPEM(realizations=16, rtol=1e-3)
    fit = gr.fit(Thermostat(), data, ["band"], method, guess={"band": 1.6})
    assert abs(fit["band"] - 2.4) < 0.2
    assert "std. error*" in str(fit) and "events, gr.when(T > 19.0 + band)" in fit.notes[0].replace("19 ", "19.0 ")
    assert "speak of this minimum alone" in fit.notes[0] and "gr.multistart(…) looks for others" in fit.notes[0]


def test_a_wrong_model_is_no_explanation():
    data = gr.Experiment(TIMES, FLOW, {"y": 3.0 + 2.0 * np.sin(3.0 * TIMES)})
    fit = gr.fit(Weir(), data, ["c", "q"], gr.SimulatedPEM(realizations=20))
    assert "NOT to an explanation of the data" in fit.status
    assert fit.notes[0].startswith("not an explanation: the errors of y are ")
    assert "as in records simulated from the fitted model" in fit.notes[0]


def test_points_lie_between_bounds_and_near_the_guess():
    unknowns = (
        Unknown("k", "parameter", "k", None, 1.0, 0.01, 100.0), Unknown("b", "parameter", "b", None, -2.0),
        Unknown("c", "parameter", "c", None, 3.0, 3.0, 3.0),
    )  # fmt: skip
    points = np.array(space_filling_points(unknowns, np.array([1.0, -2.0, 3.0]), 1))
    k, b, c = points.T
    assert k.min() < 0.1 and k.max() > 10 and (k >= 0.01).all() and (k <= 100).all()
    assert np.mean(np.abs(np.log(k)) < 0.51) > 0.5 and (c == 3.0).all() and b.min() < -4 < 0 < b.max()
