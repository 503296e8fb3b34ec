"""Bumps and short conditions that the steps of a filter pass without meeting them."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 10.0, 21)
MET = 5.013
"""When the bump is met, between two samples."""


def road(bump):
    """A state that moves by H where another one passes a bump."""

    class Road(gr.Model):
        H = gr.Parameter(1.0, bounds=(0.0, 100.0))
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(E, noise=0.02)
        equations = [der(s) == 20.0, der(E) == -0.1 * E + H * bump(s) + w]

    return Road()


def table(width):
    knots = [0.0, 20 * MET, 20 * MET + width / 2, 20 * MET + width, 300.0]
    return lambda s: gr.table(s, knots, [0.0, 0.0, 40.0 / width, 0.0, 0.0])


def record():
    """Three units arrive at once."""
    rng, E = np.random.default_rng(0), np.zeros(TIMES.size)
    for k, t in enumerate(TIMES[1:], 1):
        h = t - TIMES[k - 1]
        E[k] = E[k - 1] * np.exp(-0.1 * h) + 0.1 * np.sqrt(h) * rng.standard_normal()
        if TIMES[k - 1] < MET <= t:
            E[k] += 3.0 * np.exp(-0.1 * (t - MET))
    return gr.Experiment(TIMES, outputs={"y": E + 0.02 * rng.standard_normal(TIMES.size)})


def test_steps_meet_a_bump_of_a_hundredth_of_a_step():
    """The height was called dead."""
    fit = gr.fit(road(table(0.05)), record(), ["H"], gr.KalmanML(), progress=False)
    assert float(fit["H"]) == pytest.approx(3.0, abs=3 * fit["H"].std_error)
    assert fit["H"].std_error < 0.1


def test_what_is_too_narrow_is_told():
    fit = gr.fit(road(table(1e-7)), record(), ["H"], gr.KalmanML(), progress=False)
    assert any("passes a bump or a short condition" in n and f"t = {MET:.3f}" in n for n in fit.notes)
    given = gr.fit(road(table(0.05)), record(), ["H"], gr.KalmanML(substeps=2), progress=False)
    assert any("use gr.KalmanML(substeps=" in n for n in given.notes)


def test_algebraic_unknowns_are_solved_along_the_way():
    class Implicit(gr.Model):
        H = gr.Parameter(1.0, bounds=(0.0, 100.0))
        s, E, f = gr.Variable(0.0), gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        y = gr.Output(E, noise=0.02)
        equations = [
            der(s) == 20.0,
            f + 0.01 * gr.sinh(f) == table(1e-7)(s) * 1e-6,
            der(E) == -0.1 * E + H * 1e6 * f + w,
        ]

    fit = gr.fit(Implicit(), record(), ["H"], gr.KalmanML(), progress=False)
    assert any("passes a bump or a short condition" in n for n in fit.notes)


def test_smooth_models_are_not_looked_at():
    from grisaille.disturbance import build_stochastic_model
    from grisaille.filtering.stepping import bends_of_model
    from grisaille.structure import structure_of

    smooth = build_stochastic_model(structure_of(road(lambda s: gr.exp(-(s**2)))), ["y"])
    assert bends_of_model(smooth) is None
    assert bends_of_model(build_stochastic_model(structure_of(road(table(1.0))), ["y"])) is not None
