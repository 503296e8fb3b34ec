"""The extended Kalman filter of a nonlinear model, in redundant coordinates, with exact derivatives.

Between samples the mean follows the frozen Runge–Kutta step with projection on the constraints (``compilation.step``),
and the covariance its Jacobian:

    x ← π(r(x))        P ← Π (J P Jᵀ + Q) Πᵀ,    J = ∂r/∂x,  Π = ∂π/∂x

r is the step without projection, Q the noise of the step: the moment equation Q' = A Q + Q Aᵀ + B Bᵀ from zero, by the
same stages. At a sample h and H = ∂h/∂x are taken at the predicted mean; the updated mean is projected until it lies on
the constraints, P ← Π P Πᵀ with the tangent projector there. Steps per cell are chosen once (``choose_substeps``) and
kept, so the likelihood is a smooth function of the unknowns, and its derivatives are those of every formula above.
Noise factors that depend on states are taken at the mean.

Reference: A. H. Jazwinski, Stochastic Processes and Filtering Theory (1970), section 8.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from grisaille.compilation.evaluation import flat_function
from grisaille.compilation.step import project, runge_kutta
from grisaille.errors import EstimationError
from grisaille.filtering.duals import Floats
from grisaille.filtering.kalman import States, Sums, Totals, finish, update
from grisaille.filtering.record import Cells, Record, cut_into_cells
from grisaille.filtering.start import start_covariance
from grisaille.filtering.stochastic import StochasticModel
from grisaille.structure.system import System

PROJECTIONS = 3
"""Gauss–Newton corrections after an update: each squares the violation."""
MOST_SUBSTEPS = 64
SUBSTEP_TOLERANCE = 1e-4
"""Change of log L, relative to 1 + |log L|/1000, when the steps are halved, below which they are short enough: the next
change is a sixteenth of it."""


class ExtendedFilter:
    """Filters one record again and again, at different values of q."""

    def __init__(
        self,
        model: StochasticModel,
        record: Record,
        nominal: Floats,
        initial_covariance: Any = "first-sample",
        substeps: int = 1,
    ) -> None:
        if isinstance(initial_covariance, str) and initial_covariance == "diffuse":
            raise EstimationError(
                f"initial_covariance='diffuse' needs a linear model, but {model.nonlinear or 'this'} is not linear: "
                f"give variances, {{state: variance}}."
            )
        refuse_hidden_disturbances(model)
        self.model, self.record, self.initial_covariance, self.substeps = model, record, initial_covariance, substeps
        self.system = _augmented(model)
        self.nominal = np.concatenate([nominal, np.ones(model.n - model.nx)])
        self._functions: dict[tuple[str, int], Any] = {}
        self._cells: Cells | None = None

    def cells(self, q: Floats) -> Cells:
        """Made once, unless formulas of time switch at instants that depend on parameters."""
        system = self.model.structure.system
        if self._cells is None or system.switches.numel() + system.bends.numel():
            self._cells = cut_into_cells(self.record.times, self.record.signals(q[: system.np]))
        return self._cells

    def run(
        self, q: Floats, dq: Floats, x0: Floats, *, robust: float = np.inf, condition: bool = False,
        states: list[States] | None = None,
    ) -> Sums:  # fmt: skip
        """One pass over the data; x0, (1 + ns, nx), is the start of the plant's states."""
        with np.errstate(all="ignore"):  # a model that runs away is a failure, not a warning
            return self._run(q, dq, x0, robust, condition, states)

    def _run(
        self, q: Floats, dq: Floats, x0: Floats, robust: float, condition: bool, states: list[States] | None
    ) -> Sums:
        cells, n, ns = self.cells(q), self.model.n, len(dq)
        x = np.zeros((1 + ns, n))
        x[:, : self.model.nx] = x0
        P = self._start(cells, q, dq, x)
        total = Totals(ns, 1, self.record.y.shape, robust)
        waiting, kept = condition, []
        signals = np.concatenate([cells.at(np.zeros(1))[1][:, 0], cells.end[None]])
        for k, sample in enumerate(cells.sample_at.tolist()):
            if k:
                x, P = self._over_cell(cells, k - 1, q, dq, x, P)
            before = x[0].copy(), P[0].copy()
            seen = np.flatnonzero(np.isfinite(self.record.y[sample])) if sample >= 0 else np.zeros(0, dtype=int)
            if len(seen):
                found = self._at_sample(cells.bounds[k], signals[k], sample, seen, q, dq, x, P)
                if found is None or not np.isfinite(found.P).all():
                    total.failed = sample
                    break
                m, P = total.add(sample, seen, found, counted=not waiting)
                x, P = self._corrected(cells.bounds[k], signals[k], q, dq, m[:, :, 0], P)
                waiting = False
            kept.append((*before, x[0].copy(), P[0].copy()))
        if states is not None:
            states.append(States(*(np.array(part) for part in zip(*kept, strict=True))))
        return total.sums()

    def _over_cell(self, cells: Cells, k: int, q: Floats, dq: Floats, x: Floats, P: Floats) -> tuple[Floats, Floats]:
        m = self.substeps
        t, u = cells.at(np.arange(2 * m + 1) / (2 * m))
        h = cells.lengths[k] / m
        for i in range(m):
            x, P = self._call("step", [t[k, 2 * i], h, *u[k, 2 * i : 2 * i + 3], self.nominal], q, dq, x, P)
        return x, P

    def _corrected(self, t: float, u: Floats, q: Floats, dq: Floats, x: Floats, P: Floats) -> tuple[Floats, Floats]:
        if not self.system.nc:
            return x, P
        return self._call("correct", [t, u, self.nominal], q, dq, x, P)

    def _at_sample(
        self, t: float, u: Floats, sample: int, seen: Any, q: Floats, dq: Floats, x: Floats, P: Floats
    ) -> Any:
        ny, n, nd = self.record.y.shape[1], self.model.n, len(x)
        values = self._evaluate("measure", len(dq), [t, u], q, dq, x, None)
        h, H, R = values[:, :ny], values[:, ny : ny + ny * n], values[:, ny + ny * n :]
        H, R = H.reshape(nd, n, ny).transpose(0, 2, 1)[:, seen], R.reshape(nd, ny, ny)[:, seen[:, None], seen]
        scale = 1 / self.record.weights[sample, seen]
        e = -h[:, seen, None]
        e[0, :, 0] += self.record.y[sample, seen]
        return update(x[:, :, None], P, e, H, R * scale[:, None] * scale)

    def _start(self, cells: Cells, q: Floats, dq: Floats, x: Floats) -> Floats:
        n, nc, nd = self.model.n, self.system.nc, len(x)
        u = cells.at(np.zeros(1))[1][0, 0]
        values = self._evaluate("linearize", len(dq), [cells.bounds[0], u], q, dq, x, None)
        A, W, C = (part.reshape(nd, n, -1).transpose(0, 2, 1) for part in np.split(values, [n * n, 2 * n * n], axis=1))
        first, mean = np.zeros_like(A), x
        if isinstance(self.initial_covariance, str) and self.initial_covariance == "first-sample":
            for k in range(int(np.flatnonzero(cells.sample_at >= 0)[1])):
                mean, first = self._over_cell(cells, k, q, dq, mean, first)
        P = start_covariance(self.model, self.initial_covariance, A, W, first, C.reshape(nd, nc, n))[0]
        # what built up over the first interval is tangent at its end: turn it to where the record begins
        return self._corrected(cells.bounds[0], u, q, dq, x, P)[1]

    def _call(
        self, name: str, fixed: Sequence[Any], q: Floats, dq: Floats, x: Floats, P: Floats
    ) -> tuple[Floats, Floats]:
        n = self.model.n
        values = self._evaluate(name, len(dq), fixed, q, dq, x, P)
        return values[:, :n], values[:, n:].reshape(len(values), n, n)

    def _evaluate(
        self, name: str, ns: int, fixed: Sequence[Any], q: Floats, dq: Floats, x: Floats, P: Floats | None
    ) -> Floats:
        """All outputs of a function as duals, (1 + ns, entries)."""
        if (name, ns) not in self._functions:
            self._functions[name, ns] = flat_function(getattr(self, f"_build_{name}")(ns))
        moving, seeds = [x[0], q], [x[1:], dq]
        if P is not None:
            moving, seeds = [x[0], P[0], q], [x[1:], P[1:].reshape(ns, P.shape[1] * P.shape[2]), dq]
        found = self._functions[name, ns](*fixed, *moving, *seeds)
        return np.concatenate([found[0][None], found[1].reshape(ns, len(found[0]))]) if ns else found[0][None]

    def _build_step(self, ns: int) -> ca.Function:
        s, n = self.system, self.model.n
        t, h, x, P = ca.SX.sym("t"), ca.SX.sym("h"), ca.SX.sym("x", n), ca.SX.sym("P", n, n)
        u = [ca.SX.sym(f"u{i}", s.nu) for i in range(3)]
        q, nominal = ca.SX.sym("q", s.np), ca.SX.sym("nominal", n)
        moved = runge_kutta(s, t, h, x, u[0], u[1], u[2], q)
        J = ca.jacobian(moved, x)
        Q = _step_noise(self.model, t, h, x, u, q)
        after, Pi = _projection(s, 1)(t + h, moved, u[2], q, nominal)
        covariance = ca.mtimes([Pi, ca.mtimes([J, P, J.T]) + Q, Pi.T]) if s.nc else ca.mtimes([J, P, J.T]) + Q
        return _with_directions([t, h, *u, nominal], [x, P, q], [after, covariance], ns)

    def _build_correct(self, ns: int) -> ca.Function:
        s, n = self.system, self.model.n
        t, x, P = ca.SX.sym("t"), ca.SX.sym("x", n), ca.SX.sym("P", n, n)
        u, q, nominal = ca.SX.sym("u", s.nu), ca.SX.sym("q", s.np), ca.SX.sym("nominal", n)
        after, _ = _projection(s, PROJECTIONS)(t, x, u, q, nominal)
        _, tangent = _projection(s, 1)(t, after, u, q, nominal)
        return _with_directions([t, u, nominal], [x, P, q], [after, ca.mtimes([tangent, P, tangent.T])], ns)

    def _build_measure(self, ns: int) -> ca.Function:
        m = self.model
        return _with_directions([m.t, m.u], [m.X, m.q], [m.measured, ca.jacobian(m.measured, m.X), m.variance], ns)

    def _build_linearize(self, ns: int) -> ca.Function:
        m = self.model
        A, W, C = ca.jacobian(m.drift, m.X), ca.mtimes(m.noise, m.noise.T), ca.jacobian(m.constraints, m.X)
        return _with_directions([m.t, m.u], [m.X, m.q], [A, W, C], ns)


def refuse_hidden_disturbances(model: StochasticModel) -> None:
    """A disturbance that enters as w² has no gain at w = 0: a linearised filter would never see it."""
    own = {name.rpartition("[")[0] for name in model.names[model.nx :]}
    xw = model.X[model.nx :]
    seen = ca.vertcat(model.drift[: model.nx], model.measured)
    for name in own:
        places = [
            k - model.nx for k, full in enumerate(model.names) if k >= model.nx and full.rpartition("[")[0] == name
        ]
        gain = ca.densify(ca.jacobian(seen, ca.vertcat(*(xw[k] for k in places))))
        at_zero = ca.substitute([gain], [xw], [ca.SX.zeros(xw.numel())])[0]
        if not ca.depends_on(seen, ca.vertcat(*(xw[k] for k in places))):
            continue
        if _vanishes(ca.Function("gain", model.arguments, [at_zero])):
            raise EstimationError(
                f"The disturbance {name} has no linear effect where it is zero (it enters as {name}**2 or alike), so "
                f"an extended Kalman filter cannot see it. Use gr.SimulatedPEM(), which simulates it."
            )


def choose_substeps(filter: ExtendedFilter, q: Floats, x0: Floats) -> int:
    """Steps per cell from which on halving them does not move log L."""
    nothing = np.zeros((0, len(q)))
    filter.substeps = 1
    value = finish(filter.run(q, nothing, x0)).value
    while True:
        filter.substeps *= 2
        finer = finish(filter.run(q, nothing, x0)).value
        if np.isfinite(finer) and abs(finer - value) < SUBSTEP_TOLERANCE * (1 + 1e-3 * abs(finer)):
            return filter.substeps
        if filter.substeps >= MOST_SUBSTEPS:
            raise EstimationError(
                f"The extended filter needs more than {MOST_SUBSTEPS} steps between samples at the guess (log L = "
                f"{finer:.6g}): the model is too stiff for explicit steps, or runs away. Try another guess, or set "
                f"gr.KalmanML(substeps=…)."
            )
        value = finer


def _augmented(model: StochasticModel) -> System:
    system = model.structure.system
    return replace(
        system, x=model.X, p=model.q, rhs=model.drift, constraints=model.constraints, state_names=model.names,
        parameter_names=model.quantities,
    )  # fmt: skip


def _step_noise(model: StochasticModel, t: ca.SX, h: ca.SX, x: ca.SX, u: Sequence[ca.SX], q: ca.SX) -> ca.SX:
    """Q' = A Q + Q Aᵀ + B Bᵀ from zero over one step, by classical Runge–Kutta beside the mean."""
    arguments = model.arguments
    f = ca.Function("f", arguments, [model.drift])
    A = ca.Function("A", arguments, [ca.jacobian(model.drift, model.X)])
    W = ca.Function("W", arguments, [ca.mtimes(model.noise, model.noise.T)])
    half, total, k, slope = h / 2, 0, ca.SX.zeros(model.n), ca.SX.zeros(model.n, model.n)
    for length, offset, signal, weight in ((0, 0, 0, 1), (half, half, 1, 2), (half, half, 1, 2), (h, h, 2, 1)):
        here, Q = [t + offset, x + length * k, u[signal], q], length * slope
        k, moved = f(*here), ca.mtimes(A(*here), Q)
        slope = moved + moved.T + W(*here)
        total = total + weight * slope
    return total * (h / 6)


def _projection(system: System, count: int) -> ca.Function:
    """The projected point and its Jacobian."""
    t, x, u = ca.SX.sym("t"), ca.SX.sym("x", system.nx), ca.SX.sym("u", system.nu)
    p, nominal = ca.SX.sym("p", system.np), ca.SX.sym("nominal", system.nx)
    after = x
    for _ in range(count if system.nc else 0):
        after = project(system, t, after, u, p, nominal)
    return ca.Function("project", [t, x, u, p, nominal], [after, ca.densify(ca.jacobian(after, x))])


def _with_directions(fixed: list[ca.SX], moving: list[ca.SX], outputs: list[ca.SX], ns: int) -> ca.Function:
    """Outputs in one column, and their derivatives along seeds of the moving arguments, one column per direction."""
    column = ca.densify(ca.vertcat(*(ca.vec(ca.densify(o)) for o in outputs)))
    seeds = [ca.SX.sym(f"d{i}", m.numel(), ns) for i, m in enumerate(moving)]
    arguments = [*fixed, *moving, *seeds]
    if not ns:
        return ca.Function("f", arguments, ca.cse([column]))
    by = ca.vertcat(*(ca.vec(m) for m in moving))
    along = ca.densify(ca.jtimes(column, by, ca.vertcat(*seeds)))
    return ca.Function("f", arguments, ca.cse([column, along]))


def _vanishes(function: ca.Function) -> bool:
    random = np.random.default_rng(11)
    for _ in range(5):
        values = [random.uniform(0.3, 1.7, function.size_in(i)) for i in range(function.n_in())]
        found = np.array(function(*values).full())
        if np.any(np.abs(found[np.isfinite(found)]) > 1e-12):
            return False
    return True
