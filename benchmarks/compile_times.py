"""What the compiler does for one model: a run, then fits by one estimator after the other, from an empty cache.

Each model is a process of its own. Printed are the compiler's processor seconds, the seconds that it was waited for,
and how often it was called. A run and the fits that follow it share integrators; a fit that has more to compile than
its own formulas would show here.

    python benchmarks/compile_times.py                 # all models and estimators: minutes
    python benchmarks/compile_times.py --models oscillator pendulum --estimators OutputError
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import grisaille as gr
from grisaille import atan2, der
from grisaille.compilation import compiler

ESTIMATORS = ("OutputError", "SimulatedPEM", "KalmanML", "Collocation")
TOO_LARGE = {"rod 300": ("KalmanML", "Collocation")}
"""Full covariances, or thousands of unknowns: not a matter of the compiler."""


class Oscillator(gr.Model):
    k, d = gr.Parameter(4.0, bounds=(1.0, 9.0)), gr.Parameter(0.3, bounds=(0.0, 2.0))
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    y = gr.Output(x, noise=0.02)
    equations = [der(x) == v, der(v) == -k * x - d * v + w]


class Pendulum(gr.Model):
    """Cartesian, index 3."""

    m, g, L = gr.Parameter(0.3), gr.Parameter(9.81), gr.Parameter(2.0)
    k = gr.Parameter(0.4, bounds=(0.01, 4.0))
    x, y = gr.Variable(start=1.0), gr.Variable(start=-(3.0**0.5))
    vx, vy = gr.Variable(start=0.0), gr.Variable(start=0.0)
    tension = gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.4)
    phi = gr.Output(atan2(x, -y), noise=0.02)
    equations = [
        der(x) == vx,
        der(y) == vy,
        m * der(vx) == tension * x - k * vx + w,
        m * der(vy) == tension * y - k * vy - m * g,
        x**2 + y**2 == L**2,
    ]


def rod(n: int) -> gr.Model:
    """Heat along a rod of n cells."""

    class Rod(gr.Model):
        k = gr.Parameter(1.0, bounds=(0.1, 10.0))
        T = gr.Variable(start=0.0, size=n)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=20.0), scale=0.1)
        y = gr.Output(T[n // 2], noise=0.01)

        def equations(self) -> list[object]:
            ends = [1.0 + self.w, *(self.T[i] for i in range(n)), self.T[n - 1]]
            return [der(self.T[i]) == self.k * n**2 * (ends[i] - 2 * ends[i + 1] + ends[i + 2]) for i in range(n)]

    return Rod()


MODELS: dict[str, tuple[Callable[[], gr.Model], float]] = {
    "oscillator": (Oscillator, 6.0),
    "pendulum": (Pendulum, 6.0),
    "rod 20": (lambda: rod(20), 0.5),
    "rod 300": (lambda: rod(300), 0.5),
}


class Watch:
    """Seconds and calls of the compiler."""

    def __init__(self) -> None:
        self.stretches: list[tuple[float, float]] = []
        made = compiler.Compiler._made

        def watched(*arguments: object) -> bytes:
            begin = time.perf_counter()
            try:
                return made(*arguments)  # type: ignore[arg-type]
            finally:
                self.stretches.append((begin, time.perf_counter()))

        compiler.Compiler._made = watched  # type: ignore[method-assign, assignment]

    @contextmanager
    def counted(self, found: dict[str, list[float]], name: str) -> Iterator[None]:
        self.stretches.clear()
        before, begin = os.times(), time.perf_counter()
        yield
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        found[name] = [spent, self._waited(), len(self.stretches), time.perf_counter() - begin]

    def _waited(self) -> float:
        """Seconds in which at least one compiler ran."""
        total, last = 0.0, 0.0
        for begin, end in sorted(self.stretches):
            total += max(end - max(begin, last), 0.0)
            last = max(last, end)
        return total


def one_model(name: str, estimators: list[str]) -> dict[str, list[float]]:
    """Step → processor seconds of the compiler, seconds waited for it, its calls, seconds in all."""
    make, end = MODELS[name]
    watch, found, times = Watch(), dict[str, list[float]](), np.linspace(0.0, end, 31)
    with watch.counted(found, "simulate"):
        run = gr.simulate(make(), times)
    output = "phi" if name == "pendulum" else "y"
    noise = 0.02 * np.random.default_rng(1).standard_normal(times.size)
    record = gr.Experiment(times, {}, {output: run[output].values + noise})
    for each in estimators:
        if each in TOO_LARGE.get(name, ()):
            continue
        method = gr.SimulatedPEM(realizations=20) if each == "SimulatedPEM" else getattr(gr, each)()
        with watch.counted(found, each):
            gr.fit(make(), record, ["k"], method, progress=False)
    return found


def in_a_process(name: str, estimators: list[str]) -> dict[str, list[float]]:
    package = str(Path(gr.__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory(prefix="compile-times-") as folder:
        environment = {**os.environ, "PYTHONPATH": package, "GRISAILLE_CACHE": folder}
        command = [sys.executable, __file__, "--one", name, "--estimators", *estimators]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_model(given.one, given.estimators)))
        return
    steps = ["simulate", *given.estimators]
    print("processor seconds of the compiler / seconds waited for it (calls)\n")
    print(f"| model | {' | '.join(steps)} |\n| --- |{' ---: |' * len(steps)}")
    for name in given.models:
        found = in_a_process(name, given.estimators)
        cells = [f"{f[0]:.2f} / {f[1]:.2f} ({f[2]:.0f})" if (f := found.get(s)) else "–" for s in steps]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
