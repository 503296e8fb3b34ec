"""Two bodies that move as one, each under a force of its own: an example of differential-algebraic estimation.

M. Gerdin, T. B. Schön, T. Glad, F. Gustafsson, L. Ljung, On parameter and state estimation for linear
differential-algebraic equations, Automatica 43 (2007) 416, section 7, eq. (19), with masses, friction and a push u:

    m₁ v̇₁ = f − d v₁ + u + w₁,    m₂ v̇₂ = −f + w₂,    0 = v₁ − v₂

and the same reduced by hand,

    (m₁ + m₂) v̇ = u − d v + w₁ + w₂,    f = w₂ − m₂ v̇

With m₁ = m₂ = 1, d = 0, u = 0 the first is the printed one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der

E = np.diag([1.0, 1.0, 0.0])
F = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, -1.0, 0.0]])
J = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
"""E ż = F z + J w with z = (v₁, v₂, f), as printed."""


class JoinedBodies(gr.Model):
    """Two bodies and their joint, coloured forces, the speed measured."""

    m_1 = gr.Parameter(1.0, "kg", bounds=(0.05, 20.0))
    m_2 = gr.Parameter(1.0, "kg", bounds=(0.05, 20.0))
    d = gr.Parameter(0.5, "kg/s", bounds=(0.0, 20.0))
    v_1, v_2 = gr.Variable(0.0, "m/s"), gr.Variable(0.0, "m/s")
    f = gr.Variable(unit="N")
    u = gr.Input("N", default=0.0)
    w_1 = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.5)
    w_2 = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.3)
    y_v = gr.Output(v_1, noise=0.02, unit="m/s")
    equations = [
        m_1 * der(v_1) == f - d * v_1 + u + w_1,
        m_2 * der(v_2) == -f + w_2,
        0 == v_1 - v_2,
    ]


class MeasuredForce(JoinedBodies):
    """The force of the joint measured too."""

    y_f = gr.Output(JoinedBodies.f, noise=0.1, unit="N")


class OneBody(gr.Model):
    """The bodies as one, reduced by hand."""

    m_1 = gr.Parameter(1.0, "kg", bounds=(0.05, 20.0))
    m_2 = gr.Parameter(1.0, "kg", bounds=(0.05, 20.0))
    d = gr.Parameter(0.5, "kg/s", bounds=(0.0, 20.0))
    v_1 = gr.Variable(0.0, "m/s")
    u = gr.Input("N", default=0.0)
    w_1 = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.5)
    w_2 = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.3)
    y_v = gr.Output(v_1, noise=0.02, unit="m/s")
    equations = [(m_1 + m_2) * der(v_1) == u - d * v_1 + w_1 + w_2]


class OneBodyWithForce(OneBody):
    """And what the joint transmits."""

    f = OneBody.w_2 - OneBody.m_2 * (OneBody.u - OneBody.d * OneBody.v_1 + OneBody.w_1 + OneBody.w_2) / (
        OneBody.m_1 + OneBody.m_2
    )
    y_f = gr.Output(f, noise=0.1, unit="N")


class Presampled(gr.Model):
    """Section 4: z₁ + z₂ with a white z₂, and behind a low-pass filter."""

    z_1, z_2, z_3 = gr.Variable(0.0), gr.Variable(), gr.Variable(0.0)
    v_1, v_2 = gr.Disturbance(gr.spectra.white()), gr.Disturbance(gr.spectra.white())
    plain = gr.Output(z_1 + z_2, noise=0.1)
    filtered = gr.Output(z_3, noise=0.1)
    equations = [der(z_1) == -2 * z_1 + v_1, 0 == -z_2 + v_2, 0.01 * der(z_3) + z_3 == z_1 + z_2]


def white() -> dict[str, Any]:
    """Forces of pole excess zero, in place of the coloured ones."""
    return {"w_1": gr.Disturbance(gr.spectra.white(), scale=0.5), "w_2": gr.Disturbance(gr.spectra.white(), scale=0.3)}


def record(samples: int, seed: int = 19) -> tuple[gr.Experiment, np.ndarray]:
    """Speed and force every 0.1 s under pushes of ±1 N, and the force without noise."""
    times = 0.1 * np.arange(samples)
    push = np.sign(np.sin(1.3 * times + 0.1)) * (1 + 0.5 * np.cos(0.37 * times))
    run = gr.simulate(MeasuredForce(), times, {"u": push}, realizations=1, seed=seed, step=0.01, noise=True)
    outputs = {name: run[name].to_numpy().reshape(-1) for name in ("y_v", "y_f")}
    return gr.Experiment(times, {"u": push}, outputs, name="bodies"), run["f"].to_numpy().reshape(-1)
