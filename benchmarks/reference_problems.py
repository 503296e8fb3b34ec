"""The reference problems as every solver of the comparison needs them, taken from the models of ``tests/zoo``.

Two forms of each, with the parameters' numbers put in::

    reduced    x' = f(t, x)            after our index reduction, for solvers of ordinary differential equations
    implicit   0 = F(t, y, y')         the equations as written, for IDA

IDA gets the reduced form, 0 = x' − f, where the index is 3, and for the transistor amplifier: on the equations as
written it takes ten times as many steps. Nobody else projects on the constraints that the reduced form leaves behind.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import casadi as ca
import numpy as np

import grisaille as gr
from grisaille.simulation import simulation_runs as simulated
from grisaille.simulation.posing import SimulationSetup
from grisaille.simulation.simulation_runs import PreparedRun
from grisaille.structure.equations import lower_equations

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from zoo.ivp_test_set import PROBLEMS, Problem

RTOL = 1e-7
Atol = float | dict[str, float]
REDUCED_FOR_IDA = ("transistor", "caraxis", "pendulum")
TITLES = {
    "rober": "Robertson",
    "hires": "HIRES",
    "vdpol": "Van der Pol",
    "orego": "Oregonator",
    "pollution": "Pollution",
    "chemakzo": "Chemical Akzo Nobel",
    "transistor": "Transistor amplifier",
    "caraxis": "Car axis",
    "pendulum": "Pendulum",
}


@dataclass(frozen=True)
class Form:
    """Equations with numbers for parameters: ``x' = f`` (``rates`` is None) or ``0 = f`` with ``rates`` = y'."""

    t: ca.SX
    x: ca.SX
    rates: ca.SX | None
    f: ca.SX
    x0: np.ndarray
    rates0: np.ndarray
    atol: np.ndarray
    """At ``rtol`` = ``RTOL``; scaled with it."""


@dataclass(frozen=True)
class Solver:
    """``solve(rtol)`` gives the end point, empty where the solver gave up; ``digits`` says how good it is."""

    solve: Callable[[float], np.ndarray]
    digits: Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Case:
    """One problem with both forms, and the digits of an answer."""

    problem: Problem
    model: gr.Model
    exact: dict[str, float]

    @property
    def title(self) -> str:
        return TITLES[self.problem.name]

    def atol(self, rtol: float) -> Atol:
        """The problem's absolute tolerance, which belongs to ``RTOL``, scaled to another ``rtol``."""
        given, factor = self.problem.atol, rtol / RTOL
        return {n: v * factor for n, v in given.items()} if isinstance(given, dict) else given * factor

    def prepare(self, rtol: float = RTOL) -> PreparedRun:
        solver = simulated.IntegratorOptions(rtol, self.atol(rtol), max_steps=10_000_000)
        return simulated.SimulationRuns(
            SimulationSetup(self.model, [0.0, self.problem.end], None, hold=None), solver
        ).prepare(None, None)

    @cached_property
    def prepared(self) -> PreparedRun:
        return self.prepare()

    @cached_property
    def reduced(self) -> Form:
        system, task = self.prepared.structure.system, self.prepared.plan.task()
        assert system.nz == 0 and system.nu == 0
        f = ca.substitute(system.rhs, system.p, ca.DM(task.p))
        rates = self.prepared.plan.kernel.F(0.0, task.x, task.z, np.zeros(0), task.p)
        return Form(system.t, system.x, None, f, task.x.copy(), rates, task.atol.copy())

    @cached_property
    def implicit(self) -> Form:
        """The user's equations, or what IDA does better with."""
        if self.problem.name in REDUCED_FOR_IDA:
            reduced = self.reduced
            rates = ca.SX.sym("rates", reduced.x.numel())
            return Form(reduced.t, reduced.x, rates, rates - reduced.f, reduced.x0, reduced.rates0, reduced.atol)
        equations = lower_equations(self.prepared.structure.model)
        y = ca.vertcat(*(equations.jets.symbol(n) for n in equations.unknowns))
        rates = ca.vertcat(*(equations.jets.symbol(n, 1) for n in equations.unknowns))
        numbers = ca.DM(self.prepared.point.p)
        rows = ca.substitute(
            ca.vertcat(*(row.residual for row in equations.rows)), ca.vertcat(*equations.parameters.values()), numbers
        )
        start = self.observe(0.0, self.reduced.x0)
        known = dict(zip(self.prepared.structure.system.state_names, self.reduced.rates0, strict=True))
        atol = self.problem.atol
        return Form(
            equations.jets.time, y, rates, rows,
            np.array([start[n] for n in equations.unknowns]), np.array([known.get(n, 0.0) for n in equations.unknowns]),
            np.array([atol[n] if isinstance(atol, dict) else atol for n in equations.unknowns]),
        )  # fmt: skip

    def observe(self, t: float, x: np.ndarray) -> dict[str, float]:
        """Everything the user has a name for, from the states of the reduced form."""
        task = self.prepared.plan.task()
        values = self.prepared.plan.kernel.O(t, x, task.z, np.zeros(0), task.p)
        return dict(zip(self.prepared.structure.system.observed_names, map(float, values), strict=True))

    def digits_of_reduced(self, x: np.ndarray) -> float:
        return self.digits(self.observe(self.problem.end, x)) if x.size else float("nan")

    def digits_of_implicit(self, y: np.ndarray) -> float:
        if not y.size:
            return float("nan")
        if self.problem.name in REDUCED_FOR_IDA:
            return self.digits_of_reduced(y)
        return self.digits(dict(zip(self.problem.components, map(float, y), strict=True)))

    def digits(self, end: dict[str, float]) -> float:
        """Significant correct digits: −log₁₀ of the largest relative error of any component at the end."""
        error = max(abs(end[c] - v) / abs(v) for c, v in self.exact.items())
        return float(-np.log10(max(error, 1e-16))) if np.isfinite(error) else float("nan")


def load_cases(names: list[str] | None = None) -> list[Case]:
    """The problems with their published ends where ``GRISAILLE_REFERENCE_DATA`` is set, else with our tightest run."""
    folder = os.environ.get("GRISAILLE_REFERENCE_DATA")
    cases = []
    for problem in PROBLEMS:
        if names is None or problem.name in names:
            model = problem.model()
            exact = published_end(problem, Path(folder)) if folder else _tight_end(problem, model)
            cases.append(Case(problem, model, exact))
    return cases


def published_end(problem: Problem, folder: Path) -> dict[str, float]:
    with (folder / "dae_testset" / f"reference_{problem.name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    if problem.name == "pendulum":
        return {c: float(rows[-1][c]) for c in problem.components}
    return {c: float(row["value"]) for c, row in zip(problem.components, rows, strict=True)}


def _tight_end(problem: Problem, model: gr.Model) -> dict[str, float]:
    atol = {n: v * 1e-5 for n, v in problem.atol.items()} if isinstance(problem.atol, dict) else problem.atol * 1e-5
    run = gr.simulate(model, [0.0, problem.end], rtol=1e-12, atol=atol, method="implicit")
    return {c: float(run[c][-1]) for c in problem.components}
