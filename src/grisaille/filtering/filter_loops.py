"""The functions of one point of which a nonlinear filter in C makes its steps and updates (``kalman.loops``).

The same formulas as ``linearization``, ``measurement``, ``iterated`` and ``unscented``; where those write out what is
done with their matrices, gr_filter_extended.h and gr_filter_sigma.h have loops.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from grisaille.compilation.kalman.loop_source import FilterLoops, PointFunction
from grisaille.compilation.step import project
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.filtering.algebraic_model import AlgebraicModel
from grisaille.filtering.constraint_projection import ConstraintProjection, augmented
from grisaille.filtering.measurement import UpdateSymbols, seen_where_measured
from grisaille.filtering.moment_packing import lower_triangle
from grisaille.filtering.sigma_points import SigmaPoints

POINT_ARGUMENTS = ("t", "x", "z", "u", "q")
STEP_ARGUMENTS = ("t", "h", "x", "z", "u", "q")
MEASUREMENT_ARGUMENTS = (*POINT_ARGUMENTS, "mask")
ON_CONSTRAINTS = ("t", "x", "u", "q", "nominal")
MOVING_ARGUMENTS = ("x", "z", "q")


@dataclass(frozen=True)
class Stepping:
    """How a filter in C steps between samples.

    constant : for linearised steps: the drift does not change with time inside one but through the states
    stages : of an explicit method for the moments, which takes the place of linearised steps; zero for none
    """

    constant: bool = False
    stages: int = 0

    @property
    def evaluations(self) -> int:
        """Return how many times rates are evaluated in a step."""
        return self.stages or (2 if self.constant else 4)

    def sizes(self, n: int, nz: int) -> dict[str, int | str]:
        """Return what the headers ask for."""
        if self.stages:
            return {"MOMENTS": 1, "STAGES": self.stages}
        powers = 1 if self.constant else 3
        return {"LINEARIZED": 1, "NG": powers, "NK": n * n + n * powers + n * (n + 1) // 2 + nz}

    def products(self, n: int) -> int:
        """Return multiplications in products of matrices of a step, beside those of a matrix exponential."""
        return 2 * self.stages * n**3 if self.stages else n**3 // 3 + 2 * n**2


def linearised_loops(model: StochasticModel, newton: int, stepping: Stepping, looks: int) -> FilterLoops:
    """Return the loops of the extended filter, which linearises once for each sample, or of the iterated one."""
    closed = AlgebraicModel(model, newton)
    f, A, W, z = closed.rates(*closed.step_symbols)
    rates = _dense("rates", closed.step_symbols, [f, A.T, lower_triangle(W), z])
    a, x, z_seen = _seen_symbols(closed)
    y, H, R, solved = seen_where_measured(closed, a, x, z_seen)
    measure = _dense("measure", [a.t, x, z_seen, a.u, a.q, a.mask], [y, H.T, R, solved])
    functions = (
        PointFunction("gr_rates", rates, STEP_ARGUMENTS, ("f", "A", "W", "z_out"), MOVING_ARGUMENTS),
        PointFunction("gr_measure", measure, MEASUREMENT_ARGUMENTS, ("y", "H", "R", "z_out"), MOVING_ARGUMENTS),
        *_settling(closed, 1 if stepping.stages else 2),
    )
    sizes = {**_sizes(closed, stepping), "LOOKS": looks}
    calls, products = {"gr_rates": stepping.evaluations, "gr_measure": looks}, linearised_products(model, stepping)
    return FilterLoops("gr_filter_extended.h", functions, sizes, calls, products, _moving(A))


def unscented_loops(model: StochasticModel, newton: int, stepping: Stepping, sigma: SigmaPoints) -> FilterLoops:
    """Return the loops of the unscented filter of a model that does not jump with a state."""
    closed = AlgebraicModel(model, newton)
    f, W, z = closed.flow(*closed.step_symbols)
    A = closed.rates(*closed.step_symbols)[1]
    a, x, z_seen = _seen_symbols(closed)
    y, _, R, solved = seen_where_measured(closed, a, x, z_seen)
    seen = _dense("seen", [a.t, x, z_seen, a.u, a.q, a.mask], [y, R, solved])
    functions = (
        PointFunction(
            "gr_flow",
            _dense("flow", closed.step_symbols, [f, lower_triangle(W), z]),
            STEP_ARGUMENTS,
            ("f", "W", "z_out"),
            MOVING_ARGUMENTS,
        ),
        PointFunction(
            "gr_slope", _dense("slope", closed.step_symbols, [A.T]), STEP_ARGUMENTS, ("A",), MOVING_ARGUMENTS
        ),
        PointFunction("gr_seen", seen, MEASUREMENT_ARGUMENTS, ("y", "R", "z_out"), MOVING_ARGUMENTS),
        *_settling(closed, 2),
        *_tangency(model),
    )
    spread, means, covariances = sigma.weights(model.n)
    sizes = {
        **_sizes(closed, stepping),
        "SPREAD": float.hex(spread), "CENTRE": float.hex(float(means[0])),
        "OTHERS": float.hex(1 / (2 * sigma.alpha**2 * (model.n + sigma.kappa))),
        "CENTRE_SPREAD": float.hex(float(covariances[0])),
    }  # fmt: skip
    points, evaluations = 2 * model.n + 1, stepping.evaluations
    calls = {"gr_flow": evaluations * points, "gr_slope": evaluations, "gr_seen": points}
    products = unscented_products(model, stepping)
    return FilterLoops("gr_filter_sigma.h", functions, sizes, calls, products, _moving(A))


def linearised_products(model: StochasticModel, stepping: Stepping) -> int:
    """Return multiplications in products of matrices of a step and an update: a solution, and the moments after a
    sample.
    """
    n, ny = model.n, len(model.outputs)
    return stepping.products(n) + 4 * ny * n**2


def unscented_products(model: StochasticModel, stepping: Stepping) -> int:
    """Return the same over sigma points."""
    n, ny, points = model.n, len(model.outputs), 2 * model.n + 1
    return stepping.evaluations * points * n**2 + points * ny * (n + ny)


def _moving(A: ca.SX) -> tuple[int, ...]:
    """Return 1 for entries that are not zero whatever the arguments, row by row."""
    return tuple(int(not entry.is_zero()) for entry in ca.vertsplit(ca.vec(ca.densify(A.T))))


def _sizes(closed: AlgebraicModel, stepping: Stepping) -> dict[str, int | str]:
    m, n, nz = closed.model, closed.model.n, closed.packing.nz
    sizes: dict[str, int | str] = {
        "NS": closed.packing.size, "NY": len(m.outputs), "NU": int(m.u.numel()), "NQ": int(m.q.numel()), "NM": n,
        "NZ": nz, **stepping.sizes(n, nz),
    }  # fmt: skip
    if not ca.depends_on(m.drift, m.X) and not m.z.numel():
        sizes["STILL"] = 1
    if m.constraints.numel():
        sizes["CONSTRAINED"] = 1
    return sizes


def _settling(closed: AlgebraicModel, per_step: int) -> list[PointFunction]:
    """Return how moments come on the constraints, and algebraic unknowns to their solution, after a step and an update.

    per_step : corrections after a step
    """
    model, found = closed.model, []
    if model.constraints.numel():
        projection, s = ConstraintProjection(model, per_step), augmented(model)
        nominal = ca.SX.sym("nominal", s.nx)
        at = [s.t, s.x, s.u, s.p, nominal]
        for name, onto in (("gr_on_step", projection.onto_after_step), ("gr_on_update", projection.onto_after_update)):
            x, T = onto(*at)
            found.append(PointFunction(name, _dense("onto", at, [x, T.T]), ON_CONSTRAINTS, ("x_out", "T"), ("x", "q")))
    if model.z.numel():
        for name, own in (("gr_solve_step", closed), ("gr_solve_update", closed.restarting)):
            function = _dense("z", own.symbols, [own.z])
            found.append(PointFunction(name, function, POINT_ARGUMENTS, ("z_out",), MOVING_ARGUMENTS))
    return found


def _tangency(model: StochasticModel) -> list[PointFunction]:
    """Return the projector on the tangent of hidden constraints and how it turns, row by row (``projection``)."""
    if not model.constraints.numel():
        return []
    s = augmented(model)
    nominal, c = ca.SX.sym("nominal", s.nx), ca.SX.sym("c", s.nx)
    slope = ca.jacobian(project(s, s.t, s.x, s.u, s.p, nominal), s.x)
    turn = ca.jacobian(ca.mtimes(slope, c), s.x)
    tangent = _dense("tangent", [s.t, s.x, s.u, s.p, nominal], [slope.T])
    turning = _dense("turning", [s.t, s.x, c, s.u, s.p, nominal], [turn.T])
    return [
        PointFunction("gr_tangent", tangent, ON_CONSTRAINTS, ("Pi",), ("x", "q")),
        PointFunction("gr_turning", turning, ("t", "x", "c", "u", "q", "nominal"), ("N",), ("x", "c", "q")),
    ]


def _seen_symbols(closed: AlgebraicModel) -> tuple[UpdateSymbols, ca.SX, ca.SX]:
    packing = closed.packing
    return UpdateSymbols.of(closed.model, packing), ca.SX.sym("x", packing.n), ca.SX.sym("z", packing.nz)


def _dense(name: str, arguments: list[ca.SX], outputs: list[ca.SX]) -> ca.Function:
    """Return the function with the entries of each output in one column."""
    return ca.Function(name, arguments, ca.cse([ca.densify(ca.vec(o)) for o in outputs]))
