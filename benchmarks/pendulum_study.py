"""The pendulum study as data: one input, many disturbance paths, a reference trajectory for each.

u = 0.6·C x_w and w = 0.2·C x_w from independent paths of 1/(s² + 0.8 s + 16), linear between the points of a grid of
0.01 s, 100 s long; outputs every 0.1 s; the pendulum has m = 0.3 kg, g = 9.81 m/s², k = 0.05 kg/m, L = 6.25 m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

import grisaille as gr
from grisaille import atan2, der

M, G, K, L = 0.3, 9.81, 0.05, 6.25
GRID, SPAN, EVERY = 0.01, 100.0, 10


class Pendulum(gr.Model):
    """The index-3 pendulum with the disturbance handed in as an input, so that every solver sees the same path."""

    m, g, k, L = gr.Parameter(M), gr.Parameter(G), gr.Parameter(K), gr.Parameter(L)
    x, y = gr.Variable(0.0), gr.Variable(-L)
    vx, vy = gr.Variable(0.0), gr.Variable(0.0)
    tension = gr.Variable()
    u, w = gr.Input("N"), gr.Input("N")
    phi = gr.Output(atan2(x, -y))
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


@dataclass(frozen=True)
class Study:
    """Times of the grid, the input, and one disturbance path per realization."""

    t: np.ndarray
    u: np.ndarray
    w: np.ndarray


def make_study(realizations: int, seed: int = 1) -> Study:
    n = round(SPAN / GRID)
    random = np.random.default_rng(seed)
    paths = np.array([_path(n, random) for _ in range(realizations + 1)])
    return Study(np.arange(n + 1) * GRID, 0.6 * paths[0], 0.2 * paths[1:])


def _path(n: int, random: np.random.Generator) -> np.ndarray:
    A = np.array([[0.0, 1.0], [-16.0, -0.8]])
    pair = np.zeros((4, 4))
    pair[:2, :2], pair[:2, 2:], pair[2:, 2:] = -A, np.diag([0.0, 1.0]), A.T
    e = expm(pair * GRID)
    F = e[2:, 2:].T
    chol = np.linalg.cholesky(F @ e[:2, 2:])
    x = np.linalg.cholesky(np.diag([1 / (2 * 0.8 * 16), 1 / (2 * 0.8)])) @ random.standard_normal(2)
    noise = random.standard_normal((n, 2)) @ chol.T
    path = np.empty(n + 1)
    for k in range(n):
        path[k] = x[0]
        x = F @ x + noise[k]
    path[n] = x[0]
    return path
