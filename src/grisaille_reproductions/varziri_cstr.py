"""The stirred tank reactor of M. S. Varziri, Parameter Estimation in Stochastic Dynamic Models (2008), chapters 3 to 5.

A material and an energy balance, each disturbed by white noise; both states measured with noise, the concentration
every minute, the temperature every 0.3 minutes, over 64 minutes in which each of five inputs steps up, down and back.
The thesis shows the steps only as a picture; those here leave no simulated run to ignite. The steady state is
C_A = 1.5965 kmol/m³, T = 341.379 K (the text prints 1.569 in places).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der, exp

TRUE = {"E_R": 8330.1, "k_ref": 0.461, "a": 1.678e6, "b": 0.5}
"""True values of the parameters that are estimated."""
SPAN = 64.0
"""Minutes."""
STEADY = {"F": 1.0, "C_A0": 2.0, "T_0": 323.0, "T_cin": 335.0, "F_c": 15.0}
STEPS = {"F": 0.1, "C_A0": 0.1, "T_0": 3.0, "T_cin": 3.0, "F_c": 5.0}
"""Inputs at steady state and how far they step."""


class Reactor(gr.Model):
    """Eqs. (4.16): nonlinear, two states, five inputs."""

    E_R = gr.Parameter(8330.1, "K", bounds=(1000.0, 30000.0))
    k_ref = gr.Parameter(0.461, "1/min", bounds=(0.01, 5.0))
    a = gr.Parameter(1.678e6, bounds=(1e5, 2e7))
    b = gr.Parameter(0.5, bounds=(0.01, 2.0))
    V, T_ref = gr.Parameter(1.0, "m3"), gr.Parameter(350.0, "K")
    rho_C_p, heat = gr.Parameter(1e6), gr.Parameter(130e6)

    C_A, T = gr.Variable(start=1.5965, unit="kmol/m3"), gr.Variable(start=341.379, unit="K", nominal=300.0)
    F, F_c = gr.Input("m3/min", default=1.0), gr.Input("m3/min", default=15.0)
    C_A0 = gr.Input("kmol/m3", default=2.0)
    T_0, T_cin = gr.Input("K", default=323.0), gr.Input("K", default=335.0)
    w_C = gr.Disturbance(gr.spectra.white(), scale=np.sqrt(4e-3))
    w_T = gr.Disturbance(gr.spectra.white(), scale=2.0)
    y_C = gr.Output(C_A, noise=np.sqrt(4e-4), unit="kmol/m3")
    y_T = gr.Output(T, noise=np.sqrt(6.4e-1), unit="K")

    g = k_ref * exp(-E_R * (1 / T - 1 / T_ref))
    beta_1 = -a * F_c ** (b + 1) / (V * rho_C_p * (F_c + a * F_c**b / (2 * rho_C_p)))
    equations = [
        der(C_A) == F / V * (C_A0 - C_A) - g * C_A + w_C,
        der(T) == F / V * (T_0 - T) + beta_1 * (T - T_cin) + heat / rho_C_p * g * C_A + w_T,
    ]


class DriftingReactor(Reactor):
    """Eqs. (4.19): a non-stationary disturbance in the material balance (6e-5 for the printed 6e-2, which is
    unusable: most runs reach negative concentrations)."""

    d = gr.Disturbance(gr.spectra.integrated(), scale=np.sqrt(6e-5))
    equations = [
        der(Reactor.C_A) == Reactor.F / Reactor.V * (Reactor.C_A0 - Reactor.C_A) - Reactor.g * Reactor.C_A + d
        + Reactor.w_C,
        der(Reactor.T) == Reactor.F / Reactor.V * (Reactor.T_0 - Reactor.T) + Reactor.beta_1
        * (Reactor.T - Reactor.T_cin) + Reactor.heat / Reactor.rho_C_p * Reactor.g * Reactor.C_A + Reactor.w_T,
    ]  # fmt: skip


def inputs(**other: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Each input in turn steps up for four minutes, down for four, and back; ``other`` steps by name."""
    found, steps = {}, {**STEPS, **other}
    for k, (name, level) in enumerate(STEADY.items()):
        times = np.array([0.0, 2.0, 6.0, 10.0]) + np.array([0.0, 12.0 * k, 12.0 * k, 12.0 * k])
        found[name] = (times, level + steps[name] * np.array([0.0, 1.0, -1.0, 0.0]))
    return found


def sample_times(at_once: bool = False) -> dict[str, np.ndarray]:
    """64 concentrations and 213 temperatures, from the first instant on or from one interval after it.

    The source says only how many. Chapter 5, where starts are unknown, prints standard errors of the starts that no
    record without a sample there can have.
    """
    first = 0 if at_once else 1
    return {"y_C": np.arange(first, first + 64) * 1.0, "y_T": np.round(np.arange(first, first + 213) * 0.3, 10)}


def simulate_experiment(
    seed: int, model: gr.Model | None = None, outputs: Any = ("y_C", "y_T"), **steps: float
) -> gr.Experiment:
    """One data set."""
    chosen, wanted, signals = model or Reactor(), sample_times(), inputs(**steps)
    grid = np.unique(np.concatenate([[0.0], *wanted.values()]))
    # the noise of each sample on a grid of its own: the record is the same whichever outputs are kept
    found = gr.simulate(chosen, grid, inputs=signals, realizations=1, seed=seed, noise=True)
    rows = {name: np.searchsorted(grid, t) for name, t in wanted.items()}
    seen = {name: (wanted[name], found[name].values.reshape(-1)[rows[name]]) for name in outputs}
    return gr.Experiment(inputs=signals, outputs=seen, t0=0.0, name=f"data set {seed}")


def halved_guess() -> dict[str, float]:
    """Where the thesis starts from: half of every true value."""
    return {name: 0.5 * value for name, value in TRUE.items()}
