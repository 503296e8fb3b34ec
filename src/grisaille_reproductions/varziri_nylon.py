"""Polycondensation of nylon 612 in a lab-scale reactor: the model and its data.

    Ȧ = −r + η_A,   Ċ = −r + η_C,   Ẇ = r − k_m (W − W_eq) + η_W,   r = k_p (C A − L W / K_a)            (6.11), (6.17)
    155.23 L = 10⁶ − 115.15 C − 58.10 A − 18.02 W                                                         (6.16)
    k_p = k_p0 exp(−(E/R)(1/T − 1/T₀)),   K_a = Γ/(γ_W/γ_W0) K_a0 exp(−(ΔH/R)(1/T − 1/T₀)),   Γ = 1 + a √W_eq    (6.24)

End groups A and C and water W in mol/Mg, time in hours, energies in kJ/mol; W_eq follows from the water pressure by
(6.14), (6.15), which is taken to hold from its row's time on. Source: M. S. Varziri, Parameter Estimation in
Nonlinear Continuous-Time Dynamic Models with Modelling Errors and Process Disturbances, thesis, Queen's University
(2008), chapter 6.
"""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille import der, exp, sqrt

GAS = 8.3145e-3
REFERENCE = 549.15
"""T₀ [K]"""
CRITICAL = (647.096, 22.064e6)
"""Of water: K, Pa."""
MMHG = 133.322
ACTIVITY_0 = 20.97
"""γ_W0"""

UNKNOWNS = ("k_p0", "K_a0", "E", "a", "dH")
DOCUMENT_START = {"k_p0": 0.019, "K_a0": 22.01, "E": 45.9, "a": 0.6, "dH": -39.62}
ONES = dict.fromkeys(UNKNOWNS, 1.0)
PUBLISHED = {"k_p0": 0.0129, "K_a0": 36.605, "E": 2e-4, "a": 0.286, "dH": -51.012}
PUBLISHED_INTERVALS = {
    "k_p0": (0.0106, 0.0152), "K_a0": (27.247, 45.963), "E": (-53.434, 53.435), "a": (0.170, 0.402),
    "dH": (-60.208, -41.815),
}  # fmt: skip
INTENSITIES = {"w_A": 4.37, "w_C": 15.56, "w_W": 0.88}
"""Table 6.3, (mol/Mg)²/h."""
UNITS = {"k_p0": "Mg/mol/h", "K_a0": "", "E": "kJ/mol", "a": "(mol/Mg)^-0.5", "dH": "kJ/mol"}
STEADY_TERM = (
    "The steady-state term of (6.28) for the three catalysed runs cannot be formed: their water pressures are not "
    "printed. It would pull estimates towards those of the steady states (Table 6.2); how far is not tested here."
)


def saturation_pressure(T: float | np.ndarray) -> float | np.ndarray:
    """Wagner's equation (6.15), Pa."""
    tau = 1 - T / CRITICAL[0]
    series = -7.77224 * tau + 1.45684 * tau**1.5 - 2.71492 * tau**3 - 1.41336 * tau**6
    return CRITICAL[1] * np.exp(series / (1 - tau))


def equilibrium_water(P_W: float | np.ndarray, T: float | np.ndarray) -> float | np.ndarray:
    """(6.14), mol/Mg, for a water pressure in mmHg."""
    return 5.55e4 * MMHG * P_W / saturation_pressure(T) * np.exp(-9.624 + 3613 / T)


class NylonReactor(gr.Model):
    """Melt-phase polycondensation: amine ends A, acid ends C, water W, amide links L."""

    k_p0 = gr.Parameter(0.019, UNITS["k_p0"], bounds=(0.0, np.inf))
    K_a0 = gr.Parameter(22.01, bounds=(0.0, np.inf))
    E = gr.Parameter(45.9, UNITS["E"], bounds=(0.0, np.inf))
    a = gr.Parameter(0.6, UNITS["a"], bounds=(0.0, np.inf))
    dH = gr.Parameter(-39.62, UNITS["dH"])
    k_m = gr.Parameter(24.3, "1/h")
    T = gr.Parameter(REFERENCE, "K")

    A, C, W = gr.Variable(25.0, "mol/Mg"), gr.Variable(90.0, "mol/Mg"), gr.Variable(50.0, "mol/Mg")
    L = gr.Variable(unit="mol/Mg")
    P_W = gr.Input("mmHg")
    w_A = gr.Disturbance(gr.spectra.white(), scale=INTENSITIES["w_A"] ** 0.5)
    w_C = gr.Disturbance(gr.spectra.white(), scale=INTENSITIES["w_C"] ** 0.5)
    w_W = gr.Disturbance(gr.spectra.white(), scale=INTENSITIES["w_W"] ** 0.5)
    y_A = gr.Output(A, noise=0.6, unit="mol/Mg")
    y_C = gr.Output(C, noise=2.4, unit="mol/Mg")

    tau = 1 - T / CRITICAL[0]
    P_sat = CRITICAL[1] * exp((-7.77224 * tau + 1.45684 * tau**1.5 - 2.71492 * tau**3 - 1.41336 * tau**6) / (1 - tau))
    W_eq = 5.55e4 * MMHG * P_W / P_sat * exp(-9.624 + 3613 / T)
    inverse = (1 / T - 1 / REFERENCE) / GAS
    k_p = k_p0 * exp(-E * inverse)
    K_a = (1 + a * sqrt(W_eq)) * ACTIVITY_0 / exp(9.624 - 3613 / T) * K_a0 * exp(-dH * inverse)
    rate = k_p * (C * A - L * W / K_a)

    equations = [
        der(A) == -rate + w_A,
        der(C) == -rate + w_C,
        der(W) == rate - k_m * (W - W_eq) + w_W,
        155.23 * L == 1e6 - 115.15 * C - 58.10 * A - 18.02 * W,
    ]


def first_starts(experiments: list[gr.Experiment]) -> dict[str, float]:
    """Where the 18 start values begin: first measurements, and water in equilibrium with its pressure."""
    guess: dict[str, float] = {}
    for e in experiments:
        first = {n: float(e.measurements(f"y_{n}")[1][0]) for n in ("A", "C")}
        first["W"] = float(equilibrium_water(760.0, float(e.constants["T"])))
        guess |= {f"start({n})@{e.name}": v for n, v in first.items()}
    return guess
