"""What a compiler does for nonlinear filters, by the number of states: forward and reverse derivatives, and values over
sigma points.

Chains of tanks and of masses, both nonlinear and with a coloured disturbance. Each program is compiled in a folder of
its own without a cache; printed are the lines of the generated file and of its longest function, the seconds of Python
that it took to write it, and processor seconds of the compiler.

    python benchmarks/filter_compilation.py                     # a few minutes
    python benchmarks/filter_compilation.py --states 4 8 --filters extended --programs forward
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import grisaille as gr
from grisaille import der
from grisaille.compilation.compiler import find_compiler
from grisaille.compilation.kalman.program import FilterProgram
from grisaille.compilation.shared_library import CSource
from grisaille.estimators.fitting import build_problem


def tanks(n: int) -> gr.Model:
    """A cascade of n − 1 tanks with outflow by Torricelli, fed by a flow with a coloured part."""

    class Tanks(gr.Model):
        area = gr.Parameter(1.0, bounds=(0.1, 10.0))
        outlet = gr.Parameter(0.5, bounds=(0.05, 5.0))
        feed = gr.Input()
        level = gr.Variable(start=1.0, size=n - 1)
        w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
        y = gr.Output(level[n - 2], noise=0.02)
        first = gr.Output(level[0], noise=0.02)

        def equations(self) -> list[object]:
            flows = [self.feed + self.w, *(self.outlet * (self.level[i] + 0.01) ** 0.5 for i in range(n - 1))]
            return [self.area * der(self.level[i]) == flows[i] - flows[i + 1] for i in range(n - 1)]

    return Tanks()


def masses(n: int) -> gr.Model:
    """A chain of n/2 − 1 masses on hardening springs, shaken by a resonance."""
    count = n // 2 - 1

    class Masses(gr.Model):
        k, d = gr.Parameter(4.0, bounds=(1.0, 9.0)), gr.Parameter(0.3, bounds=(0.01, 2.0))
        hard = gr.Parameter(0.5, bounds=(0.0, 5.0))
        x = gr.Variable(start=0.1, size=count)
        v = gr.Variable(start=0.0, size=count)
        w = gr.Disturbance(gr.spectra.resonance(frequency=1.5, damping=0.2), scale=0.4)
        y = gr.Output(x[count - 1], noise=0.02)

        def equations(self) -> list[object]:
            ends = [0.0, *(self.x[i] for i in range(count)), 0.0]
            speeds = [0.0, *(self.v[i] for i in range(count)), 0.0]
            pulls = [
                self.k * (b - a) + self.hard * (b - a) ** 3 + self.d * (fast - slow)
                for a, b, slow, fast in zip(ends, ends[1:], speeds, speeds[1:], strict=False)
            ]
            forces = [self.w, *(0.0 for _ in range(count - 1))]
            moved = [der(self.x[i]) == self.v[i] for i in range(count)]
            return moved + [der(self.v[i]) == pulls[i + 1] - pulls[i] + forces[i] for i in range(count)]

    return Masses()


MODELS: dict[str, tuple[Callable[[int], gr.Model], tuple[str, ...], tuple[str, ...]]] = {
    "tanks": (tanks, ("y", "first"), ("area", "outlet", "scale(w)")),
    "masses": (masses, ("y",), ("k", "d", "hard", "scale(w)")),
}
"""Makers, outputs and unknowns."""


def record_of(model: str) -> gr.Experiment:
    """Thirty samples that any of the models can be asked about."""
    times = np.linspace(0.0, 6.0, 31)
    inputs = {"feed": 0.5 + 0.1 * np.sin(times)} if model == "tanks" else {}
    signal = 1.0 + 0.1 * np.sin(2 * times) if model == "tanks" else 0.1 * np.sin(2 * times)
    return gr.Experiment(times, inputs, {name: signal for name in MODELS[model][1]}, hold="zoh")


def program_of(model: str, states: int, kind: Any, propagation: str) -> FilterProgram:
    """The program of a filter."""
    maker, _, unknowns = MODELS[model]
    method = gr.KalmanML(filter=kind, substeps=1, propagation=propagation)
    problem: Any = build_problem(maker(states), record_of(model), list(unknowns), method)
    case = problem.cases[0]
    program: FilterProgram = case.runner.prepared_at(case.own(problem.guess)).program
    return program


def longest_function(text: str) -> int:
    """Lines of the longest function of a generated C text."""
    longest, begin = 0, 0
    for number, line in enumerate(text.splitlines()):
        if re.match(r"\w.*\) *\{$", line):
            begin = number
        elif line == "}":
            longest = max(longest, number - begin)
    return longest


def compiler_seconds(source: CSource) -> float:
    """Processor seconds of the compiler for one C file."""
    compiler = find_compiler()
    assert compiler is not None, "no compiler"
    before = os.times()
    compiler.build(source.files, "model.c", source.flags)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, nargs="+", default=[4, 8, 16, 24])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--filters", nargs="+", default=["extended", "iterated", "unscented"])
    parser.add_argument("--programs", nargs="+", default=["forward", "reverse"], choices=["forward", "reverse"])
    parser.add_argument("--propagation", default="linearize", choices=["linearize", "moments"])
    given = parser.parse_args()
    print("| model | states | filter | program | lines | longest function | writing, s | compiler, s |")
    print("| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |")
    for model in given.models:
        for states in given.states:
            for kind in given.filters:
                program = program_of(model, states, kind, given.propagation)
                for name in given.programs:
                    begin = time.process_time()
                    text = program.forward_source() if name == "forward" else program.reverse_source()
                    writing = time.process_time() - begin
                    spent = compiler_seconds(program.source(text))
                    row = [model, states, kind, name, len(text.splitlines()), longest_function(text)]
                    print(f"| {' | '.join(map(str, row))} | {writing:.2f} | {spent:.2f} |", flush=True)


if __name__ == "__main__":
    main()
