"""Stiff and implicit reference problems: time and correct digits of ours and of other solvers, as ratios in one run."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import stiff_peers
import sundials
from reference_problems import RTOL, TITLES, Case, Solver, load_cases
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table
from timing import best_of

import grisaille as gr
from grisaille.compilation.schemes import Scheme
from grisaille.compilation.task import Task
from grisaille.simulation.integration import integrate

EPILOG = """
Every solver is given the same equations, an analytic Jacobian, rtol 1e-7 and the problem's atol (scaled with rtol in
the search for a given number of digits). A cell shows how many times longer than gr.simulate's compiled loop the solver
takes, and in brackets its significant correct digits. Solvers that are not installed are skipped:
pip install "grisaille[bench]", and for SUNDIALS from compiled code apt-get install libsundials-dev (version 6).
Times are processor times of the calling thread, so that a busy machine disturbs them less.
Correct ends: the published ones with GRISAILLE_REFERENCE_DATA set, else a run of ours at rtol 1e-12.
"""
Make = Callable[[Case], Solver]
SCAN = 10.0 ** -np.arange(4.0, 12.01, 0.5)


@dataclass(frozen=True)
class Point:
    """One run: its tolerance, seconds, digits."""

    rtol: float
    seconds: float
    digits: float


class Stopwatch:
    """A kernel that adds up the time spent in its compiled code."""

    def __init__(self, kernel: object) -> None:
        self._kernel, self.seconds = kernel, 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._kernel, name)

    def call(self, scheme: Scheme, task: Task) -> None:
        begin = time.thread_time()
        self._kernel.call(scheme, task)  # type: ignore[attr-defined]
        self.seconds += time.thread_time() - begin


def compiled_loop(case: Case, rtol: float, seconds: float) -> Point:
    """Ours without Python around it: the time inside the kernel's integrators."""
    prepared = case.prepare(rtol)
    best, spent = math.inf, 0.0
    while spent < seconds:
        task, kernel = prepared.plan.task(), Stopwatch(prepared.plan.kernel)
        integrate(kernel, task, prepared.plan.among)  # type: ignore[arg-type]
        best, spent = min(best, kernel.seconds), spent + kernel.seconds + 1e-4
    end = dict(zip(prepared.structure.system.observed_names, map(float, task.y[-1]), strict=True))
    return Point(rtol, best, case.digits(end))


def whole_call(case: Case) -> Solver:
    """``gr.simulate`` as a user calls it, from the model to a labelled data set."""
    names = case.problem.components

    def solve(rtol: float) -> np.ndarray:
        run = gr.simulate(case.model, [0.0, case.problem.end], rtol=rtol, atol=case.atol(rtol))
        return np.array([run[c].values[-1] for c in names])

    return Solver(solve, lambda end: case.digits(dict(zip(names, end.tolist(), strict=True))))


def available(console: Console, wanted: list[str]) -> dict[str, Make]:
    """Solvers by title; those that cannot run here are named and left out."""
    every: dict[str, tuple[str, Make]] = {
        "radau": ("SciPy Radau", stiff_peers.scipy_radau),
        "cvode-python": ("scikit-sundae CVODE", stiff_peers.sksundae_cvode),
        "ida-python": ("scikit-sundae IDA", stiff_peers.sksundae_ida),
        "casadi-cvodes": ("CasADi cvodes", stiff_peers.casadi_cvodes),
        "casadi-idas": ("CasADi idas", stiff_peers.casadi_idas),
        "cvode": ("CVODE in C", lambda case: sundials.CompiledSundials(case).cvode()),
        "ida": ("IDA in C", lambda case: sundials.CompiledSundials(case).ida()),
    }
    if unknown := set(wanted) - set(every):
        raise SystemExit(f"unknown solver {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    missing = sundials.why_not()
    chosen = {}
    for name in wanted:
        title, make = every[name]
        package = {"cvode-python": "sksundae", "ida-python": "sksundae"}.get(name)
        reason = missing if name in ("cvode", "ida") else _absent(package)
        if reason:
            console.print(f"{title}: {reason}, skipped", style="dim")
        else:
            chosen[title] = make
    return chosen


def _absent(package: str | None) -> str | None:
    import importlib.util

    return f"{package} is not installed" if package and importlib.util.find_spec(package) is None else None


def measure(solver: Solver, rtol: float, seconds: float) -> Point:
    """The best of three runs at least; the first call of a process, which imports and builds, does not count."""
    solver.solve(rtol)
    best, end = best_of(lambda: solver.solve(rtol), seconds, at_least=3, clocks=(time.thread_time,))
    return Point(rtol, best, solver.digits(end))


def cheapest(digits_at: Callable[[float], float], digits: float) -> float | None:
    """The loosest tolerance at which the digits are reached, and at the next two as well: luck does not count."""
    good: list[float] = []
    for rtol in SCAN:
        good = [*good, float(rtol)] if digits_at(float(rtol)) >= digits else []
        if len(good) == 3:
            return good[0]
    return None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="rober,hires,vdpol,orego,pollution,chemakzo,transistor,caraxis",
                        help="comma-separated, of: " + ", ".join(TITLES))  # fmt: skip
    parser.add_argument("--solvers", default="radau,cvode-python,ida-python,casadi-cvodes,casadi-idas,cvode,ida",
                        help="comma-separated (default: all)")  # fmt: skip
    parser.add_argument("--digits", type=float, default=6.0, help="of the second table (default 6); 0 leaves it out")
    parser.add_argument("--seconds", type=float, default=0.3, help="spent on each timing (default 0.3)")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 240)
    chosen = available(console, list(filter(None, arguments.solvers.split(","))))
    cases = load_cases(arguments.problems.split(","))
    at_tolerance, at_digits = _table(chosen), _table(chosen)
    for case in cases:
        with console.status(case.title):
            _add_row(
                case,
                {title: make(case) for title, make in chosen.items()},
                arguments.seconds,
                arguments.digits,
                at_tolerance,
                at_digits,
            )
    console.print(f"At rtol {RTOL:g}: time as a multiple of ours (significant correct digits)", soft_wrap=True)
    console.print(at_tolerance)
    if arguments.digits:
        console.print(f"To reach {arguments.digits:g} digits: time as a multiple of ours (rtol needed)", soft_wrap=True)
        console.print(at_digits)


def _table(chosen: dict[str, Make]) -> Table:
    table = Table(box=MARKDOWN)
    table.add_column("problem", no_wrap=True)
    for column in ("ours in C, ms", "gr.simulate", *chosen):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _add_row(
    case: Case, solvers: dict[str, Solver], seconds: float, digits: float, first: Table, second: Table
) -> None:
    ours, whole = compiled_loop(case, RTOL, seconds), whole_call(case)
    cells = [_multiple(measure(solver, RTOL, seconds), ours) for solver in (whole, *solvers.values())]
    first.add_row(case.title, f"{ours.seconds * 1e3:.3f} ({ours.digits:.1f})", *cells)
    if not digits:
        return
    rtol = cheapest(lambda rtol: compiled_loop(case, rtol, 1e-3).digits, digits)
    if rtol is None:
        second.add_row(case.title, "not reached", *("" for _ in cells))
        return
    mine = compiled_loop(case, rtol, seconds)
    cells = [_searched(solver, digits, seconds, mine) for solver in (whole, *solvers.values())]
    second.add_row(case.title, f"{mine.seconds * 1e3:.3f} ({mine.rtol:.0e})", *cells)


def _searched(solver: Solver, digits: float, seconds: float, ours: Point) -> str:
    rtol = cheapest(lambda rtol: solver.digits(solver.solve(rtol)), digits)
    if rtol is None:
        return "not reached"
    return f"{measure(solver, rtol, seconds).seconds / ours.seconds:.2f} ({rtol:.0e})"


def _multiple(point: Point, ours: Point) -> str:
    if math.isnan(point.digits):
        return "failed"
    return f"{point.seconds / ours.seconds:.2f} ({point.digits:.1f})"


if __name__ == "__main__":
    main()
