"""Ensembles of the disturbed pendulum: nanoseconds per step and realization, against C written by hand.

500 realizations over 5 000 s on a grid of 0.01 s, mean only: python benchmarks/ensemble.py [--size 0.02] [--memory]

The generated code steps the index-3 model in Cartesian coordinates with projection, draws Philox normals and steps the
disturbance filter on the way, and averages all eight quantities. The hand-written kernel steps the angle form, with its
own Philox, Box–Muller by the C library, the same filter, and averages the angle only. ``--size`` scales the time span.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille.disturbance import build_process, factorize, make_transitions

SPAN, GRID, EVERY, REALIZATIONS = 5_000.0, 0.01, 10, 500
M, G, K, L = 0.3, 9.81, 6.25, 6.25


class Pendulum(gr.Model):
    """The index-3 pendulum of the study: u known, w² pushing."""

    m, g, k, L = gr.Parameter(M), gr.Parameter(G), gr.Parameter(K), gr.Parameter(L)
    x, y = gr.Variable(0.0), gr.Variable(-L)
    vx, vy = gr.Variable(0.0), gr.Variable(0.0)
    tension = gr.Variable()
    u = gr.Input("N")
    w = gr.Disturbance(gr.spectra.resonance(frequency=4.0, damping=0.1), scale=0.6)
    phi = gr.Output(atan2(x, -y))
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * abs(vx) * vx + u + w**2,
        m * der(vy) == tension * y - k * abs(vy) * vy - m * g,
        x**2 + y**2 == L**2,
    ]


HAND_WRITTEN = r"""
#include <math.h>
#include <stdint.h>
static void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
  for (int i = 0; i < 10; i++) {
    const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
    c[3] = (uint32_t)a;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
}
static void normals(uint32_t step, uint32_t m, double *z0, double *z1) {
  uint32_t c[4] = {step, 0, m, 0};
  philox(c, 12345u, 67890u);
  const double a = (((uint64_t)c[1] << 20 | c[0] >> 12) + 0.5) * 0x1p-52;
  const double b = (((uint64_t)c[3] << 20 | c[2] >> 12) + 0.5) * 0x1p-52;
  const double r = sqrt(-2 * log(a));
  *z0 = r * cos(6.283185307179586 * b);
  *z1 = r * sin(6.283185307179586 * b);
}
/* mg = m g, r = 1 / (m L) */
static inline double acc(double a, double w, double f, double mg, double r, double k, double L) {
  const double s = sin(a), c = cos(a), vx = L * w * c, vy = L * w * s;
  return ((f - k * fabs(vx) * vx) * c - (k * fabs(vy) * vy + mg) * s) * r;
}
/* p: m, g, k, L; q: F (4), chol Q (3), start (2), scale */
void ensemble(long realizations, long cells, double h, long every, const double *u, const double *p, const double *q,
              double *mean) {
  const double mg = p[0] * p[1], k = p[2], L = p[3], inverse = 1 / (p[0] * p[3]);
  for (long r = 0; r < realizations; r++) {
    double a = 0, v = 0, z0, z1, w0, w1, d;
    normals(0, (uint32_t)r, &z0, &z1);
    w0 = q[7] * z0, w1 = q[8] * z1, d = q[9] * w0;
    for (long i = 0; i < cells; i++) {
      if (i % every == 0) mean[i / every] += (a - mean[i / every]) / (double)(r + 1);
      normals((uint32_t)(i + 1), (uint32_t)r, &z0, &z1);
      const double n0 = q[0] * w0 + q[1] * w1 + q[4] * z0, n1 = q[2] * w0 + q[3] * w1 + q[5] * z0 + q[6] * z1;
      const double next = q[9] * n0, wm = 0.5 * (d + next);
      const double fa = u[i] + d * d, fm = 0.5 * (u[i] + u[i + 1]) + wm * wm, fb = u[i + 1] + next * next;
      w0 = n0, w1 = n1, d = next;
      const double v1 = acc(a, v, fa, mg, inverse, k, L);
      const double a2 = v + 0.5 * h * v1, v2 = acc(a + 0.5 * h * v, a2, fm, mg, inverse, k, L);
      const double a3 = v + 0.5 * h * v2, v3 = acc(a + 0.5 * h * a2, a3, fm, mg, inverse, k, L);
      const double a4 = v + h * v3, v4 = acc(a + h * a3, a4, fb, mg, inverse, k, L);
      a += h / 6 * (v + 2 * a2 + 2 * a3 + a4);
      v += h / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
    }
    mean[cells / every] += (a - mean[cells / every]) / (double)(r + 1);
  }
}
"""


def filter_numbers() -> np.ndarray:
    process = build_process(["w"], [gr.spectra.resonance(frequency=4.0, damping=0.1)], [0.6])
    steps, start = make_transitions(process, [0.0, GRID]), factorize(process.start_covariance())
    F, Q = steps.F[0], steps.L[0]
    return np.array([*F.ravel(), Q[0, 0], Q[1, 0], Q[1, 1], start[0, 0], start[1, 1], process.C[0, 0]])


class HandWritten:
    def __init__(self, flag: str) -> None:
        folder = Path(tempfile.mkdtemp(prefix="hand-written-"))
        (folder / "e.c").write_text(HAND_WRITTEN)
        subprocess.run(
            ["cc", flag, "-shared", "-fPIC", "-o", str(folder / "e.so"), str(folder / "e.c"), "-lm"], check=True
        )
        pointer = np.ctypeslib.ndpointer(np.float64, flags="C")
        self.function = ctypes.CDLL(str(folder / "e.so")).ensemble
        long, double = ctypes.c_long, ctypes.c_double
        self.function.argtypes = [long, long, double, long, pointer, pointer, pointer, pointer]

    def run(self, realizations: int, u: np.ndarray) -> np.ndarray:
        mean = np.zeros((u.size - 1) // EVERY + 1)
        self.function(realizations, u.size - 1, GRID, EVERY, u, np.array([M, G, K, L]), filter_numbers(), mean)
        return mean


def known_input(cells: int) -> np.ndarray:
    """One fixed path, independent of the disturbance."""
    from grisaille.disturbance import sample_path

    process = build_process(["u"], [gr.spectra.resonance(frequency=4.0, damping=0.1)], [0.2])
    return np.ascontiguousarray(sample_path(process, np.arange(cells + 1) * GRID, 99)[0] @ process.C[0])


def simulate(realizations: int, u: np.ndarray, threads: int, **options: object) -> np.ndarray:
    grid = np.arange(u.size) * GRID
    run = gr.simulate(
        Pendulum(), grid[::EVERY], {"u": (grid, u)}, hold="foh", realizations=realizations, seed=1, reduce="mean",
        step=GRID, rtol=1e-3, threads=threads, **options,
    )  # fmt: skip
    assert run.attrs["substeps"] == 1, run.attrs
    return run.phi.values


def compare(size: float, realizations: int) -> None:
    u = known_input(round(SPAN * size / GRID / EVERY) * EVERY)
    simulate(2, u[: 10 * EVERY + 1], 1)
    runs: dict[str, Callable[[], np.ndarray]] = {}
    for flag in ("-O2", "-O3"):
        runs[f"written by hand, {flag}"] = partial(HandWritten(flag).run, realizations, u)
    for threads in (1, 2):
        runs[f"grisaille, {threads} thread(s)"] = partial(simulate, realizations, u, threads)
    found = {name: _timed(run) for name, run in runs.items()}
    hand = min(found[name][1] for name in found if "hand" in name)
    print(f"{realizations} realizations, {u.size - 1} cells, one step each; times of grisaille include its pilot")
    for name, (wall, processor, _) in found.items():
        each = 1e9 * processor / ((u.size - 1) * realizations)
        print(
            f"{name:24s} {wall:7.2f} s   {processor:7.2f} s of processor time, {each:6.1f} ns a step and realization, "
            f"{processor / hand:5.2f} of the best by hand"
        )
    (one, _, ours), (two, _, _) = found["grisaille, 1 thread(s)"], found["grisaille, 2 thread(s)"]
    print(f"two threads: {one / two:.2f} times as fast (needs two idle processors)")
    half, theirs = slice(len(ours) // 2, None), found["written by hand, -O2"][2]
    print(f"mean angle of the second half: {ours[half].mean():.6f}, by hand {theirs[half].mean():.6f} (other numbers)")


def _timed(run: Callable[[], np.ndarray]) -> tuple[float, float, np.ndarray]:
    """Best wall and processor time of a few rounds, and the answer."""
    rounds = []
    while len(rounds) < 3 or (sum(r[0] for r in rounds) < 1.0):
        wall, processor = time.perf_counter(), time.process_time()
        answer = run()
        rounds.append((time.perf_counter() - wall, time.process_time() - processor))
    return min(r[0] for r in rounds), min(r[1] for r in rounds), answer


def memory(size: float) -> None:
    """Peak memory of processes that differ in the number of realizations only."""
    for count in (100, 500, 2000):
        code = (
            "import resource, sys; sys.path.insert(0, sys.argv[1]); import ensemble as e; "
            f"e.simulate({count}, e.known_input({round(SPAN * size / GRID / EVERY) * EVERY}), 1); "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        here = str(Path(__file__).parent)
        done = subprocess.run([sys.executable, "-c", code, here], capture_output=True, text=True, check=True)
        print(f"{count:6d} realizations: {int(done.stdout) / 1024:8.1f} MB at most")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="part of the 5 000 s")
    parser.add_argument("--realizations", type=int, default=REALIZATIONS)
    parser.add_argument(
        "--memory", action="store_true", help="measure memory against the number of realizations instead"
    )
    given = parser.parse_args()
    memory(given.size) if given.memory else compare(given.size, given.realizations)
