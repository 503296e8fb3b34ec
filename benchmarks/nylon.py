"""One solve of the six nylon runs at given intensities of disturbances: ours, and IPOPT on the same programs.

Trajectories, start values and, in the second kind, five parameters that all runs share; guess and intensities are the
source's (``grisaille_reproductions.varziri_nylon``).

    splines   60 uniform knots and 20 in the half hour after each step of pressure: ``gr.Collocation``, and the same
              splines and quadrature written by hand in CasADi and solved by IPOPT
    direct    three Radau points from sample to sample: ``gr.Collocation(transcription="direct")``, and the same program
              solved by IPOPT

IPOPT has exact derivatives and its default options, then an adaptive barrier, which suits parameters near bounds.

Processor seconds, the best of three. *To pose* is everything before the first iteration (for IPOPT its expressions and
their derivatives), *to solve* the rest, up to the minimum. The last rows repeat a solve without posing it anew.

    OMP_NUM_THREADS=1 python benchmarks/nylon.py [--rounds N] [--start document|published]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import BSpline
from scipy.sparse import csc_matrix

import grisaille as gr
from grisaille.collocation.direct import element as direct_element, ipopt as direct_ipopt
from grisaille.collocation.direct.element_mesh import RadauElements
from grisaille.collocation.direct.initial_path import first_points
from grisaille.collocation.direct.path_newton import place, solve_newton
from grisaille.collocation.spline_options import SplineOptions
from grisaille.estimators.collocation.collocation_posing import build_spline_program
from grisaille.estimators.collocation.spline_trajectories import Splines
from grisaille.estimators.fitting import build_problem
from grisaille_reproductions import varziri_nylon as nylon
from grisaille_reproductions.varziri_nylon_fits import STARTS, document_knots

KINDS = {"trajectories": list(STARTS), "trajectories and parameters": [*nylon.UNKNOWNS, *STARTS]}
POINTS = {"document": nylon.DOCUMENT_START, "published": {**nylon.PUBLISHED, "E": 1.0}}
RUNS = gr.examples.nylon612()
IPOPT = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
OPTIONS: dict[str, dict[str, Any]] = {"": {}, ", adaptive barrier": {"ipopt.mu_strategy": "adaptive"}}


@dataclass(frozen=True)
class Row:
    label: str
    posing: float
    solving: float
    steps: int
    objective: float
    parameters: Mapping[str, float]
    status: str = ""


def best(once: Callable[[], Row], rounds: int) -> Row:
    """The least of both times, each from its own best round."""
    rows = [once() for _ in range(rounds)]
    return replace(rows[0], posing=min(r.posing for r in rows), solving=min(r.solving for r in rows))


def posed(method: gr.Collocation, names: list[str], start: Mapping[str, float]) -> Any:
    guess = {**start, **nylon.first_starts(RUNS)}
    mine = {n: v for n, v in guess.items() if n.partition("@")[0] in names}
    return build_problem(nylon.NylonReactor().replace(dict(start)), RUNS, names, method, guess=mine)


def posed_splines(names: list[str], start: Mapping[str, float]) -> Any:
    """The six runs on knots of their own."""
    problem = posed(gr.Collocation(criterion="amle", knots=2, transcription="spline"), names, start)
    programs, betas = [], []
    for case, program in zip(problem.cases, problem.trajectories.programs, strict=True):
        given = program.record.at([problem.unknowns[k].guess for k in case.unknowns])
        options = SplineOptions(knots=document_knots(case.name))
        made = build_spline_program(program.record, given, program.formulas, options)
        programs.append(made[0])
        betas.append(made[1])
    return problem.on(Splines(programs, betas, problem.trajectories.method))


def splines(names: list[str], start: Mapping[str, float]) -> Row:
    """Ours, with splines."""
    begin = time.process_time()
    problem = posed_splines(names, start)
    ready = time.process_time()
    found = problem.trajectories.minimize(problem, problem.guess, ~problem.levels)
    end = time.process_time()
    assert found.converged, found.reason
    at = found.at
    values = {u.name: float(v) for u, v in zip(problem.unknowns, at.theta, strict=True)}
    return Row("splines, ours", ready - begin, end - ready, found.iterations, at.objective, parameters(values))


def direct(names: list[str], start: Mapping[str, float]) -> Row:
    """Ours, by direct collocation."""
    begin = time.process_time()
    program = posed(gr.Collocation(criterion="amle", transcription="direct"), names, start).trajectories.program
    transcribed = program.transcribe(RadauElements())
    point = first_points(transcribed, program.simulated(transcribed, program.guess))[0]
    ready = time.process_time()
    found = solve_newton(place(transcribed, point), program.bounds)
    end = time.process_time()
    assert found.converged, found.reason
    values = {u.name: float(v) for u, v in zip(program.unknowns, found.at.theta, strict=True)}
    return Row(
        "direct, ours", ready - begin, end - ready, found.iterations, found.at.costs.objective, parameters(values)
    )


def direct_again(names: list[str], start: Mapping[str, float]) -> Callable[[], Row]:
    """The same program solved once more, its functions compiled, as they are in long searches and studies."""
    program = posed(gr.Collocation(criterion="amle", transcription="direct"), names, start).trajectories.program
    transcribed = program.transcribe(RadauElements())
    point = first_points(transcribed, program.simulated(transcribed, program.guess))[0]
    usual, direct_element.COMPILE_AFTER_ELEMENTS = direct_element.COMPILE_AFTER_ELEMENTS, 0
    solve_newton(place(transcribed, point), program.bounds)
    direct_element.COMPILE_AFTER_ELEMENTS = usual

    def once() -> Row:
        begin = time.process_time()
        found = solve_newton(place(transcribed, point), program.bounds)
        end = time.process_time()
        values = {u.name: float(v) for u, v in zip(program.unknowns, found.at.theta, strict=True)}
        objective = found.at.costs.objective
        return Row("direct, ours, again", 0.0, end - begin, found.iterations, objective, parameters(values))

    return once


def parameters(values: Mapping[str, float]) -> dict[str, float]:
    return {n: v for n, v in values.items() if n in nylon.UNKNOWNS}


def by_hand(names: list[str], start: Mapping[str, float], how: str, more: Mapping[str, Any]) -> Callable[[], Row]:
    """Splines with the knots and first coefficients of ours, in CasADi as one would write it."""
    free = [n for n in nylon.UNKNOWNS if n in names]
    problem = posed_splines(names, start)
    meshes = [p.mesh for p in problem.trajectories.programs]
    first = [[b[place] for place in m.places] for m, b in zip(meshes, problem.trajectories.first_betas, strict=True)]
    for run, splines in zip(RUNS, first, strict=True):
        for coefficients, name in zip(splines, "ACW", strict=True):
            coefficients[0] = nylon.first_starts([run])[f"start({name})@{run.name}"]

    def once() -> Row:
        begin = time.process_time()
        scale = np.array([start[n] for n in free])
        scaled = ca.MX.sym("theta", len(free))
        theta = {**start, **{n: scaled[k] * scale[k] for k, n in enumerate(free)}}
        unknowns, first_values, total = [scaled], [np.ones(len(free))], ca.MX(0)
        for run, mesh, coefficients in zip(RUNS, meshes, first, strict=True):
            betas = [ca.MX.sym(f"{n}_{run.name}", len(b)) for n, b in zip("ACW", coefficients, strict=True)]
            total += _criterion(run, mesh.splines[0].knots, betas, theta)
            unknowns += betas
            first_values += coefficients
        x = ca.vertcat(*unknowns)
        solver = ca.nlpsol("hand", "ipopt", {"x": x, "f": total}, {**IPOPT, **more})
        lower = np.full(x.numel(), -np.inf)
        lower[: len(free)] = [0.0 if n != "dH" else -np.inf for n in free]
        ready = time.process_time()
        found = solver(x0=np.concatenate(first_values), lbx=lower)
        end = time.process_time()
        values = np.array(found["x"].full()).ravel()[: len(free)] * scale
        return Row(
            f"splines by hand, IPOPT{how}", ready - begin, end - ready, solver.stats()["iter_count"],
            float(found["f"]), dict(zip(free, values.tolist(), strict=True)), solver.stats()["return_status"],
        )  # fmt: skip

    return once


def _criterion(run: gr.Experiment, knots: np.ndarray, betas: list[ca.MX], theta: Mapping[str, Any]) -> ca.MX:
    """(6.26) of one run, with four Gauss points per interval of knots."""
    bounds, order = np.unique(knots), 4
    nodes, weights = np.polynomial.legendre.leggauss(order)
    t = (bounds[:-1, None] + np.diff(bounds)[:, None] * (1 + nodes) / 2).ravel()
    w = (np.diff(bounds)[:, None] * weights / 2).ravel()
    basis = ca.DM(BSpline.design_matrix(t, knots, order - 1).tocsc())
    slopes = ca.DM(_slopes(t, knots, order))
    drift = rates([basis @ b for b in betas], pressure(run, t), float(run.constants["T"]), theta)
    total = ca.MX(0)
    for b, f, Q in zip(betas, drift, nylon.INTENSITIES.values(), strict=True):
        total += ca.dot(w, (slopes @ b - f) ** 2) / (2 * Q)
    for b, output, sigma in ((betas[0], "y_A", 0.6), (betas[1], "y_C", 2.4)):
        at, y = run.measurements(output)[:2]
        seen = ca.DM(BSpline.design_matrix(np.asarray(at, dtype=float), knots, order - 1).tocsc())
        total += ca.sumsqr(np.asarray(y) - seen @ b) / (2 * sigma**2)
    return total


def rates(x: list[Any], P_W: np.ndarray, T: float, theta: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """dA/dt, dC/dt and dW/dt without disturbances."""
    A, C, W = x
    W_eq = nylon.equilibrium_water(P_W, T)
    inverse = (1 / T - 1 / nylon.REFERENCE) / nylon.GAS
    k_p = theta["k_p0"] * ca.exp(-theta["E"] * inverse)
    activity = nylon.ACTIVITY_0 / np.exp(9.624 - 3613 / T)
    K_a = (1 + theta["a"] * np.sqrt(W_eq)) * activity * theta["K_a0"] * ca.exp(-theta["dH"] * inverse)
    L = (1e6 - 115.15 * C - 58.10 * A - 18.02 * W) / 155.23
    r = k_p * (C * A - L * W / K_a)
    return -r, -r, r - 24.3 * (W - W_eq)


def pressure(run: gr.Experiment, t: np.ndarray) -> np.ndarray:
    times, values = (np.asarray(v, dtype=float) for v in run.inputs["P_W"])
    return values[np.clip(np.searchsorted(times, t, side="right") - 1, 0, None)]


def _slopes(t: np.ndarray, knots: np.ndarray, order: int) -> csc_matrix:
    """Derivatives of the basis."""
    n, lower = len(knots) - order, BSpline.design_matrix(t, knots[1:-1], order - 2)
    rise = (order - 1) / (knots[order:-1] - knots[1:-order])
    rows, columns = np.r_[: n - 1, : n - 1], np.r_[: n - 1, 1:n]
    return (lower @ csc_matrix((np.r_[-rise, rise], (rows, columns)), (n - 1, n))).tocsc()


def direct_by_ipopt(names: list[str], start: Mapping[str, float], how: str, more: Mapping[str, Any]) -> Row:
    """The direct program as IPOPT sees it."""
    begin = time.process_time()
    program = posed(gr.Collocation(criterion="amle", transcription="direct"), names, start).trajectories.program
    transcribed = program.transcribe(RadauElements())
    point = first_points(transcribed, program.simulated(transcribed, program.guess))[0]
    solver = direct_ipopt.build_solver(transcribed, point, {k.removeprefix("ipopt."): v for k, v in more.items()})
    ready = time.process_time()
    found = direct_ipopt.run_solver(transcribed, solver, point, program.bounds)
    end = time.process_time()
    values = {u.name: float(v) for u, v in zip(program.unknowns, found.at.theta, strict=True)}
    label, objective = f"direct, IPOPT{how}", found.at.costs.objective
    return Row(label, ready - begin, end - ready, found.iterations, objective, parameters(values), found.reason)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--start", choices=list(POINTS), default="document", help="where free parameters begin")
    options = parser.parse_args()
    rounds = options.rounds
    for kind, names in KINDS.items():
        start = POINTS[options.start if "k_p0" in names else "document"]
        print(f"\n{kind:<44}{'to pose':>9}{'to solve':>10}{'steps':>7}{'criterion':>12}  ratio: both, solve")
        compare(
            best(partial(splines, names, start), rounds),
            [best(by_hand(names, start, how, more), rounds) for how, more in OPTIONS.items()],
        )
        theirs = [best(partial(direct_by_ipopt, names, start, how, more), rounds) for how, more in OPTIONS.items()]
        compare(best(partial(direct, names, start), rounds), theirs)
        compare(best(direct_again(names, start), rounds), [replace(row, posing=0.0) for row in theirs])


def compare(mine: Row, others: list[Row]) -> None:
    """Times side by side, and whether IPOPT reached the same minimum."""
    print(f"{mine.label:<44}{mine.posing:>9.3f}{mine.solving:>10.3f}{mine.steps:>7}{mine.objective:>12.5f}")
    for row in others:
        whole = (row.posing + row.solving) / (mine.posing + mine.solving)
        print(
            f"{row.label:<44}{row.posing:>9.3f}{row.solving:>10.3f}{row.steps:>7}{row.objective:>12.5f}"
            f"{whole:>8.1f}{row.solving / mine.solving:>8.1f}"
        )
        apart = [abs(row.parameters[n] - v) / abs(nylon.DOCUMENT_START[n]) for n, v in mine.parameters.items()]
        if row.objective > (1 + 1e-5) * mine.objective or max(apart, default=0.0) > 1e-3:
            print(f"    ended elsewhere: {row.status}, {dict(row.parameters)}")
        assert row.objective > (1 - 1e-5) * mine.objective, "ours is not the lowest minimum"


if __name__ == "__main__":
    main()
