"""One fit of the disturbed stirred tank by approximate maximum likelihood, by three programs; many fits by ours.

Data, intensities, noise and first guess (half of every true value) are the same: 277 measurements, four parameters, two
states with triple knots at 256 sampling instants and 15 input steps.

    ours          ``gr.Collocation(criterion="amle")``: Gauss–Newton on band matrices
    CasADi        the same splines and quadrature, written by hand with Opti and solved by IPOPT
    ours, IPOPT   the same with ``optimizer="ipopt"``
    Pyomo.DAE     Lagrange–Radau collocation on the same intervals, disturbances as variables, solved by IPOPT: its
                  executable where there is one, else through CasADi's reader of .nl files
    default       ``gr.Collocation()``: on to the marginal likelihood, which the others do not have; another criterion

Each prints processor seconds to pose and to solve, and where it arrived. ``--many 500`` also fits so many data sets
with unknown intensities, by two processes. Pyomo is skipped where it is not installed.

    python benchmarks/collocation.py [--many N] [--seed K]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from scipy.interpolate import BSpline

import grisaille as gr
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.fitting import build_problem, fit_problem
from grisaille_reproductions import varziri_cstr as cstr, varziri_intensity as intensity
from grisaille_reproductions.varziri_nonlinear import STEP, plan
from grisaille_reproductions.varziri_spread import SEED

NAMES = list(cstr.TRUE)
ROUNDS = 3


@dataclass(frozen=True)
class Row:
    label: str
    posing: float
    solving: float
    objective: float
    theta: np.ndarray


def drift(x: Any, u: Any, theta: Any, exp: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Both balances; u = (F, C_A0, T_0, T_cin, F_c), theta in units of the true values."""
    E_R, k_ref, a, b = (theta[k] * cstr.TRUE[n] for k, n in enumerate(NAMES))
    g = k_ref * exp(-E_R * (1 / x[1] - 1 / 350.0))
    beta = -a * u[4] ** (b + 1) / (1e6 * (u[4] + a * u[4] ** b / 2e6))
    return u[0] * (u[1] - x[0]) - g * x[0], u[0] * (u[2] - x[1]) + beta * (x[1] - u[3]) + 130.0 * g * x[0]


def inputs_at(t: np.ndarray) -> np.ndarray:
    signals = cstr.inputs()
    rows = [
        signals[n][1][np.searchsorted(signals[n][0], t, side="right") - 1] for n in ("F", "C_A0", "T_0", "T_cin", "F_c")
    ]
    return np.array(rows)


def ours(data: gr.Experiment, method: gr.Collocation, label: str) -> Row:
    def once() -> Row:
        begin = time.process_time()
        problem = build_problem(cstr.Reactor(), data, NAMES, method, guess=cstr.halved_guess())
        posed = time.process_time()
        fit = fit_problem(cstr.Reactor(), problem, method, {}, kind=Fitted)
        solved = time.process_time()
        return Row(label, posed - begin, solved - posed, fit.objective, np.array([fit[n] for n in NAMES]))

    return best(once)


def best(once: Callable[[], Row], rounds: int = ROUNDS) -> Row:
    return min((once() for _ in range(rounds)), key=lambda row: row.posing + row.solving)


def by_hand(data: gr.Experiment) -> Row:
    """Opti with the knots and quadrature of ours, as one would write it."""
    problem: Any = build_problem(
        cstr.Reactor(), data, NAMES, gr.Collocation(criterion="amle"), guess=cstr.halved_guess()
    )
    program = problem.trajectories.programs[0]
    knots, order = program.mesh.splines[0].knots, 4
    bounds = np.unique(knots)
    samples = cstr.sample_times()
    first = {n: problem.trajectories.first_betas[0][p] for n, p in zip(("C_A", "T"), program.mesh.places, strict=True)}

    def once() -> Row:
        begin = time.process_time()
        nodes, weights = np.polynomial.legendre.leggauss(order)
        t = (bounds[:-1, None] + np.diff(bounds)[:, None] * (1 + nodes) / 2).ravel()
        w = (np.diff(bounds)[:, None] * weights / 2).ravel()
        basis = BSpline.design_matrix(t, knots, order - 1).tocsc()
        slopes = _slopes(t, knots, order)
        opti = ca.Opti()
        theta, n = opti.variable(4), len(knots) - order
        beta = {name: opti.variable(n) for name in first}
        x = [ca.DM(basis) @ beta["C_A"], ca.DM(basis) @ beta["T"]]
        f = drift(x, inputs_at(t), theta, ca.exp)
        total = ca.dot(w, (ca.DM(slopes) @ beta["C_A"] - f[0]) ** 2) / 4e-3
        total += ca.dot(w, (ca.DM(slopes) @ beta["T"] - f[1]) ** 2) / 4.0
        for name, output, variance in (("C_A", "y_C", 4e-4), ("T", "y_T", 6.4e-1)):
            seen = BSpline.design_matrix(samples[output], knots, order - 1).tocsc()
            total += ca.sumsqr(data.measurements(output).values - ca.DM(seen) @ beta[name]) / variance
        opti.minimize(0.5 * total)
        opti.subject_to(beta["C_A"][0] == 1.5965)
        opti.subject_to(beta["T"][0] == 341.379)
        opti.set_initial(theta, 0.5)
        for name in first:
            opti.set_initial(beta[name], first[name])
        opti.solver("ipopt", {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
        posed = time.process_time()
        found = opti.solve()
        solved = time.process_time()
        values = np.array(found.value(theta)) * np.array(list(cstr.TRUE.values()))
        return Row("CasADi Opti + IPOPT, by hand", posed - begin, solved - posed, float(found.value(opti.f)), values)

    return best(once)


def _slopes(t: np.ndarray, knots: np.ndarray, order: int) -> Any:
    from scipy.sparse import csc_matrix, diags

    lower = BSpline.design_matrix(t, knots[1:-1], order - 2)
    width = knots[order:-1] - knots[1:-order]
    n = len(knots) - order
    scale = diags((order - 1) / width)
    step = csc_matrix(
        (np.r_[-np.ones(n - 1), np.ones(n - 1)], (np.r_[: n - 1, : n - 1], np.r_[: n - 1, 1:n])), (n - 1, n)
    )
    return (lower @ scale @ step).tocsc()


def pyomo_dae(data: gr.Experiment) -> Row | None:
    try:
        import pyomo.dae as dae
        import pyomo.environ as pyo
    except ImportError:
        return None
    samples = cstr.sample_times()
    problem: Any = build_problem(
        cstr.Reactor(), data, NAMES, gr.Collocation(criterion="amle"), guess=cstr.halved_guess()
    )
    bounds = [round(float(b), 10) for b in problem.trajectories.programs[0].mesh.bounds]
    begin = time.process_time()
    m = pyo.ConcreteModel()
    m.t = dae.ContinuousSet(initialize=bounds)
    m.C, m.T, m.wC, m.wT = pyo.Var(m.t, initialize=1.5), pyo.Var(m.t, initialize=341.0), pyo.Var(m.t), pyo.Var(m.t)
    m.dC, m.dT = dae.DerivativeVar(m.C, wrt=m.t), dae.DerivativeVar(m.T, wrt=m.t)
    m.theta = pyo.Var(range(4), initialize=0.5)

    def balance(k: int) -> Callable[[Any, float], Any]:
        def rule(m: Any, t: float) -> Any:
            u = inputs_at(np.array([t - 1e-9]))[:, 0].tolist()
            rate = drift([m.C[t], m.T[t]], u, m.theta, pyo.exp)[k]
            return pyo.Constraint.Skip if t == 0 else ((m.dC, m.dT)[k][t] == rate + (m.wC, m.wT)[k][t])

        return rule

    m.C_balance, m.T_balance = pyo.Constraint(m.t, rule=balance(0)), pyo.Constraint(m.t, rule=balance(1))
    pyo.TransformationFactory("dae.collocation").apply_to(
        m, wrt=m.t, nfe=len(bounds) - 1, ncp=3, scheme="LAGRANGE-RADAU"
    )
    total = 0.0
    share = np.array([0.376403, 0.512486, 0.111111])
    points = sorted(m.t)
    for left, right in pairwise(bounds):
        inside = [t for t in points if left < t <= right]
        for t, s in zip(inside, share, strict=True):
            total += (right - left) * s * (m.wC[t] ** 2 / 4e-3 + m.wT[t] ** 2 / 4.0)
    for variable, output, variance in ((m.C, "y_C", 4e-4), (m.T, "y_T", 6.4e-1)):
        for t, y in zip(samples[output], data.measurements(output).values, strict=True):
            total += (variable[points[int(np.argmin(np.abs(np.array(points) - t)))]] - y) ** 2 / variance
    m.cost = pyo.Objective(expr=0.5 * total)
    m.C[0.0].fix(1.5965)
    m.T[0.0].fix(341.379)
    for variable, output in ((m.C, "y_C"), (m.T, "y_T")):
        for t in points[1:]:
            variable[t].set_value(float(np.interp(t, samples[output], data.measurements(output).values)))
    posed = time.process_time()
    objective, theta, how, solved = _solved_by_ipopt(m, pyo)
    values = theta * np.array(list(cstr.TRUE.values()))
    return Row(f"Pyomo.DAE + IPOPT ({how})", posed - begin, solved, objective, values)


def _solved_by_ipopt(m: Any, pyo: Any) -> tuple[float, np.ndarray, str, float]:
    if shutil.which("ipopt"):
        import resource

        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time()
        pyo.SolverFactory("ipopt").solve(m)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = time.process_time() - begin + after.ru_utime - before.ru_utime
        return pyo.value(m.cost), np.array([pyo.value(m.theta[k]) for k in range(4)]), "executable", took
    from pyomo.repn.plugins.nl_writer import NLWriter

    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.nl"
        with path.open("w", encoding="ascii", newline="\n") as file:
            info = NLWriter().write(m, file)
        builder = ca.NlpBuilder()
        builder.import_nl(str(path))
    x, g = ca.vertcat(*builder.x), ca.vertcat(*builder.g)
    options = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}
    solver = ca.nlpsol("s", "ipopt", {"x": x, "f": builder.f, "g": g}, options)
    found = solver(x0=builder.x_init, lbx=builder.x_lb, ubx=builder.x_ub, lbg=builder.g_lb, ubg=builder.g_ub)
    took = time.process_time() - begin
    values = {v.name: x for v, x in zip(info.variables, np.array(found["x"].full()).ravel(), strict=True)}
    return float(found["f"]), np.array([values[f"theta[{k}]"] for k in range(4)]), "through its .nl file", took


def many(count: int) -> None:
    """Fits with unknown intensities and starts, as in ``grisaille reproduce varziri/intensity``, by two processes."""
    begin = time.perf_counter()
    study = gr.monte_carlo(
        cstr.Reactor(), plan(at_once=True), intensity.UNKNOWNS, intensity.METHODS["AMLE"], runs=count, seed=SEED,
        step=STEP, guess=intensity.first_guess(), executor=2,
    )  # fmt: skip
    took = time.perf_counter() - begin
    medians = ", ".join(f"{np.median(intensity.intensity_ratios(study, n)):.2f}" for n in intensity.INTENSITIES)
    print(
        f"\n{count} fits with unknown intensities by two processes: {took / 60:.1f} min, {study.counts['converged']} "
        f"converged, median Q/Q_true {medians}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--many", type=int, default=0, help="also so many fits with unknown intensities")
    parser.add_argument("--seed", type=int, default=1, help="of the data set")
    options = parser.parse_args()
    data = cstr.simulate_experiment(options.seed)
    rows = [
        ours(data, gr.Collocation(criterion="amle"), "ours"),
        ours(data, gr.Collocation(criterion="amle", optimizer="ipopt"), "ours, IPOPT"),
    ]
    rows += [by_hand(data)]
    peer = pyomo_dae(data)
    rows += [peer] if peer is not None else []
    rows += [ours(data, gr.Collocation(), "default: the marginal likelihood")]
    whole = rows[0].posing + rows[0].solving
    print(f"{'':<42}{'to pose':>9}{'to solve':>10}{'times ours':>12}{'criterion':>12}  " + "  ".join(NAMES))
    for row in rows:
        ratio = (row.posing + row.solving) / whole
        values = "  ".join(f"{v:.5g}" for v in row.theta)
        print(f"{row.label:<42}{row.posing:>9.3f}{row.solving:>10.3f}{ratio:>12.1f}{row.objective:>12.4f}  {values}")
    if peer is None:
        print("Pyomo is not installed: pip install pyomo")
    if options.many:
        many(options.many)


if __name__ == "__main__":
    main()
