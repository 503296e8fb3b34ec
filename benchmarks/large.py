"""Large models: how long they take to build, how long a step takes, how much memory they need; with exponents."""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np
from large_models import MODELS, digits, medical_akzo
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

import grisaille as gr
from grisaille.compilation import kernel
from grisaille.compilation.integrators import CompiledIntegrator
from grisaille.compilation.task import Task

EPILOG = """
Times are processor times, each size in a process of its own: 'build' is everything before the first step (structure,
derivatives, C text), 'compiler' the C compiler, 'step' the compiled integrator's time per step of an implicit run to
t = 0.1 with 11 rows, at rtol 1e-6, the quickest of seven. Exponents compare neighbouring sizes. --akzo compares Medical
Akzo Nobel with CVODE's banded solver and KLU (Debian: apt-get install libsundials-dev).
"""

REPEATS = 7
"""Runs of which the quickest counts: another program on the same cache makes others slower."""


class Clock:
    """Adds up the time inside compiled integrators."""

    def __init__(self) -> None:
        self.seconds = 0.0
        run = kernel._run

        def timed(integrator: CompiledIntegrator, task: Task) -> None:
            begin = time.thread_time()
            run(integrator, task)
            self.seconds += time.thread_time() - begin

        kernel._run = timed


def measure(kind: str, n: int) -> dict[str, float]:
    """One model of one size."""
    clock, times = Clock(), np.linspace(0.0, 0.1, 11)
    begin, child = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    model = MODELS[kind](n)
    gr.simulate(model, times, method="implicit")
    build = time.process_time() - begin - clock.seconds
    compiler = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - child
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    inside, whole = math.inf, math.inf
    for _ in range(REPEATS):
        clock.seconds = 0.0
        begin = time.process_time()
        run = gr.simulate(model, times, method="implicit")
        whole = min(whole, time.process_time() - begin)
        inside = min(inside, clock.seconds)
    step = inside / (run.attrs["steps"] + run.attrs["rejected_steps"])
    return {"n": n, "build": build, "compiler": compiler, "steps": run.attrs["steps"], "step": step, "run": whole,
            "memory": memory}  # fmt: skip


def table(sizes: list[int]) -> Table:
    found = Table(box=MARKDOWN)
    for name in ("model", "states", "build, s", "exponent", "compiler, s", "steps", "time per step, µs", "exponent",
                 "run again, s", "memory, MB"):  # fmt: skip
        found.add_column(name, justify="left" if name == "model" else "right")
    for kind in MODELS:
        before: dict[str, float] | None = None
        for n in sizes:
            command = [sys.executable, __file__, "--one", kind, str(n)]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            powers = ["", ""]
            if before is not None:
                growth = math.log(row["n"] / before["n"])
                powers = [f"{math.log(row[k] / before[k]) / growth:.2f}" for k in ("build", "step")]
            found.add_row(
                kind, str(n), f"{row['build']:.1f}", powers[0], f"{row['compiler']:.1f}", f"{row['steps']:.0f}",
                f"{1e6 * row['step']:.0f}", powers[1], f"{row['run']:.3f}", f"{row['memory']:.0f}",
            )  # fmt: skip
            before = row
    return found


def akzo(rtol: float, atol: float, repeats: int = 10) -> Table:
    """Medical Akzo Nobel, best of some runs."""
    from sundials_sparse import Cvode

    clock, model, best = Clock(), medical_akzo(), math.inf
    for _ in range(repeats + 1):
        clock.seconds = 0.0
        run = gr.simulate(model, [0.0, 20.0], rtol=rtol, atol=atol)
        best = min(best, clock.seconds)
    found = Table("solver", "ms", "times ours", "steps", "digits", box=MARKDOWN)
    found.add_row("ours", f"{1e3 * best:.1f}", "1", str(run.attrs["steps"]), f"{digits(run):.1f}")
    cvode = Cvode()
    for klu in (False, True) if cvode.has_klu else (False,):
        seconds, good, counts = min((cvode.solve(rtol, atol, klu) for _ in range(repeats)), key=lambda r: r[0])
        name = "CVODE, KLU" if klu else "CVODE, banded"
        found.add_row(name, f"{1e3 * seconds:.1f}", f"{seconds / best:.2f}", str(counts[0]), f"{good:.1f}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog=EPILOG)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--akzo", action="store_true", help="Medical Akzo Nobel beside CVODE instead")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one[0], int(given.one[1]))))
        return
    Console(width=160).print(akzo(1e-7, 1e-10) if given.akzo else table(given.sizes))


if __name__ == "__main__":
    main()
