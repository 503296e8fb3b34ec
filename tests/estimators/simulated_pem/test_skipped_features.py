"""Bumps that the steps of realizations pass: what they decide is not called without effect."""

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

WIDTH = 1e-4
TIMES = 0.1 * np.arange(41)


class Bumped(gr.Model):
    """A tank with a pulse of unit area on the way, met in 0.0002 of 4 seconds."""

    k = gr.Parameter(0.8, bounds=(0.05, 5))
    b = gr.Parameter(1.0, bounds=(0.1, 9))
    s, e, x = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.lowpass(2.0), scale=0.05)
    y, z = gr.Output(e, noise=0.01), gr.Output(x, noise=0.05)
    equations = [
        der(s) == 1,
        der(e) == -0.5 * e + k * gr.table(s, [1.51 - WIDTH, 1.51, 1.51 + WIDTH], [0, 1 / WIDTH, 0]) + w,
        der(x) == -b * x,
    ]


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    y = np.where(TIMES > 1.5, np.exp(-0.5 * (TIMES - 1.5)), 0) + 0.01 * random.normal(size=41)
    return gr.Experiment(TIMES, outputs={"y": y, "z": np.exp(-TIMES) + 0.05 * random.normal(size=41)}, name="run")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_unknown_of_a_bump_that_is_missed_is_not_called_dead(data):
    """It was "dead: no output depends on k", which a shorter step shows to be wrong."""
    fit = gr.fit(Bumped(), data, ["k", "b"], gr.SimulatedPEM(realizations=40))
    (skipped,) = [n for n in fit.notes if n.startswith("discretisation: in 'run' steps of 0.025 pass")]
    assert "step=0.003 would meet it" in skipped and "not seen: with these steps no output depends on k." in fit.notes
    assert not any(n.startswith("dead") for n in fit.notes)
    found = gr.fit(Bumped(), data, ["k", "b"], gr.SimulatedPEM(realizations=40, step=0.003))
    assert float(found["k"]) == pytest.approx(1.0, abs=4 * found["k"].std_error)
    assert not any("pass what changes" in n for n in found.notes)
