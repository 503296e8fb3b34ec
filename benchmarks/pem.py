"""One evaluation of the simulated prediction error criterion, against IDA through scikit-sundae in a process pool.

The pendulum of ``grisaille reproduce abdalmoaty/fig1`` with the settings of the published program, 5 000 samples of
0.1 s, 100 realizations, disturbances on a grid of 0.01 s: python benchmarks/pem.py [--realizations 4] [--samples 500]

Ours draws the disturbances, averages, and gives mean and variance of the output. IDA gets the disturbances as arrays,
and its residual in Python or compiled by numba, at the program's tolerances, 1e-5 and 1e-8, and at those of the other
benchmarks. It solves a few realizations of the first samples, and its time is scaled to all of them. Processor time of
all processes counts, because the machine may be shared; what the pool and the compilation take is left out of IDA's.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from grisaille.bound_experiment import BoundExperiment, EstimatedQuantities
from grisaille.disturbance import build_process, sample_path
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_runner import EnsembleRunner
from grisaille_reproductions.abdalmoaty import PROGRAM, SHAPE, SPACING, times

SAMPLES, REALIZATIONS = 5000, 100
M, G, K, L = 0.3, 9.81, 6.25, 6.25
TOLERANCES = ((1e-5, 1e-8), (1e-6, 1e-9))
"""Relative and absolute."""
ROUNDS = 5


class Ours:
    """Mean and variance of φ, with or without the derivative by k."""

    def __init__(self, samples: int = SAMPLES, realizations: int = REALIZATIONS) -> None:
        options = EnsembleOptions(realizations, seed=1, step=SPACING, rtol=1e-4)
        moves = EstimatedQuantities.named(["k"])
        trial = BoundExperiment(
            PROGRAM.model(), times(samples), moves=moves, inputs=PROGRAM.inputs(samples), hold="foh"
        )
        runner = EnsembleRunner(trial, ["phi"], options)
        self.runner = runner.on(runner.discretise(np.array([K])))
        self.y = np.zeros(samples + 1)

    def criterion(self, sensitive: bool) -> float:
        found = self.runner.predict(np.array([K]), sensitive=sensitive)
        e = self.y - found.mean[:, 0]
        return float(e @ e - found.variance.sum() / self.runner.options.realizations)


def residual(u: np.ndarray, w: np.ndarray, compiled: bool) -> Callable[..., None]:
    """The stabilised index-1 form: x, y, vx, vy, and multipliers as derivatives of dummy states."""

    def compute(t: float, s: np.ndarray, sp: np.ndarray, r: np.ndarray, u: np.ndarray, w: np.ndarray) -> None:
        k = min(int(t / SPACING), len(u) - 2)
        a = t / SPACING - k
        d = w[k] + (w[k + 1] - w[k]) * a
        f = u[k] + (u[k + 1] - u[k]) * a + d * d
        x, y, vx, vy, T, mu = s[0], s[1], s[2], s[3], sp[4], sp[5]
        r[0] = sp[0] - vx + x * mu
        r[1] = sp[1] - vy + y * mu
        r[2] = M * sp[2] - T * x + K * abs(vx) * vx - f
        r[3] = M * sp[3] - T * y + K * abs(vy) * vy + M * G
        r[4] = x * x + y * y - L * L
        r[5] = x * vx + y * vy

    core = compute
    if compiled:
        import numba

        core = numba.njit(compute)
        core(0.0, np.zeros(6), np.zeros(6), np.zeros(6), u, w)
    return lambda t, s, sp, r: core(t, s, sp, r, u, w)


def solve_with_ida(samples: int, number: int, compiled: bool, tolerance: tuple[float, float]) -> float:
    """Processor seconds of one realization without its preparation."""
    from sksundae import ida

    t, u = PROGRAM.inputs(samples)["u"]
    process = build_process(["w"], [SHAPE], [PROGRAM.disturbance_scale])
    w = sample_path(process, t, 5, realizations=number + 1)[number] @ process.C[0]
    rtol, atol = tolerance
    solver = ida.IDA(residual(u, w, compiled), rtol=rtol, atol=atol, max_num_steps=1_000_000)
    start, slopes = np.array([0.0, -L, 0.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.0, -M * G / L, 0.0])
    solver.solve(times(2), start, slopes)  # compiles
    begin = time.process_time()
    answer = solver.solve(times(samples), start, slopes)
    np.arctan2(answer.y[:, 0], -answer.y[:, 1])
    return time.process_time() - begin


def measure(function: Callable[[], object]) -> float:
    """Least processor time of a call in seconds, threads included."""
    found = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        function()
        found.append(time.process_time() - begin)
    return min(found)


def measure_ida(samples: int, realizations: int, compiled: bool, tolerance: tuple[float, float]) -> float:
    """Processor time of all realizations and samples, scaled from those that are solved."""
    solve = partial(solve_with_ida, samples, compiled=compiled, tolerance=tolerance)
    with ProcessPoolExecutor() as pool:
        spent = sum(pool.map(solve, range(realizations)))
    return SAMPLES / samples * REALIZATIONS / realizations * spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--realizations", type=int, default=2 * (os.cpu_count() or 1), help="that IDA solves")
    parser.add_argument("--samples", type=int, default=500, help="that IDA solves")
    options = parser.parse_args()
    ours = Ours()
    for sensitive in (False, True):
        ours.criterion(sensitive)
    plain, with_slope = (measure(partial(ours.criterion, s)) for s in (False, True))
    rows = {"ours, criterion": plain, "ours, criterion and its slope by k": with_slope}
    for rtol, atol in TOLERANCES:
        for how, compiled in (("in Python", False), ("compiled", True)):
            label = f"IDA at {rtol:.0e}, residual {how}"
            try:
                rows[label] = measure_ida(options.samples, options.realizations, compiled, (rtol, atol))
            except ImportError as missing:
                print(f"{label}: left out, {missing.name} is not installed")
    for label, seconds in rows.items():
        print(f"{label:37} {seconds:10.3f} s processor time, {seconds / plain:8.2f} times ours")


if __name__ == "__main__":
    main()
