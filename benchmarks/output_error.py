"""Two output-error fits by three programs: ours, SciPy (least_squares + solve_ivp), CasADi (cvodes or idas + IPOPT).

The hardening spring (two experiments, seven unknowns, 1002 samples) and LuGre friction (two experiments, five unknowns,
52 samples, stiff), from the starts of the source, as in ``grisaille reproduce fladischer``. Every program sees the same
equations, data, weights and first guess, integrates with a relative tolerance of 1e-8 from kink to kink of the input,
and stops by its own criterion; the table says where it arrived. Ratios are of CPU seconds, to our second fit: the first
compiles.

    python benchmarks/output_error.py [duffing | lugre] [--skip casadi scipy]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import grisaille as gr
from grisaille_reproductions import (
    fladischer_duffing as duffing,
    fladischer_lugre as lugre,
    fladischer_lugre_fit as lugre_fit,
)

RTOL, LIMIT = 1e-8, 500


@dataclass(frozen=True)
class Run:
    """One experiment for the peers: pieces of time in which the input is u = a + b t."""

    data: np.ndarray
    weight: float
    times: np.ndarray
    pieces: tuple[tuple[float, float, float, float], ...]
    """(from, to, a, b)"""


@dataclass(frozen=True)
class Case:
    """A fit for all three: ``rhs(t, x, u, p, sine)`` in any algebra; ``start(theta, run)`` and ``p(theta)`` pick."""

    name: str
    ours: Callable[[], gr.Fit]
    runs: tuple[Run, ...]
    shaken: tuple[float, ...]
    guess: np.ndarray
    states: int
    parameters: int
    rhs: Callable[..., list[object]]
    stiff: bool
    bounds: tuple[np.ndarray, np.ndarray]


def duffing_case() -> Case:
    records = {n: duffing.record(n, 60 + k) for k, n in enumerate("AB", 1)}
    data = [records["A"], records["B"]]
    y = [e.measurements("y")[1] for e in data]
    pieces = (((0.0, 10.0, 0.0, 0.0),), ((0.0, 1.0, 0.0, 0.0), (1.0, 10.0, 3.5, 0.0)))
    runs = tuple(Run(v, 100.0, duffing.TIMES, p) for v, p in zip(y, pieces, strict=True))
    guess = np.array([50.0, 0.1, 0.01, y[0][0], 0.0, y[1][0], 0.0])

    def rhs(t, x, u, p, shaken, lib):  # type: ignore[no-untyped-def]
        return [x[1], u + shaken * lib.sin(5.5 * t) - p[0] * (1 + (p[1] * x[0]) ** 2) * x[0] - p[2] * x[1]]

    def ours() -> gr.Fit:
        method = gr.OutputError(rtol=RTOL)
        guess = duffing.first_guess(data)
        return gr.fit(duffing.HardeningSpring(), data, duffing.UNKNOWNS, method, guess=guess)

    # for IPOPT alone, which strays to negative stiffness without them and does not stop on one
    wide = (np.array([1.0, 0.01, 1e-4, -1.0, -1.0, -1.0, -1.0]), np.array([500.0, 20.0, 5.0, 1.0, 1.0, 1.0, 1.0]))
    return Case("hardening spring", ours, runs, (5.0, 0.0), guess, 2, 3, rhs, False, wide)


def lugre_case() -> Case:
    data = [lugre_fit.record("A", 84), lugre_fit.record("B", 184)]
    runs = []
    for e, amplitude in zip(data, (0.5, 1.5), strict=True):
        y, slope = e.measurements("y")[1], amplitude * lugre.STATIC / 2.5
        pieces = ((0.0, 2.5, 0.0, slope), (2.5, 5.0, 5 * slope, -slope))
        runs.append(Run(y, 1 / y.max(), lugre_fit.TIMES, pieces))
    guess = np.array([lugre_fit.GUESS[n] for n in lugre.UNKNOWNS])

    def rhs(t, x, u, p, shaken, lib):  # type: ignore[no-untyped-def]
        b, s0, vs, mu0, mu = (p[k] for k in range(5))
        v, z = x[1], x[2]
        level = 9.81 * (mu + (mu0 - mu) * lib.exp(-((v / vs) ** 2)))
        dz = v - lib.fabs(v) * s0 * z / level
        return [v, u - s0 * z - 2 * lib.sqrt(s0) * dz - b * v, dz]

    def ours() -> gr.Fit:
        method = gr.OutputError(rtol=RTOL)
        return gr.fit(lugre.LuGre(), data, lugre.UNKNOWNS, method, guess=lugre_fit.GUESS, bounds=lugre_fit.WIDE)

    bounds = tuple(np.array([lugre_fit.WIDE[n][k] for n in lugre.UNKNOWNS]) for k in (0, 1))
    return Case("LuGre friction", ours, tuple(runs), (0.0, 0.0), guess, 3, 5, rhs, True, (bounds[0], bounds[1]))


def first_state(case: Case, theta: object, run: int) -> list[object]:
    """Starts follow the parameters in θ where they are unknown."""
    if len(case.guess) == case.parameters:
        return [0.0] * case.states
    at = case.parameters + run * case.states
    return [theta[at + k] for k in range(case.states)]  # type: ignore[index]


def by_scipy(case: Case) -> tuple[np.ndarray, float]:
    """``least_squares`` with finite differences over ``solve_ivp``."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import least_squares

    def simulate(theta: np.ndarray, index: int) -> np.ndarray:
        run, x, found = case.runs[index], np.array(first_state(case, theta, index), dtype=float), []
        for start, stop, a, b in run.pieces:
            inside = run.times[(run.times >= start - 1e-12) & (run.times < stop - 1e-12)]
            answer = solve_ivp(
                lambda t, x, a=a, b=b: case.rhs(t, x, a + b * t, theta, case.shaken[index], np),
                (start, stop), x, method="Radau" if case.stiff else "DOP853", rtol=RTOL, atol=1e-3 * RTOL,
                t_eval=np.append(np.maximum(inside, start), stop),
            )  # fmt: skip
            if not answer.success:
                return np.full(len(run.times), 1e3)
            found.append(answer.y[0, :-1])
            x = answer.y[:, -1]
        return np.append(np.concatenate(found), x[0])

    def residuals(xi: np.ndarray) -> np.ndarray:
        theta = xi * scale
        parts = [r.weight * (r.data - simulate(theta, k)) for k, r in enumerate(case.runs)]
        return np.concatenate(parts)

    scale = np.where(case.guess != 0, np.abs(case.guess), 1.0)
    bounds = (case.bounds[0] / scale, case.bounds[1] / scale) if case.stiff else (-np.inf, np.inf)
    answer = least_squares(
        residuals, case.guess / scale, bounds=bounds, xtol=1e-10, ftol=1e-10, gtol=1e-10, max_nfev=LIMIT,
        diff_step=1e-5 if case.stiff else None,
    )  # fmt: skip
    return answer.x * scale, float(answer.cost)


def by_casadi(case: Case) -> tuple[np.ndarray, float]:
    """Single shooting: squares of residuals over integrators by IPOPT, with the Gauss–Newton Hessian JᵀJ."""
    import casadi as ca

    theta = ca.MX.sym("theta", len(case.guess))
    scale = np.where(case.guess != 0, np.abs(case.guess), 1.0)
    values, parts = theta * scale, []
    for index, run in enumerate(case.runs):
        x: object = ca.vertcat(*first_state(case, values, index))
        found = []
        for start, stop, a, b in run.pieces:
            inside = run.times[(run.times >= start - 1e-12) & (run.times < stop - 1e-12)]
            p = ca.vertcat(values[: case.parameters], a, b)
            trajectory = _integrator(case, index, start, [*inside, stop])(x0=x, p=p)["xf"]
            found.append(trajectory[0, : len(inside)])
            x = trajectory[:, len(inside)]
        predicted = ca.horzcat(*found, x[0]).T  # type: ignore[index]
        parts.append(run.weight * (run.data - predicted))
    r, factor = ca.vertcat(*parts), ca.MX.sym("factor")
    J, cost, none = ca.jacobian(r, theta), 0.5 * ca.sumsqr(r), ca.MX.sym("none", 0)
    options = {
        "hess_lag": ca.Function("hess_lag", [theta, none, factor, ca.MX.sym("g", 0)], [ca.triu(factor * (J.T @ J))]),
        "ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.max_iter": LIMIT,
        "ipopt.tol": 1e-8 if case.stiff else 1e-5, "ipopt.acceptable_tol": 1e-7 if case.stiff else 1e-4,
        "ipopt.acceptable_iter": 3,
    }  # fmt: skip
    if case.stiff:
        # Jᵀr by forward sensitivities: the adjoints of the integrators break down at the onset of sliding
        options["grad_f"] = ca.Function("grad_f", [theta, none], [cost, ca.densify(J.T @ r)])
    solver = ca.nlpsol("solver", "ipopt", {"x": theta, "f": cost}, options)
    answer = solver(x0=case.guess / scale, lbx=case.bounds[0] / scale, ubx=case.bounds[1] / scale)
    if not solver.stats()["success"]:
        raise RuntimeError(f"IPOPT: {solver.stats()['return_status']}")
    return np.array(answer["x"]).ravel() * scale, float(answer["f"])


def _integrator(case: Case, index: int, start: float, grid: list[float]):  # type: ignore[no-untyped-def]
    import casadi as ca

    t, x, q = ca.SX.sym("t"), ca.SX.sym("x", case.states), ca.SX.sym("q", case.parameters + 2)
    u = q[case.parameters] + q[case.parameters + 1] * t
    ode = ca.vertcat(*case.rhs(t, x, u, q, case.shaken[index], ca))
    options = {"reltol": RTOL, "abstol": 1e-3 * RTOL, "max_num_steps": 20_000}
    plugin = "idas" if case.stiff else "cvodes"
    dae = {"t": t, "x": x, "p": q, "ode": ode}
    return ca.integrator(f"f{index}_{int(1e3 * start)}", plugin, dae, start, grid, options)


def by_ours(case: Case) -> tuple[np.ndarray, float]:
    fit = case.ours()
    predicted = fit.residuals()
    weights = np.concatenate([np.full(len(r.data), r.weight) for r in case.runs])
    return fit.estimate.theta, 0.5 * float(np.sum((weights * predicted["residual"].to_numpy()) ** 2))


def main() -> None:
    cases = {"duffing": duffing_case, "lugre": lugre_case}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(cases), metavar="CASE", help=" or ".join(cases))
    parser.add_argument("--skip", nargs="+", default=[], choices=["casadi", "scipy"])
    given = parser.parse_args()
    if unknown := [name for name in given.cases if name not in cases]:
        parser.error(f"there is no case {unknown[0]!r}, but {' and '.join(cases)}")
    chosen, skipped = given.cases, given.skip
    programs = {"ours, first fit": by_ours, "ours": by_ours, "SciPy": by_scipy, "CasADi": by_casadi}
    for case in (cases[n]() for n in chosen):
        print(f"\n{case.name}\n{'program':<18}{'CPU s':>10}{'ratio':>8}  {'½ Σ r²':>14}  estimates", flush=True)
        reference = 0.0
        for name, program in programs.items():
            if name.lower() in skipped:
                continue
            begin = time.process_time()
            try:
                theta, cost = program(case)
            except RuntimeError as error:
                said = str(error).splitlines()[-1]
                print(f"{name:<18}{time.process_time() - begin:10.3f}  failed: {said}", flush=True)
                continue
            seconds = time.process_time() - begin
            reference = seconds if name == "ours" else reference
            ratio = f"{seconds / reference:.0f}×" if reference else ""
            shown = ", ".join(f"{v:.6g}" for v in theta[: case.parameters])
            print(f"{name:<18}{seconds:10.3f}{ratio:>8}  {cost:14.8g}  {shown}", flush=True)


if __name__ == "__main__":
    main()
