"""Simulation speed on the pendulum study against other solvers, as ratios in one run."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from cold_start import measure_cold_start
from hand_written import HandWritten, fastest
from peers import CasadiIdas, DiffraxTsit5, IdaCompiled, IdaPython, ScipyRadau
from pendulum_study import EVERY, Pendulum, Study, make_study
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table
from timing import best_of

import grisaille as gr
from grisaille.compilation.fused_step import build_step
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.structure_cache import structure_of

EPILOG = """
An index-3 pendulum under a known force and a disturbance, 100 s, both linear between the points of a grid of 0.01 s.
Everybody solves the same paths in the same run; the error is the largest deviation of the angle from a reference
(Runge-Kutta on the angle, 20 steps per cell). Times are the best of several rounds, wall or processor time, whichever
is less, and do not contain compilation, which is shown apart. Peers that are not installed are skipped:
pip install "grisaille[bench]".
"""


class Contestant(Protocol):
    label: str
    build: float

    def run(self, study: Study) -> np.ndarray: ...


class Ours:
    """The frozen discretisation generated from the index-3 model, all realizations in one call."""

    label = "grisaille, frozen steps on the grid"

    def __init__(self, threads: int) -> None:
        begin = time.perf_counter()
        structure = structure_of(Pendulum())
        self.p = evaluate_parameters(structure.model).values
        self.x0 = Initializer(structure).solve(0.0, np.zeros(2), self.p).x
        phi = structure.system.observed_names.index("phi")
        self.step = build_step(structure.system, observed=[phi])
        self.threads = threads
        self.build = time.perf_counter() - begin

    def run(self, study: Study) -> np.ndarray:
        result = self.step.run(self.x0, study.t, [study.u, study.w], self.p, keep=EVERY, threads=self.threads)
        return np.asarray(result.y[:, :, 0])


class OursAdaptive:
    """``gr.simulate`` as a user calls it, one realization a call, steps ending on every kink."""

    label = "grisaille, gr.simulate(rtol=1e-6)"

    def __init__(self) -> None:
        self.model = Pendulum()
        begin = time.perf_counter()
        gr.simulate(self.model, [0.0, 1.0], inputs={"u": 0.0, "w": 0.0})
        self.build = time.perf_counter() - begin

    def run(self, study: Study) -> np.ndarray:
        rows = []
        for w in study.w:
            inputs = {"u": (study.t, study.u), "w": (study.t, w)}
            rows.append(gr.simulate(self.model, study.t[::EVERY], inputs=inputs, hold="foh", rtol=1e-6).phi.values)
        return np.array(rows)


PEERS: dict[str, tuple[Callable[[], Contestant], int]] = {
    "ida": (IdaPython, 2),
    "ida-compiled": (IdaCompiled, 3),
    "casadi": (CasadiIdas, 3),
    "radau": (ScipyRadau, 1),
    "diffrax": (DiffraxTsit5, 10_000),
}
"""How to make each, and how many realizations are enough to time it."""


QUIET = (time.perf_counter, time.process_time)
"""Wall or processor time, whichever is less: neither other work on the machine nor own threads count against anyone."""


def part_of(study: Study, n: int) -> Study:
    return Study(study.t, study.u, study.w[:n])


def per_realization(
    contestant: Contestant, study: Study, seconds: float, clocks: tuple[Callable[[], float], ...] = (time.perf_counter,)
) -> tuple[float, np.ndarray]:
    warm = getattr(contestant, "warm", contestant.run)
    warm(study)
    spent, answer = best_of(lambda: contestant.run(study), seconds, clocks=clocks)
    return spent / len(answer), answer


def study_table(console: Console, study: Study, ours: Ours, names: list[str]) -> None:
    """One row per solver: its time as a multiple of ours, its error, what it took to build."""
    reference = HandWritten().run(study, substeps=20)
    everyone: list[tuple[Contestant, int, float]] = [
        (ours, 10_000, 2.0), (fastest(study), 10_000, 2.0), (OursAdaptive(), 5, 1.0),
    ]  # fmt: skip
    everyone += [(contestant, count, 0.0) for contestant, count in _installed(console, names)]
    table = Table(box=MARKDOWN)
    table.add_column("solver", no_wrap=True)
    for column in ("ms per realization", "times ours", "largest error, rad", "build, s"):
        table.add_column(column, justify="right")
    base = 0.0
    for contestant, count, seconds in everyone:
        each, answer = per_realization(contestant, part_of(study, count), seconds, QUIET)
        base = base or each
        error = np.abs(answer - reference[: len(answer)]).max()
        cells = (f"{each * 1e3:.3f}", f"{each / base:.2f}", f"{error:.1e}", f"{contestant.build:.2f}")
        table.add_row(contestant.label, *cells)
    console.print(f"Pendulum study, {study.t[-1]:g} s, {len(study.w)} realizations, one thread:")
    console.print(table)
    console.print(f"nanoseconds per step and realization: {base / (len(study.t) - 1) * 1e9:.1f}\n")


def _installed(console: Console, names: list[str]) -> list[tuple[Contestant, int]]:
    found = []
    for name in names:
        make, count = PEERS[name]
        try:
            found.append((make(), count))
        except ImportError as error:
            console.print(f"{name}: {error.name} is not installed, skipped", style="dim")
    return found


def thread_table(console: Console, study: Study, ours: Ours) -> None:
    """The same batch on one thread and on two."""
    one, _ = per_realization(ours, study, 2.0)
    two, _ = per_realization(Ours(threads=2), study, 2.0)
    console.print(f"two threads: {one / two:.2f} times as fast as one ({os.cpu_count()} processors)\n")


def cold_table(console: Console) -> None:
    cold = measure_cold_start()
    table = Table(box=MARKDOWN)
    for column in ("what", "seconds", "allowed"):
        table.add_column(column, justify="left" if column == "what" else "right")
    table.add_row("import grisaille", f"{cold.importing:.2f}", "1.00")
    table.add_row("model → first trajectory, empty cache", f"{cold.compiling:.2f}", "3.00")
    table.add_row("the same from the cache, no compiler", f"{cold.cached:.2f}", "")
    console.print("First use, in a process of its own each:")
    console.print(table)
    console.print(f"compiled again: {'yes, the cache was missed' if cold.compiled_again else 'no'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--realizations", type=int, default=48, help="disturbance paths, a multiple of 4 (default 48)")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"comma-separated, of {', '.join(PEERS)}; '' for none")
    arguments = parser.parse_args()
    names = list(filter(None, arguments.peers.split(",")))
    if unknown := set(names) - set(PEERS):
        parser.error(f"unknown peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if arguments.realizations < 4 or arguments.realizations % 4:
        parser.error("--realizations must be a positive multiple of 4 (the hand-written code takes four side by side)")
    console = Console(width=None if Console().is_terminal else 160)
    with tempfile.TemporaryDirectory(prefix="benchmark-cache-", ignore_cleanup_errors=True) as folder:
        os.environ["GRISAILLE_CACHE"] = folder
        study = make_study(arguments.realizations)
        ours = Ours(threads=1)
        study_table(console, study, ours, names)
        thread_table(console, study, ours)
        cold_table(console)


if __name__ == "__main__":
    main()
