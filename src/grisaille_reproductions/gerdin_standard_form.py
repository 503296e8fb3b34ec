"""The likelihood of the joined bodies by the recipe of the source, in plain numbers: sections 5 and 8, (B.9)–(B.17).

    E ż = F z + G u + J v  →  ẋ = A x + B u + L v,  y = C x + D u + e

The disturbances' filters join z; the pencil is separated numerically at the given parameter values, the state space
form is discretised exactly over a sampling interval, and a textbook Kalman filter runs over the data. Nothing is shared
with the filters of the package but the separation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.linalg

import grisaille as gr
from grisaille.structure.descriptor.standard_form import StandardForm, standard_form
from grisaille_reproductions.gerdin_bodies import E, F

BANDWIDTHS = (2.0, 1.0)
"""Of the low-pass forces."""


def log_likelihood(at: Mapping[str, float], data: gr.Experiment, speed_variance: float) -> float:
    """log p(y_v, y_f) for forces that start stationary and a speed N(0, ``speed_variance``)."""
    form = state_space(at)
    times, u = data.grid(), np.asarray(data.inputs["u"].values, dtype=float)  # type: ignore[union-attr]
    y = np.column_stack([data.outputs[name].values for name in ("y_v", "y_f")])
    A, B, Q = _discretized(form, float(times[1] - times[0]))
    R = np.diag([at["noise(y_v)"] ** 2, at["noise(y_f)"] ** 2])
    P = _start_covariance(form, at, speed_variance)
    x, total = np.zeros(len(A)), 0.0
    for k in range(len(times)):
        e = y[k] - form.C @ x - form.D[0][:, 0] * u[k]
        S = form.C @ P @ form.C.T + R
        gain = np.linalg.solve(S, form.C @ P).T
        total -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        x = A @ (x + gain @ e) + B * u[k]
        P = A @ (P - gain @ S @ gain.T) @ A.T + Q
    return float(total)


def state_space(at: Mapping[str, float]) -> StandardForm:
    """(B.14) of the bodies with z = (v₁, v₂, f, w₁, w₂)."""
    masses, friction = np.diag([at["m_1"], at["m_2"], 1.0]), np.zeros((3, 3))
    friction[0, 0] = at["d"]
    whole_E = scipy.linalg.block_diag(masses @ E, np.eye(2))
    forces = np.vstack([np.eye(2), np.zeros((1, 2))])
    whole_F = np.block([[F - friction, forces], [np.zeros((2, 3)), -np.diag(BANDWIDTHS)]])
    push = np.array([[1.0], [0.0], [0.0], [0.0], [0.0]])
    white = np.vstack([np.zeros((3, 2)), np.diag(_gains(at))])
    measured = np.array([[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]])
    return standard_form(whole_E, whole_F, push, white, measured)


def _gains(at: Mapping[str, float]) -> np.ndarray:
    return np.array([BANDWIDTHS[0] * at["scale(w_1)"], BANDWIDTHS[1] * at["scale(w_2)"]])


def _start_covariance(form: StandardForm, at: Mapping[str, float], speed_variance: float) -> np.ndarray:
    """Of x; eq. (8): a force of the joint in z(t₀) would not count, and is left at zero."""
    z = np.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]).T
    x = np.linalg.solve(form.separation.Q, z)[: len(form.A)]
    stationary = _gains(at) ** 2 / (2 * np.array(BANDWIDTHS))
    return np.asarray(x @ np.diag([speed_variance, *stationary]) @ x.T)


def _discretized(form: StandardForm, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transition, held input and noise of one interval, by two matrix exponentials."""
    n = len(form.A)
    held = scipy.linalg.expm(h * np.block([[form.A, form.B], [np.zeros((1, n + 1))]]))
    noise = scipy.linalg.expm(h * np.block([[-form.A, form.L @ form.L.T], [np.zeros((n, n)), form.A.T]]))
    Q = noise[n:, n:].T @ noise[:n, n:]
    return held[:n, :n], held[:n, n], 0.5 * (Q + Q.T)
