"""Other packages on the reference problems, each with its analytic Jacobian.

``run(rtol)`` gives the significant correct digits at the end. Callbacks in Python evaluate CasADi functions through
memory buffers (1 to 2 µs a call), which for these sizes is faster than NumPy expressions.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
from reference_problems import RTOL, Case

from grisaille.compilation.derivatives import as_function
from grisaille.compilation.evaluation import numpy_matrix, numpy_vector

Run = Callable[[float], float]


def scipy_radau(case: Case) -> Run:
    from scipy.integrate import solve_ivp

    form = case.reduced
    f = numpy_vector(as_function("f", [form.t, form.x], form.f))
    jacobian = numpy_matrix(as_function("fj", [form.t, form.x], ca.jacobian(form.f, form.x)))

    def run(rtol: float) -> float:
        atol = form.atol * (rtol / RTOL)
        end = case.problem.end
        # t_eval keeps it from storing every step
        done = solve_ivp(f, (0.0, end), form.x0, "Radau", t_eval=[end], rtol=rtol, atol=atol, jac=jacobian)
        return case.digits_of_reduced(done.y[:, -1]) if done.success else float("nan")

    return run


def sksundae_cvode(case: Case) -> Run:
    from sksundae.cvode import CVODE

    form = case.reduced
    f = numpy_vector(as_function("f", [form.t, form.x], form.f))
    jacobian = numpy_matrix(as_function("fj", [form.t, form.x], ca.jacobian(form.f, form.x)))

    def rates(t, y, yp):
        yp[:] = f(t, y)

    def fill(t, y, yp, J):
        J[:, :] = jacobian(t, y)

    def run(rtol: float) -> float:
        solver = CVODE(rates, jacfn=fill, rtol=rtol, atol=form.atol * (rtol / RTOL), max_num_steps=10_000_000)
        done = solver.solve([0.0, case.problem.end], form.x0)
        return case.digits_of_reduced(done.y[-1]) if done.success else float("nan")

    return run


def sksundae_ida(case: Case) -> Run:
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

    def run(rtol: float) -> float:
        solver = IDA(residual, jacfn=fill, rtol=rtol, atol=form.atol * (rtol / RTOL), max_num_steps=10_000_000)
        done = solver.solve([0.0, case.problem.end], form.x0, form.rates0)
        return case.digits_of_implicit(done.y[-1]) if done.success else float("nan")

    return run


def casadi_cvodes(case: Case) -> Run:
    return _casadi(case, "cvodes")


def casadi_idas(case: Case) -> Run:
    return _casadi(case, "idas")


def _casadi(case: Case, plugin: str) -> Run:
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
        return ca.integrator("F", plugin, dae, 0.0, case.problem.end, options)

    def run(rtol: float) -> float:
        if rtol not in built:
            built[rtol] = build(rtol)
        try:
            end = built[rtol](x0=form.x0 / scale)["xf"].full().ravel()
        except RuntimeError:
            return float("nan")
        return case.digits_of_reduced(scale * end)

    return run
