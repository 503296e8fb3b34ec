"""Simulation speed against peers, as ratios in one run.

    python benchmarks/simulate.py [--realizations 50] [--peers ida,casadi,radau,diffrax] [--stiff]

Everybody solves the same paths on the same machine in the same run; the error is the largest deviation of the angle from
a reference (Runge–Kutta on the angle, 20 steps per cell). Time per realization is the best of several rounds; compile
time is reported apart. Peers that are not installed are skipped: ``pip install "grisaille[bench]"``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from peers import CasadiIdas, DiffraxTsit5, IdaCompiled, IdaPython, ScipyRadau
from pendulum_study import EVERY, HandWritten, Pendulum, Study, make_study
from rich.console import Console
from rich.table import Table

import grisaille as gr
from grisaille.compilation.frozen import build_step
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.prepared import structure_of


class Ours:
    """The frozen discretisation generated from the index-3 model, all realizations in one call."""

    label = "grisaille, frozen steps on the grid"

    def __init__(self, threads: int) -> None:
        begin = time.perf_counter()
        model = Pendulum()
        structure = structure_of(model)
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
        self.build = 0.0

    def run(self, study: Study) -> np.ndarray:
        rows = []
        for w in study.w:
            inputs = {"u": (study.t, study.u), "w": (study.t, w)}
            rows.append(gr.simulate(self.model, study.t[::EVERY], inputs=inputs, hold="foh", rtol=1e-6).phi.values)
        return np.array(rows)


class ByHand:
    label = "hand-written C, RK4 on the angle"

    def __init__(self) -> None:
        self.code, self.build = HandWritten(), 0.0

    def run(self, study: Study) -> np.ndarray:
        return np.array([self.code.run(study, k) for k in range(len(study.w))])


def best_of(function: Callable[[], np.ndarray], seconds: float) -> tuple[float, np.ndarray]:
    """Smallest wall time over rounds that fill about ``seconds`` (at least one round)."""
    best, spent, answer = np.inf, 0.0, np.zeros(0)
    while spent < seconds:
        begin = time.perf_counter()
        answer = function()
        best = min(best, time.perf_counter() - begin)
        spent += max(time.perf_counter() - begin, 1e-3)
    return best, answer


def first(study: Study, n: int) -> Study:
    return Study(study.t, study.u, study.w[:n])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--realizations", type=int, default=50)
    parser.add_argument("--peers", default="ida,ida-compiled,casadi,radau,diffrax")
    arguments = parser.parse_args()
    study = make_study(arguments.realizations)
    hand = HandWritten()
    reference = np.array([hand.run(study, k, 20) for k in range(len(study.w))])

    ours = Ours(threads=1)
    contestants: list[tuple[object, int, float]] = [(ours, len(study.w), 2.0), (ByHand(), len(study.w), 2.0)]
    contestants.append((OursAdaptive(), min(5, len(study.w)), 1.0))
    available = {"ida": (IdaPython, 2), "ida-compiled": (IdaCompiled, 3), "casadi": (CasadiIdas, 3),
                 "radau": (ScipyRadau, 1), "diffrax": (DiffraxTsit5, len(study.w))}  # fmt: skip
    console = Console()
    for name in filter(None, arguments.peers.split(",")):
        kind, count = available[name]
        try:
            contestants.append((kind(), min(count, len(study.w)), 0.0))
        except ImportError as error:
            console.print(f"[dim]{name}: not installed ({error.name}), skipped[/dim]")

    table = Table(
        title=f"pendulum study, {study.t[-1]:g} s, {len(study.w)} realizations, one thread", title_justify="left"
    )
    for column in ("solver", "ms per realization", "ours is faster by", "max angle error [rad]", "build [s]"):
        table.add_column(column, justify="left" if column == "solver" else "right")
    base = None
    for contestant, count, seconds in contestants:
        part = first(study, count)
        contestant.run(first(study, 1))  # type: ignore[attr-defined]
        if hasattr(contestant, "warm"):
            contestant.warm(part)
        spent, answer = best_of(lambda c=contestant, s=part: c.run(s), max(seconds, 1e-9))  # type: ignore[misc]
        each = spent / count
        base = each if base is None else base
        error = np.abs(answer - reference[:count]).max()
        table.add_row(
            contestant.label, f"{each * 1e3:.3f}", f"{each / base:.2f}x", f"{error:.1e}", f"{contestant.build:.2f}"
        )  # type: ignore[attr-defined]
    console.print(table)
    console.print(f"nanoseconds per step and realization: {base / (len(study.t) - 1) * 1e9:.1f}")


if __name__ == "__main__":
    main()
