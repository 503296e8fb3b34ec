"""Fits of models with events: what is said where their order changes, and what other estimators refuse."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0, 2, 31)


class Race(gr.Model):
    """Whoever arrives last is remembered."""

    a, b = gr.Parameter(1.0), gr.Parameter(1.0)
    x, y = gr.Variable(0.0), gr.Variable(0.0)
    last = gr.Discrete(0)
    u, v = gr.Output(x, noise=0.05), gr.Output(y, noise=0.05)
    equations = [der(x) == a, der(y) == b, gr.when(x > 1, last == 1).otherwise(y > 1, last == 2)]


@pytest.mark.parametrize(("b", "told"), [(1.004, True), (1.2, False)])
def test_an_order_of_events_that_changes_is_told(b: float, told: bool) -> None:
    outputs = {"u": 1.0 * TIMES, "v": b * TIMES}
    fit = gr.fit(Race(b=1.1), gr.Experiment(time=TIMES, outputs=outputs), estimate=["a", "b"])
    found = [n for n in fit.notes if n.startswith("events: within a standard error of a")]
    assert bool(found) is told
    assert not told or ("gr.when(x > 1) at t = 0.99" in found[0] and "in the place of gr.when(y > 1)" in found[0])


class Room(gr.Model):
    tau, power = gr.Parameter(2.0), gr.Parameter(6.0)
    T, on = gr.Variable(18.0), gr.Discrete(1)
    w = gr.Disturbance(gr.spectra.lowpass(1.0), scale=2.0)
    y = gr.Output(T, noise=0.1)
    equations = [der(T) == (15 + w - T) / tau + power * on, gr.when(T > 21, on == 0).otherwise(T < 19, on == 1)]


class Driven(gr.Model):
    """The same under a signal that is known."""

    tau, power = gr.Parameter(2.0), gr.Parameter(6.0)
    T, on, w = gr.Variable(18.0), gr.Discrete(1), gr.Input()
    equations = [der(T) == (15 + w - T) / tau + power * on, gr.when(T > 21, on == 0).otherwise(T < 19, on == 1)]


def test_realizations_follow_events() -> None:
    t = np.linspace(0, 5, 51)
    got = gr.simulate(Room(), t, realizations=2, step=0.1, rtol=1e-8)
    for k in range(2):
        alone = gr.simulate(Driven(), t, {"w": (t, got.w.values[k])}, hold="foh", rtol=1e-10)
        assert np.abs(alone["T"].values - got["T"].values[k]).max() < 1e-5
        assert np.array_equal(alone.on.values, got.on.values[k]) and alone.attrs["events"] > 8


def test_what_does_not_follow_events_says_so() -> None:
    data = gr.Experiment(time=TIMES, outputs={"y": 18 + TIMES})
    for method in (gr.KalmanML(), gr.Collocation()):
        with pytest.raises(gr.EstimationError, match=r"has events of its own, gr.when\(T > 21\), which .* not follow"):
            gr.fit(Room(), data, estimate=["power"], method=method)
    with pytest.raises(gr.EstimationError, match="pieces begin with unknown discrete variables"):
        gr.fit(Room(), data, estimate=["power"], method=gr.OutputError(shooting="multiple"))
    with pytest.raises(gr.ModelError, match="white noise in its equations"):
        gr.simulate(Room(w=gr.Disturbance(gr.spectra.white(), scale=0.1)), TIMES, realizations=2)
