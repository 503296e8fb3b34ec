"""The wall of N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, example 2.

Two heat capacities between outdoor and indoor air, each disturbed by white noise; measured is the heat flow into the
wall from indoors, 719 samples over 718 h.

    G₁ dT₁ = ((T_e − T₁)/H₁ + (T₂ − T₁)/H₂) dt + G₁ σ₁₁ dω₁
    G₂ dT₂ = ((T₁ − T₂)/H₂ + (T_i − T₂)/H₃) dt + G₂ σ₂₂ dω₂          q_i = (T_i − T₂)/H₃ + e

The source shows the temperatures as a picture only. Those here are, in °C and hours,

    T_e = 7 + 4 sin(2πt/24) + 10 sin(2πt/360),    T_i = 28 + 0.8 sin(2πt/168)

about the steady state of the true starting temperatures and held between samples. Periods and sizes were chosen so that
the standard errors without diffusion are of the order of the published errors.
"""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der

TIMES = np.arange(719.0)
STEP = 1.0 / 8
"""Of simulated data, in hours."""
BANDWIDTH = 0.4
"""Of the low-pass noise that MoCaVa had instead of white noise, rad/h."""

NAMES = {
    "T₁₀": "T_10", "T₂₀": "T_20", "G₁": "G_1", "G₂": "G_2", "H₁": "H_1", "H₂": "H_2", "H₃": "H_3", "σ₁₁": "scale(w_1)",
    "σ₂₂": "scale(w_2)", "S": "noise(q)",
}  # fmt: skip
"""The tables' symbols and what we estimate; S is a variance, our noise(q) its square root."""
UNKNOWNS = list(NAMES.values())
DIFFUSIONS = ("scale(w_1)", "scale(w_2)")
METHOD = gr.KalmanML(first_observation="condition")


class Wall(gr.Model):
    """A wall of two layers."""

    T_10 = gr.Parameter(13.2, "degC", bounds=(-50.0, 100.0))
    T_20 = gr.Parameter(25.3, "degC", bounds=(-50.0, 100.0))
    G_1 = gr.Parameter(100.0, "Wh/K", bounds=(1.0, 1e4))
    G_2 = gr.Parameter(50.0, "Wh/K", bounds=(1.0, 1e4))
    H_1 = gr.Parameter(1.0, "K/W", bounds=(0.01, 100.0))
    H_2 = gr.Parameter(2.0, "K/W", bounds=(0.01, 100.0))
    H_3 = gr.Parameter(0.5, "K/W", bounds=(0.01, 100.0))

    T_1, T_2 = gr.Variable(T_10, "degC"), gr.Variable(T_20, "degC")
    T_e, T_i = gr.Input("degC"), gr.Input("degC")
    w_1 = gr.Disturbance(gr.spectra.white(), scale=0.1)
    w_2 = gr.Disturbance(gr.spectra.white(), scale=0.1)
    q = gr.Output((T_i - T_2) / H_3, noise=0.1, unit="W")

    equations = [
        der(T_1) == ((T_e - T_1) / H_1 + (T_2 - T_1) / H_2) / G_1 + w_1,
        der(T_2) == ((T_1 - T_2) / H_2 + (T_i - T_2) / H_3) / G_2 + w_2,
    ]


def wall(diffusion: float, bandwidth: float | None = None) -> Wall:
    """The wall with σ₁₁ = σ₂₂; low-pass noise of that intensity where a bandwidth is given."""
    spectrum = gr.spectra.white() if bandwidth is None else gr.spectra.lowpass(bandwidth=bandwidth)
    return Wall(**{w: gr.Disturbance(spectrum, scale=diffusion) for w in ("w_1", "w_2")})


def temperatures() -> dict[str, np.ndarray]:
    """Outdoors and indoors, in °C."""
    day, week, fortnight = (np.sin(2 * np.pi / period * TIMES) for period in (24.0, 168.0, 360.0))
    return {"T_e": 7.0 + 4.0 * day + 10.0 * fortnight, "T_i": 28.0 + 0.8 * week}


def plan() -> list[gr.Experiment]:
    """The record with the undisturbed heat flow in place of measurements."""
    path = gr.simulate(Wall(), TIMES, inputs=temperatures())
    return [gr.Experiment(TIMES, temperatures(), {"q": path["q"].to_numpy()}, name="wall")]
