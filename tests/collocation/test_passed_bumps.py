"""Bumps between the points at which collocation knows the model."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der

TIMES = np.linspace(0.0, 10.0, 21)
MET = 5.013
"""When the bump is met, between two samples."""


def road(width, disturbed):
    """A state that moves by H where another one passes a bump, which may be ``disturbed`` (splines)."""

    class Road(gr.Model):
        H = gr.Parameter(1.0, bounds=(0.0, 100.0))
        s, E = gr.Variable(0.0), gr.Variable(0.0)
        w = gr.Disturbance(gr.spectra.white(), scale=0.1)
        if disturbed:
            v = gr.Disturbance(gr.spectra.white(), scale=0.02)
        y = gr.Output(E, noise=0.02)
        z = gr.Output(s, noise=0.1)

        def equations(self):
            knots = [0.0, 20 * MET, 20 * MET + width / 2, 20 * MET + width, 300.0]
            bump = gr.table(self.s, knots, [0.0, 0.0, 40.0 / width, 0.0, 0.0])
            yield der(self.s) == 20.0 + (self.v if disturbed else 0.0)
            yield der(self.E) == -0.1 * self.E + self.H * bump + self.w

    return Road()


def record():
    """Three units arrive at once."""
    rng, E = np.random.default_rng(0), np.zeros(TIMES.size)
    for k, t in enumerate(TIMES[1:], 1):
        h = t - TIMES[k - 1]
        E[k] = E[k - 1] * np.exp(-0.1 * h) + 0.1 * np.sqrt(h) * rng.standard_normal()
        if TIMES[k - 1] < MET <= t:
            E[k] += 3.0 * np.exp(-0.1 * (t - MET))
    noisy = E + 0.02 * rng.standard_normal(TIMES.size)
    return gr.Experiment(TIMES, outputs={"y": noisy, "z": 20 * TIMES + 0.1 * rng.standard_normal(TIMES.size)})


@pytest.mark.parametrize("disturbed", [False, True])
def test_a_bump_that_no_point_meets_is_refined_for(disturbed):
    """The height was called dead."""
    fit = gr.fit(road(0.8, disturbed), record(), ["H"], gr.Collocation(criterion="amle"), progress=False)
    assert fit.converged
    assert float(fit["H"]) == pytest.approx(3.0, abs=3 * fit["H"].std_error)
    assert fit["H"].std_error < 0.1


@pytest.mark.parametrize("disturbed", [False, True])
def test_what_is_too_narrow_is_told(disturbed):
    fit = gr.fit(road(1e-6, disturbed), record(), ["H"], gr.Collocation(criterion="amle"), progress=False)
    assert any("passes a bump or a short condition" in n and "t = 5.01" in n for n in fit.notes)
