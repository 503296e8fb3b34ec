"""Estimates of the likelihood have no bias: their mean over seeds is what the Kalman filter computes."""

from __future__ import annotations

import numpy as np
import pytest
from zoo.particles import TIMES, Decay, Lever, Network, estimates, exact, measured, posed

import grisaille as gr

RECORDS = {
    "index 0": (Decay(), "a", {"y": measured(1.0, 1)}),
    "index 1": (Network(), "a", {"y": measured(0.8, 2), "flow": measured(0.6, 3, (4, 7))}),
    "index 3": (Lever(), "c", {"y": measured(0.4, 4)}),
}
STARTS = {"index 0": "first-sample", "index 1": {"x": 0.1, "v": 0.05}, "index 3": {"x": 0.1, "v": 0.2}}


@pytest.mark.parametrize("proposal", ["guided", "bootstrap"])
@pytest.mark.parametrize("case", RECORDS)
def test_the_mean_likelihood_is_that_of_the_kalman_filter(case, proposal):
    """Over 300 seeds, within three standard errors; 16 steps between samples leave less than 1e-6 of log L."""
    model, name, outputs = RECORDS[case]
    data, start = gr.Experiment(TIMES, outputs=outputs), STARTS[case]
    method = gr.ParticleML(particles=64, proposal=proposal, initial_covariance=start, substeps=16)
    off = estimates(posed(model, data, [name], method), 300) - exact(model, data, [name], initial_covariance=start)
    ratio = np.exp(off)
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert off.std() < 1.0
    assert abs(ratio.mean() - 1.0) < 3 * error, f"{ratio.mean():.4f} ± {error:.4f}, sd of log L {off.std():.3f}"
