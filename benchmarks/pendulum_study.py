"""The pendulum study as data: one input, many disturbance paths, a reference trajectory for each.

u = 0.6·C x_w and w = 0.2·C x_w from independent paths of 1/(s² + 0.8 s + 16), linear between the points of a grid of
0.01 s, 100 s long; outputs every 0.1 s; the pendulum has m = 0.3 kg, g = 9.81 m/s², k = 0.05 kg/m, L = 6.25 m.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

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


HAND_WRITTEN = """
#include <math.h>
static inline double acc(double a, double w, double f, const double *p) {
  const double s = sin(a), c = cos(a), vx = p[3]*w*c, vy = p[3]*w*s;
  const double fx = -p[2]*fabs(vx)*vx + f, fy = -p[2]*fabs(vy)*vy - p[0]*p[1];
  return (fx*c + fy*s) / (p[0]*p[3]);
}
/* classical Runge-Kutta on the angle, `sub` steps per cell, angle stored every `every` cells */
void angle_rk4(long cells, double cell, long sub, long every, const double *u, const double *w, const double *p, double *out) {
  double a = 0, v = 0;
  const double h = cell / sub;
  out[0] = a;
  for (long k = 0; k < cells; k++) {
    const double f0 = u[k] + w[k], df = (u[k+1] + w[k+1] - f0) / sub;
    for (long j = 0; j < sub; j++) {
      const double fa = f0 + j*df, fm = fa + 0.5*df, fb = fa + df;
      const double a1 = v, v1 = acc(a, v, fa, p);
      const double a2 = v + 0.5*h*v1, v2 = acc(a + 0.5*h*a1, a2, fm, p);
      const double a3 = v + 0.5*h*v2, v3 = acc(a + 0.5*h*a2, a3, fm, p);
      const double a4 = v + h*v3, v4 = acc(a + h*a3, a4, fb, p);
      a += h/6*(a1 + 2*a2 + 2*a3 + a4);
      v += h/6*(v1 + 2*v2 + 2*v3 + v4);
    }
    if ((k + 1) % every == 0) out[(k + 1) / every] = a;
  }
}
"""


class HandWritten:
    """RK4 on the angle form, written in C by hand: what generated code is measured against."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="hand-written-"))
        (folder / "angle.c").write_text(HAND_WRITTEN)
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(folder / "angle.so"), str(folder / "angle.c"), "-lm"]
        subprocess.run(command, check=True)
        self.function = ctypes.CDLL(str(folder / "angle.so")).angle_rk4
        pointer = np.ctypeslib.ndpointer(np.float64, flags="C")
        self.function.argtypes = [ctypes.c_long, ctypes.c_double, ctypes.c_long, ctypes.c_long, *([pointer] * 4)]
        self.function.restype = None

    def run(self, study: Study, realization: int, substeps: int = 1) -> np.ndarray:
        cells = len(study.t) - 1
        out = np.empty(cells // EVERY + 1)
        w = np.ascontiguousarray(study.w[realization])
        self.function(cells, GRID, substeps, EVERY, study.u, w, np.array([M, G, K, L]), out)
        return out
