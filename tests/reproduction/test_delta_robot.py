"""The delta robot: its physics, what its motion cannot tell, and an identification."""

from __future__ import annotations

import numpy as np

import grisaille as gr
from grisaille_reproductions.abdalmoaty_delta_robot import OUTPUTS, identification, reference
from grisaille_reproductions.delta_robot import DeltaRobot

TIMES = np.linspace(0.0, 2.0, 41)
INPUTS = {f"legs[{k}].reference": (TIMES, reference(TIMES, k)) for k in range(3)}


def test_index_and_size() -> None:
    told = gr.analyze(DeltaRobot())
    assert told.index == 3 and "54 equations, 54 variables" in str(told)


def test_energy_is_kept_without_friction_and_servo() -> None:
    off = {"joint_friction": 0.0} | {f"friction[{k}]": 0.0 for k in range(3)}
    off |= {f"legs[{k}].{n}": 0.0 for k in range(3) for n in ("stiffness", "damping")}
    run = gr.simulate(DeltaRobot(), np.linspace(0, 0.6, 13), INPUTS, off, hold="foh", rtol=1e-9)
    energy = _energy(run)
    assert np.ptp(run["z"].values) > 0.3
    np.testing.assert_allclose(energy, energy[0], atol=1e-6)


def _energy(run) -> np.ndarray:
    """T of rods from the velocities of their centres and their turning, not from the coefficients of the model."""
    M1, J1, M2, J2, M3, L1, L2, g = 0.1, 0.4, 0.1, 0.4, 0.9, 1.5, 2.0, 9.81
    p, v = (np.stack([run[f"{n}[{i}]"].values for i in range(3)]) for n in ("plate", "velocity"))
    total = 0.5 * M3 * np.sum(v**2, axis=0) + M3 * g * p[2]
    for k in range(3):
        angle, rate = run[f"legs[{k}].angle"].values, run[f"legs[{k}].rate"].values
        e, ve = (np.stack([run[f"legs[{k}].{n}[{i}]"].values for i in range(3)]) for n in ("elbow", "elbow_velocity"))
        turn = (v - ve) / L2
        total += 0.5 * (J1 + M1 * 0.75**2) * rate**2 - M1 * g * 0.75 * np.sin(angle)
        total += 0.5 * M2 * np.sum(((v + ve) / 2) ** 2, axis=0) + 0.5 * J2 * np.sum(turn**2, axis=0)
        total += M2 * g * (p[2] + e[2]) / 2
        np.testing.assert_allclose(np.linalg.norm(e - p, axis=0), L2, atol=1e-8)
        np.testing.assert_allclose(e[2], -L1 * np.sin(angle), atol=1e-8)
    return total


def test_the_mass_of_the_rods_leaves_no_trace() -> None:
    """Point masses at the ends of a rod instead of its own: α(1 − α) L² of inertia per mass."""
    extra, share, L1, L2, centre = 0.05, 0.5, 1.5, 2.0, 0.75
    arm = -(1 - share) * extra * L1 / centre
    inertia = -arm * centre**2 - (1 - share) * extra * L1**2
    other = {
        "M2": 0.1 + extra, "J2": 0.4 + share * (1 - share) * L2**2 * extra, "M3": 0.9 - 3 * share * extra,
        "M1": 0.1 + arm, "J1": 0.4 + inertia,
    }  # fmt: skip
    one, two = (gr.simulate(DeltaRobot(), TIMES, INPUTS, p, hold="foh", rtol=1e-9) for p in ({}, other))
    for name in OUTPUTS:
        np.testing.assert_allclose(two[name], one[name], atol=1e-7)


def test_identification() -> None:
    result = identification("small", None, None, seconds=3.0, realizations=8, unknowns=2)
    assert result["converged"].ours == "True"
    for name in ("L1", "L2"):
        assert abs(result.ours(f"{name}: error in standard errors")) < 4
