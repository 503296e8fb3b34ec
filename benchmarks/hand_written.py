"""RK4 on the angle form, written in C by hand: what generated code is measured against.

With the angle a, |vx|vx cos a + |vy|vy sin a = L² v|v| (|cos a|³ + |sin a|³), so that a stage costs one sincos and no
division. Built in four ways (-O2 and -O3, one realization after another and four side by side); the fastest counts.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from pendulum_study import EVERY, GRID, G, K, L, M, Study
from timing import best_of

SOURCE = """
#include <math.h>
/* p = 1/(m L), g/L, k L/m */
static inline double acceleration(double a, double v, double f, const double *p) {
  const double s = sin(a), c = cos(a);
  return p[0]*f*c - p[1]*s - p[2]*v*fabs(v)*(fabs(c)*c*c + fabs(s)*s*s);
}
/* classical Runge-Kutta, `sub` steps per cell, the angle stored every `every` cells; w and out: LANES rows */
void angle_rk4(long cells, double cell, long sub, long every, const double *u, const double *w, const double *p,
               double *out) {
  const double h = cell / sub, h2 = 0.5*h, h6 = h/6, share = 1.0/sub;
  const long width = cells / every + 1;
  double a[LANES] = {0}, v[LANES] = {0};
  for (int r = 0; r < LANES; r++) out[r*width] = 0;
  for (long k = 0, next = every, row = 1; k < cells; k++) {
    for (int r = 0; r < LANES; r++) {
      const double *path = w + r*(cells + 1) + k;
      double f = u[k] + path[0], x = a[r], y = v[r];
      const double df = (u[k+1] + path[1] - f) * share;
      for (long j = 0; j < sub; j++) {
        const double fm = f + 0.5*df, fb = f + df;
        const double v1 = acceleration(x, y, f, p), x2 = y + h2*v1;
        const double v2 = acceleration(x + h2*y, x2, fm, p), x3 = y + h2*v2;
        const double v3 = acceleration(x + h2*x2, x3, fm, p), x4 = y + h*v3;
        const double v4 = acceleration(x + h*x3, x4, fb, p);
        x += h6*(y + 2*(x2 + x3) + x4);
        y += h6*(v1 + 2*(v2 + v3) + v4);
        f = fb;
      }
      a[r] = x, v[r] = y;
    }
    if (k + 1 == next) {
      for (int r = 0; r < LANES; r++) out[r*width + row] = a[r];
      next += every, row++;
    }
  }
}
"""
_pointer = np.ctypeslib.ndpointer(np.float64, flags="C")


class HandWritten:
    """The function above for ``lanes`` realizations side by side."""

    def __init__(self, flag: str = "-O2", lanes: int = 1) -> None:
        self.label, self.lanes = f"hand-written C, RK4 on the angle ({flag}, {lanes} at a time)", lanes
        begin = time.perf_counter()
        folder = Path(tempfile.mkdtemp(prefix="hand-written-"))
        (folder / "angle.c").write_text(SOURCE)
        command = ["cc", flag, f"-DLANES={lanes}", "-shared", "-fPIC", "-o", "angle.so", "angle.c", "-lm"]
        subprocess.run(command, check=True, cwd=folder)
        self.function = ctypes.CDLL(str(folder / "angle.so")).angle_rk4
        self.function.argtypes = [ctypes.c_long, ctypes.c_double, ctypes.c_long, ctypes.c_long, *([_pointer] * 4)]
        self.function.restype = None
        self.build = time.perf_counter() - begin

    def run(self, study: Study, substeps: int = 1) -> np.ndarray:
        """Angles of all realizations; what is over after the last full set of lanes is left out."""
        cells, p = len(study.t) - 1, np.array([1 / (M * L), G / L, K * L / M])
        out = np.empty((len(study.w) // self.lanes * self.lanes, cells // EVERY + 1))
        for r in range(0, len(out), self.lanes):
            rows = slice(r, r + self.lanes)
            self.function(cells, GRID, substeps, EVERY, study.u, study.w[rows], p, out[rows])
        return out


def fastest(study: Study) -> HandWritten:
    """The quickest of the four builds on this machine, per realization."""
    builds = [HandWritten(flag, lanes) for flag in ("-O2", "-O3") for lanes in (1, 4)]
    return min(builds, key=lambda build: _each(build, study))


def _each(build: HandWritten, study: Study) -> float:
    seconds, answer = best_of(lambda: build.run(study), 0.5)
    return seconds / len(answer) if len(answer) else np.inf
