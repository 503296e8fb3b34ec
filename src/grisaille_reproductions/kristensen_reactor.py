"""The fed-batch reactor of N. R. Kristensen, H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, example 1.

Biomass X grows on substrate S while feed F fills the volume V; every balance is disturbed by white noise.

    dX = (μ X − F X/V) dt + σ₁₁ dω₁           μ(S) = μ_max S/(K₂ S² + S + K₁)
    dS = (−μ X/Y + F (S_F − S)/V) dt + σ₂₂ dω₂
    dV = F dt + σ₃₃ dω₃                        all three measured, 101 samples over 3.8 h

The source shows the feed as a picture only. Here it is a staircase of ten levels, each the middle value over its step
of the exponential feed under which S would stay at √(K₁/K₂), where growth is fastest:

    F = F₀ exp(μ* t),    μ* = μ(√(K₁/K₂)),    F₀ = μ* X₀ V₀/(Y (S_F − S₀))

μ has a pole at S = −0.0305. The drift drives paths away from it; those of a simulation with finite steps may jump over
it and end in a region without meaning. Data are simulated with 64 steps between samples, and such runs are counted.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.study.seeds import experiment_seed

if TYPE_CHECKING:
    from grisaille.results.monte_carlo import MonteCarlo


SPAN, SAMPLES, LEVELS = 3.8, 101, 10
TIMES = np.linspace(0.0, SPAN, SAMPLES)
STEP = SPAN / (SAMPLES - 1) / 64
"""Of simulated data, in hours."""
POLE = -1.0 + np.sqrt(0.94)
"""Where μ(S) is infinite, in the units of S."""
BANDWIDTH = 10.0
"""Of the low-pass noise that MoCaVa had instead of white noise, rad/h."""

NAMES = {
    "X₀": "X_0", "S₀": "S_0", "V₀": "V_0", "μ_max": "mu_max", "K₁": "K_1", "σ₁₁": "scale(w_X)", "σ₂₂": "scale(w_S)",
    "σ₃₃": "scale(w_V)", "S₁₁": "noise(y_X)", "S₂₂": "noise(y_S)", "S₃₃": "noise(y_V)",
}  # fmt: skip
"""The tables' symbols and what we estimate; S are variances, our noise(…) their square roots."""
UNKNOWNS = list(NAMES.values())
DIFFUSIONS = ("scale(w_X)", "scale(w_S)", "scale(w_V)")
METHOD = gr.KalmanML(first_observation="condition")
"""Conditioned on the first sample, as eq. (10) has it."""


class FedBatchReactor(gr.Model):
    """A fed-batch bioreactor, weakly disturbed."""

    X_0 = gr.Parameter(1.0, "g/l", bounds=(0.01, 10.0))
    S_0 = gr.Parameter(np.sqrt(0.06), "g/l", bounds=(1e-3, 10.0))
    V_0 = gr.Parameter(1.0, "l", bounds=(0.01, 10.0))
    mu_max = gr.Parameter(1.0, "1/h", bounds=(0.01, 10.0))
    K_1 = gr.Parameter(0.03, "g/l", bounds=(1e-5, 1.0))
    K_2, Y, S_F = gr.Parameter(0.5, "l/g"), gr.Parameter(0.5), gr.Parameter(10.0, "g/l")

    X, S, V = gr.Variable(X_0, "g/l"), gr.Variable(S_0, "g/l"), gr.Variable(V_0, "l")
    F = gr.Input("l/h")
    w_X = gr.Disturbance(gr.spectra.white(), scale=0.1)
    w_S = gr.Disturbance(gr.spectra.white(), scale=0.1)
    w_V = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y_X = gr.Output(X, noise=0.1, unit="g/l")
    y_S = gr.Output(S, noise=np.sqrt(1e-3), unit="g/l")
    y_V = gr.Output(V, noise=0.1, unit="l")

    mu = mu_max * S / (K_2 * S**2 + S + K_1)
    equations = [
        der(X) == mu * X - F * X / V + w_X,
        der(S) == -mu * X / Y + F * (S_F - S) / V + w_S,
        der(V) == F + w_V,
    ]


def reactor(diffusion: float, bandwidth: float | None = None) -> FedBatchReactor:
    """The reactor with σ₁₁ = σ₂₂ = σ₃₃; low-pass noise of that intensity where a bandwidth is given."""
    spectrum = gr.spectra.white() if bandwidth is None else gr.spectra.lowpass(bandwidth=bandwidth)
    return FedBatchReactor(**{w: gr.Disturbance(spectrum, scale=diffusion) for w in ("w_X", "w_S", "w_V")})


def feed() -> tuple[np.ndarray, np.ndarray]:
    """The staircase: when its levels begin, and the levels."""
    begin = np.arange(LEVELS) * SPAN / LEVELS
    s = np.sqrt(0.06)
    rate = s / (0.5 * s**2 + s + 0.03)
    return begin, rate / (0.5 * (10.0 - s)) * np.exp(rate * (begin + 0.5 * SPAN / LEVELS))


def plan(records: int = 1) -> list[gr.Experiment]:
    """Records with the undisturbed outputs in place of measurements."""
    path = gr.simulate(FedBatchReactor(), TIMES, inputs={"F": feed()})
    outputs = {name: path[name].to_numpy() for name in ("y_X", "y_S", "y_V")}
    return [gr.Experiment(TIMES, {"F": feed()}, outputs, name=f"record {k + 1}") for k in range(records)]


@dataclass(frozen=True)
class CrossedRuns:
    """Data sets with a path on the wrong side of the pole."""

    runs: np.ndarray
    """Whether, by run."""
    seeds: tuple[int, ...]


def crossings(study: MonteCarlo, model: gr.Model, records: int = 1) -> CrossedRuns:
    """The paths behind a study's data sets, simulated again without noise."""
    seeds = [int(s) for s in study.table["seed"]]
    crossed = np.array([any(_crosses(model, experiment_seed(s, k)) for k in range(records)) for s in seeds])
    return CrossedRuns(crossed, tuple(s for s, is_lost in zip(seeds, crossed, strict=True) if is_lost))


def _crosses(model: gr.Model, seed: int) -> bool:
    with warnings.catch_warnings():
        # at the pole no step is short enough, which is what is asked here
        warnings.filterwarnings("ignore", message=".*under white noise", category=UserWarning)
        path = gr.simulate(model, TIMES, inputs={"F": feed()}, realizations=1, seed=seed, step=STEP, strict=False)["S"]
    return not bool((path > POLE).all())
