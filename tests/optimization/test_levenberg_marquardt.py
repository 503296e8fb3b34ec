"""Levenberg–Marquardt at bounds: a step that a bound cuts off may lead uphill, and is no minimum yet."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr


class Collinear(gr.Model):
    """p and q trade off almost exactly."""

    p, q = gr.Parameter(0.0), gr.Parameter(0.0)
    x = gr.Input()
    y = gr.Output(p * x + q * (x + 0.1 * x**2))


def test_cut_off_steps_are_damped_not_taken_for_the_end() -> None:
    x = np.linspace(0.5, 2.0, 30)
    data = gr.Experiment(inputs={"x": x}, outputs={"y": 10 * x - 9 * (x + 0.1 * x**2) + 0.01 * np.cos(7 * x)})
    bounds = {"p": (-5.0, 1.0), "q": (-20.0, 20.0)}
    found = [
        gr.fit(Collinear(), data, ["p", "q"], gr.OutputError(o, projection=False), bounds=bounds)
        for o in ("levenberg-marquardt", "trust-region")
    ]
    assert all(fit.converged for fit in found)
    assert float(found[0]["p"]) == pytest.approx(1.0)
    assert float(found[0]["q"]) == pytest.approx(float(found[1]["q"]), rel=1e-6)
