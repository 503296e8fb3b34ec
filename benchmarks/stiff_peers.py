"""Other packages on the reference problems, each with its analytic Jacobian.

Callbacks in Python evaluate CasADi functions through
memory buffers (1 to 2 µs a call), which for these sizes is faster than NumPy expressions.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from reference_problems import RTOL, Case, Solver

from grisaille.compilation.casadi_evaluation import numpy_matrix, numpy_vector
from grisaille.compilation.derivatives import as_function

GAVE_UP = np.zeros(0)


def scipy_radau(case: Case) -> Solver:
    from scipy.integrate import solve_ivp

    form = case.reduced
    f = numpy_vector(as_function("f", [form.t, form.x], form.f))
    jacobian = numpy_matrix(as_function("fj", [form.t, form.x], ca.jacobian(form.f, form.x)))

    def solve(rtol: float) -> np.ndarray:
        atol = form.atol * (rtol / RTOL)
        end = case.problem.end
        # t_eval keeps it from storing every step
        done = solve_ivp(f, (0.0, end), form.x0, "Radau", t_eval=[end], rtol=rtol, atol=atol, jac=jacobian)
        return done.y[:, -1] if done.success else GAVE_UP

    return Solver(solve, case.digits_of_reduced)


def sksundae_cvode(case: Case) -> Solver:
    from sksundae.cvode import CVODE

    form = case.reduced
    f = numpy_vector(as_function("f", [form.t, form.x], form.f))
    jacobian = numpy_matrix(as_function("fj", [form.t, form.x], ca.jacobian(form.f, form.x)))

    def rates(t, y, yp):
        yp[:] = f(t, y)

    def fill(t, y, yp, J):
        J[:, :] = jacobian(t, y)

    def solve(rtol: float) -> np.ndarray:
        solver = CVODE(rates, jacfn=fill, rtol=rtol, atol=form.atol * (rtol / RTOL), max_num_steps=10_000_000)
        done = solver.solve([0.0, case.problem.end], form.x0)
        return done.y[-1] if done.success else GAVE_UP

    return Solver(solve, case.digits_of_reduced)


def sksundae_ida(case: Case) -> Solver:
    from sksundae.ida import IDA

    form = case.implicit
    cj = ca.SX.sym("cj")
    iteration = ca.jacobian(form.f, form.x) + cj * ca.jacobian(form.f, form.rates)
    f = numpy_vector(as_function("r", [form.t, form.x, form.rates], form.f))
    jacobian = numpy_matrix(as_function("rj", [form.t, form.x, form.rates, cj], iteration))

    def residual(t, y, yp, r):
        r[:] = f(t, y, yp)

    def fill(t, y, yp, r, cj, J):
        J[:, :] = jacobian(t, y, yp, cj)

    def solve(rtol: float) -> np.ndarray:
        solver = IDA(residual, jacfn=fill, rtol=rtol, atol=form.atol * (rtol / RTOL), max_num_steps=10_000_000)
        done = solver.solve([0.0, case.problem.end], form.x0, form.rates0)
        return done.y[-1] if done.success else GAVE_UP

    return Solver(solve, case.digits_of_implicit)


def casadi_cvodes(case: Case) -> Solver:
    return _casadi(case, "cvodes")


def casadi_idas(case: Case) -> Solver:
    return _casadi(case, "idas")


def _casadi(case: Case, plugin: str) -> Solver:
    """CasADi's interfaces to SUNDIALS, the model's functions compiled (``jit``).

    They take one absolute tolerance for all states, so the states are scaled by the ratios of theirs.
    """
    form = case.reduced
    scale = form.atol / form.atol.max()
    scaled = ca.SX.sym("s", form.x.numel())
    dae = {"x": scaled, "t": form.t, "ode": ca.substitute(form.f, form.x, scale * scaled) / scale}
    built: dict[float, ca.Function] = {}

    def build(rtol: float) -> ca.Function:
        options = {
            "reltol": rtol, "abstol": float(form.atol.max()) * (rtol / RTOL), "max_num_steps": 10_000_000,
            "jit": True, "jit_options": {"flags": ["-O2"]}, "compiler": "shell",
        }  # fmt: skip
        if plugin == "idas":
            options |= {"calc_ic": False, "init_xdot": (form.rates0 / scale).tolist()}
        return ca.integrator("F", plugin, dae, 0.0, case.problem.end, options)

    def solve(rtol: float) -> np.ndarray:
        if rtol not in built:
            built[rtol] = build(rtol)
        try:
            return scale * built[rtol](x0=form.x0 / scale)["xf"].full().ravel()
        except RuntimeError:
            return GAVE_UP

    return Solver(solve, case.digits_of_reduced)
