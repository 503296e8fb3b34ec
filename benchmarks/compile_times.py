"""What the compiler does for one model: a run, then fits by one estimator after the other, from an empty cache.

Each model is a process of its own. Printed are the compiler's processor seconds, the seconds that it was waited for,
and how often it was called. A run and the fits that follow it share integrators; a fit that has more to compile than
its own formulas would show here.

With ``--first`` the processor seconds of a process, compilers included, from its start to the first trajectory: from an
empty cache, from one with the integrators in it, as after ``grisaille warm-up``, and again, each with the compiler's
share.

With ``--processor`` the processor seconds, compilers included, of a process until its first trajectory, and of a first
fit by one estimator after the other: beside what ``grisaille warm-up`` builds (cold), and again (warm).

    python benchmarks/compile_times.py                 # all models and estimators: minutes
    python benchmarks/compile_times.py --integrators   # the same beside integrators that are there already
    python benchmarks/compile_times.py --models oscillator pendulum --estimators OutputError
    python benchmarks/compile_times.py --first
    python benchmarks/compile_times.py --processor
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import atan2, der, exp, sign, where
from grisaille.compilation import compiler, shared_library

ESTIMATORS = ("OutputError", "SimulatedPEM", "KalmanML", "Collocation")
LEFT_OUT = {
    "rod 300": ("KalmanML", "Collocation"),
    "friction": ("SimulatedPEM", "KalmanML", "Collocation"),
    "thermostat": ("SimulatedPEM", "KalmanML", "Collocation"),
    "ball": ("SimulatedPEM", "KalmanML", "Collocation"),
}
"""Full covariances, or thousands of unknowns: not a matter of the compiler; and what has no disturbance."""


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


class Tanks(gr.Model):
    """Flows solved by iteration."""

    k, m = gr.Parameter(2.0, bounds=(0.2, 20.0)), gr.Parameter(0.3)
    a, b, q = gr.Variable(start=1.0), gr.Variable(start=0.5), gr.Variable()
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.1)
    y = gr.Output(b, noise=0.01)
    equations = [der(a) == w - q, der(b) == q - m * b, q + 0.1 * q**3 == k * (a - b)]


class Reactor(gr.Model):
    k, E = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(2.0)
    c, T = gr.Variable(start=1.0), gr.Variable(start=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.05)
    y = gr.Output(T, noise=0.01)
    equations = [der(c) == 1.0 - c - k * c * exp(-E / T), der(T) == 1.0 - T + 2.0 * k * c * exp(-E / T) + w]


class Lynx(gr.Model):
    k, b = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(0.8)
    hare, lynx = gr.Variable(start=1.0), gr.Variable(start=0.5)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.05)
    y = gr.Output(hare, noise=0.02)
    equations = [der(hare) == hare * (k - lynx + w), der(lynx) == lynx * (hare - b)]


class Motor(gr.Model):
    k, R, J = gr.Parameter(0.5, bounds=(0.1, 5.0)), gr.Parameter(1.0), gr.Parameter(0.1)
    i, speed, angle = gr.Variable(start=0.0), gr.Variable(start=1.0), gr.Variable(start=0.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=2.0), scale=0.1)
    y = gr.Output(angle, noise=0.01)
    equations = [
        0.05 * der(i) == 1.0 - R * i - k * speed,
        J * der(speed) == k * i - 0.02 * speed + w,
        der(angle) == speed,
    ]


class Friction(gr.Model):
    """Slides and sticks."""

    k, m = gr.Parameter(1.0, bounds=(0.1, 10.0)), gr.Parameter(0.3)
    x, v = gr.Variable(start=1.0), gr.Variable(start=0.0)
    y = gr.Output(x, noise=0.01)
    equations = [der(x) == v, der(v) == -k * x - m * sign(v)]


class Thermostat(gr.Model):
    """Switches between two rates."""

    k, m = gr.Parameter(0.5, bounds=(0.1, 2.0)), gr.Parameter(18.0)
    T = gr.Variable(start=20.0)
    y = gr.Output(T, noise=0.05)
    equations = [der(T) == -k * (T - 10.0) + where(T < m, 8.0, 0.0)]


class Ball(gr.Model):
    """Bounces: clauses of events."""

    k, g = gr.Parameter(0.8, bounds=(0.1, 1.0)), gr.Parameter(9.81)
    h, v, bounces = gr.Variable(start=8.0), gr.Variable(start=0.0), gr.Discrete(0)
    y = gr.Output(h, noise=0.02)
    equations = [
        der(h) == v,
        der(v) == -g,
        gr.when(h < 0, gr.reinit(v, -k * gr.pre(v)), bounces == gr.pre(bounces) + 1),
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
    "tanks": (Tanks, 6.0),
    "reactor": (Reactor, 6.0),
    "lynx": (Lynx, 6.0),
    "motor": (Motor, 6.0),
    "friction": (Friction, 6.0),
    "thermostat": (Thermostat, 6.0),
    "ball": (Ball, 6.0),
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
        own = after.user + after.system - before.user - before.system
        found[name] = [spent, self._waited(), len(self.stretches), time.perf_counter() - begin, own + spent]

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
    so_far = os.times()
    found["first trajectory"] = [so_far.user + so_far.system + so_far.children_user + so_far.children_system]
    output = "phi" if name == "pendulum" else "y"
    noise = 0.02 * np.random.default_rng(1).standard_normal(times.size)
    record = gr.Experiment(times, {}, {output: run[output].values + noise})
    for each in estimators:
        if each in LEFT_OUT.get(name, ()):
            continue
        method = gr.SimulatedPEM(realizations=20) if each == "SimulatedPEM" else getattr(gr, each)()
        with watch.counted(found, each):
            gr.fit(make(), record, ["k"], method, progress=False)
    return found


def in_a_process(name: str, words: list[str], folder: str) -> Any:
    command = [sys.executable, __file__, "--one", name, *words]
    done = subprocess.run(command, env=_environment(folder), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _environment(folder: str) -> dict[str, str]:
    package = str(Path(gr.__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": package, "GRISAILLE_CACHE": folder}


def first_trajectory(name: str) -> list[float]:
    """Processor seconds of this process so far, with a trajectory at the end, and the compiler's share."""
    make, end = MODELS[name]
    gr.simulate(make(), np.linspace(0.0, end, 31))
    spent = os.times()
    compiling = spent.children_user + spent.children_system
    return [spent.user + spent.system + compiling, compiling]


@contextmanager
def cache_folder(name: str = "") -> Iterator[str]:
    """An empty cache, or one with the integrators of a model and nothing else of it."""
    with tempfile.TemporaryDirectory(prefix="compile-times-") as folder:
        if name:
            in_a_process(name, ["--prepare", "--estimators", "OutputError"], folder)
        yield folder


def prepare(name: str, estimators: list[str]) -> None:
    """Leaves in the cache only what serves other models, too."""
    built, kept = shared_library._object, set[str]()

    def watched(found: compiler.Compiler, source: shared_library.CSource) -> bytes:
        if source.shared or source.once:
            kept.add(shared_library._what([source])[:40])
        return built(found, source)

    shared_library._object = watched
    one_model(name, estimators)
    for entry in Path(os.environ["GRISAILLE_CACHE"]).iterdir():
        if entry.suffix != compiler.OBJECT_SUFFIX or entry.name[:40] not in kept:
            entry.unlink()


def print_processor(models: list[str], estimators: list[str], rounds: int) -> None:
    """The least of some rounds of each step, cold and warm."""
    steps = ["first trajectory", *estimators]
    print("processor seconds, compilers included: cold / warm\n")
    print(f"| model | {' | '.join(steps)} |\n| --- |{' ---: |' * len(steps)}")
    words = ["--processor", "--estimators", *estimators]
    with tempfile.TemporaryDirectory(prefix="compile-times-") as shared:
        subprocess.run(  # versions without the command have nothing to build
            [sys.executable, "-m", "grisaille", "warm-up"], env=_environment(shared), check=False, capture_output=True
        )
        for name in models:
            found: dict[tuple[str, bool], list[float]] = {}
            for _ in range(rounds):
                with tempfile.TemporaryDirectory(prefix="compile-times-") as folder:
                    shutil.copytree(shared, folder, dirs_exist_ok=True)
                    for is_warm in (False, True):
                        for step, seconds in in_a_process(name, words, folder).items():
                            found.setdefault((step, is_warm), []).append(seconds[-1])
            cells = [
                f"{min(found[step, False]):.2f} / {min(found[step, True]):.2f}" if (step, True) in found else "–"
                for step in steps
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_first(models: list[str], rounds: int) -> None:
    """The best of some rounds; other work on the machine can only make it longer."""
    columns = ("empty cache", "integrators there", "again")
    print("processor seconds of a process to its first trajectory (the compiler's)\n")
    print(f"| model | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for name in models:
        found: dict[str, list[list[float]]] = {column: [] for column in columns}
        for _ in range(rounds):
            with cache_folder() as folder:
                found[columns[0]].append(in_a_process(name, ["--first"], folder))
            with cache_folder(name) as folder:
                found[columns[1]].append(in_a_process(name, ["--first"], folder))
                found[columns[2]].append(in_a_process(name, ["--first"], folder))
        cells = [f"{min(found[c])[0]:.2f} ({min(found[c])[1]:.2f})" for c in columns]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--estimators", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS))
    parser.add_argument("--first", action="store_true", help="processor time to the first trajectory")
    parser.add_argument("--processor", action="store_true", help="processor time of first runs and first fits")
    parser.add_argument("--integrators", action="store_true", help="beside what grisaille warm-up builds")
    parser.add_argument("--rounds", type=int, default=3, help="of --first and --processor")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--prepare", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        if given.prepare:
            print(json.dumps(prepare(given.one, given.estimators)))
        else:
            print(json.dumps(first_trajectory(given.one) if given.first else one_model(given.one, given.estimators)))
        return
    if given.first:
        print_first(given.models, given.rounds)
        return
    if given.processor:
        print_processor(given.models, given.estimators, given.rounds)
        return
    steps = ["simulate", *given.estimators]
    print("processor seconds of the compiler / seconds waited for it (calls)\n")
    print(f"| model | {' | '.join(steps)} |\n| --- |{' ---: |' * len(steps)}")
    for name in given.models:
        with cache_folder(name if given.integrators else "") as folder:
            found = in_a_process(name, ["--estimators", *given.estimators], folder)
        cells = [f"{f[0]:.2f} / {f[1]:.2f} ({f[2]:.0f})" if (f := found.get(s)) else "–" for s in steps]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
