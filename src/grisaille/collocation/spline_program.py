"""The criterion of one experiment over the coefficients of its splines and its unknowns, with exact derivatives.

    J(β, θ) = ½ Σ_k |R_k^{-1/2} (y_k − h(x_k, θ))|² + ½ ∫ |W^{-1/2} (ẋ − f(x, θ))|² dt  (+ the start of disturbances)

R is the variance of measurement noise, W = B Bᵀ the intensity of the disturbances, the integral a sum over quadrature
points. The curvature is a band (by β), a border (by β and θ) and a corner (by θ); of Gauss–Newton, or exact. Values at
the first instant that are known move with θ, not with β: they are *held*. Reference: M. S. Varziri, Parameter
Estimation in Stochastic Dynamic Models (2008), eqs. (4.5), (4.24).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.collocation import banded
from grisaille.collocation.array_types import Floats, Integers, Mask
from grisaille.collocation.normal_equations import CollocationPoints, NormalEquations, ResidualBlock
from grisaille.collocation.point_formulas import Formulas
from grisaille.collocation.quadrature import make_quadrature
from grisaille.collocation.spline_mesh import SplineKnots, SplineMesh
from grisaille.collocation.trial_record import CollocationRecord, RecordValues
from grisaille.errors import EstimationError
from grisaille.experiment.record_cells import cut_into_cells


@dataclass(frozen=True, eq=False)
class ParameterQuadratic:
    """The criterion at one point with slope and curvature by θ at fixed β (known starts change with θ)."""

    objective: float
    slope: Floats
    corner: Floats


@dataclass(frozen=True, eq=False)
class LinearisedProgram(ParameterQuadratic):
    """With derivatives by β; held coefficients are still among the rows."""

    beta: Floats
    gradient: Floats
    band: Floats
    border: Floats
    data: ResidualBlock
    model: ResidualBlock
    errors: Floats
    """(times, outputs) y − h, NaN where not measured."""


class SplineProgram:
    """One experiment on its knots."""

    def __init__(self, record: CollocationRecord, knots: SplineKnots, formulas: Formulas) -> None:
        self.record, self.knots, self.formulas = record, knots, formulas
        self.mesh = mesh = knots.mesh
        self.n, table = record.stochastic.n, record.table
        cells = cut_into_cells(mesh.bounds, table)
        rule = make_quadrature(knots.quadrature, cells.bounds, max(s.order for s in mesh.splines))
        t, u = cells.at(rule.fractions)
        inside = np.repeat((cells.bounds[:-1] + cells.bounds[1:]) / 2, len(rule.fractions))
        self.weights = rule.weights.ravel()
        self.cells = CollocationPoints(
            t.ravel(), u.reshape(t.size, -1), mesh.local(inside, t.ravel()), len(rule.fractions)
        )
        seen = np.flatnonzero(np.isfinite(record.y).any(axis=1))
        at = record.times[seen]
        self.samples, self.seen = CollocationPoints(at, table.along(at), mesh.at(at), 1), seen
        widths = [np.ptp(p.local.index, axis=1).max(initial=0) for p in (self.cells, self.samples)]
        self.width = int(max(*widths, np.ptp(mesh.first)))
        self._roots: dict[str, tuple[bytes, Floats]] = {}

    @property
    def noise_states(self) -> Floats:
        """(samples, n) states in noise formulas."""
        return np.array(self.knots.noise_states or np.zeros((len(self.samples.t), self.n)))

    def on(self, knots: SplineKnots) -> SplineProgram:
        """Return the same experiment on other knots."""
        return SplineProgram(self.record, knots, self.formulas)

    def moved_to(self, mesh: SplineMesh, beta: Floats) -> tuple[SplineProgram, Floats]:
        """Return the same experiment and trajectory on a mesh that contains the knots of its own."""
        frozen = self.noise_states if self.record.noise_follows else None
        return self.on(SplineKnots.on(mesh, self.knots.quadrature, frozen)), self.mesh.moved_to(mesh, beta)

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """Declared bounds of states as bounds of their coefficients, between which a spline stays."""
        low, high = np.full(self.mesh.count, -np.inf), np.full(self.mesh.count, np.inf)
        model = self.record.stochastic
        for name, place in zip(model.names[: model.nx], self.mesh.places, strict=False):
            variable = model.structure.model.variables.get(name)
            if variable is not None and variable.bounds is not None:
                lower, upper = variable.bounds
                low[place] = -np.inf if lower is None else lower
                high[place] = np.inf if upper is None else upper
        return low, high

    def frozen(self, beta: Floats) -> SplineProgram:
        """Return the program with noise formulas evaluated on another trajectory."""
        if not self.record.noise_follows:
            return self
        return self._but(knots=SplineKnots.on(self.mesh, self.knots.quadrature, self.samples.local.values(beta)))

    def refrozen(self, beta: Floats, given: RecordValues) -> tuple[SplineProgram, float]:
        """Return the same, and the largest relative change of a standard deviation."""
        other = self.frozen(self.placed(beta, given))
        if other is self:
            return self, 0.0
        before, size = (np.abs(np.diagonal(p._root("measured", given), axis1=1, axis2=2)) for p in (self, other))
        return other, float(np.abs((before - size) / np.maximum(size, 1e-300))[size > 0].max(initial=0.0))

    def with_experiment(self, trial: BoundExperiment) -> SplineProgram:
        """Return the same mesh and formulas for other measurements at the same times and gaps."""
        return self._but(record=self.record.with_experiment(trial))

    def _but(self, **changes: CollocationRecord | SplineKnots) -> SplineProgram:
        other = copy.copy(self)
        other.__dict__.update(changes, _roots={})
        return other

    def held(self, given: RecordValues) -> Mask:
        """Return coefficients that are known values at the first instant."""
        held = np.zeros(self.mesh.count, dtype=bool)
        held[self.mesh.first[np.isfinite(given.start)]] = True
        return held

    def placed(self, beta: Floats, given: RecordValues) -> Floats:
        """Return β with the known values at the first instant in place."""
        known = np.isfinite(given.start)
        placed = beta.copy()
        placed[self.mesh.first[known]] = given.start[known]
        return placed

    def start_slopes(self, given: RecordValues) -> Floats:
        """Return ∂β/∂θ of the known values at the first instant, (coefficients, p)."""
        known, S = np.isfinite(given.start), np.zeros((self.mesh.count, len(given.dstart)))
        S[self.mesh.first[known]] = given.dstart[:, known].T
        return S

    def linearised(self, beta: Floats, given: RecordValues, *, exact: bool = False) -> LinearisedProgram:
        """Return J with its gradient and curvature; not finite where a trial is so far off that something overflows."""
        beta, sums = self.placed(beta, given), NormalEquations(self.mesh.count, self.width, len(given.dq))
        with np.errstate(all="ignore"):
            model, _ = self._added(sums, "drift", beta, given, exact)
            data, misfit = self._added(sums, "measured", beta, given, exact)
            x, precision = self._start_prior(beta, given)
            if len(x):
                places = self.mesh.first[self.start_states()]
                _add_start(sums.band, places, precision)
                sums.gradient[places] += precision @ x
            objective = 0.5 * float((model.residuals**2).sum() + (data.residuals**2).sum() + x @ precision @ x)
            errors = np.full(self.record.y.shape, np.nan)
            errors[self.seen] = misfit
            slope, border, corner = self._with_starts(given, sums)
        return LinearisedProgram(objective, slope, corner, beta, sums.gradient, sums.band, border, data, model, errors)

    def on_trajectory(self, beta: Floats, given: RecordValues) -> ParameterQuadratic:
        """Return the same by θ alone, of Gauss–Newton, at a trajectory that stays."""
        beta, p = self.placed(beta, given), len(given.dq)
        x, precision = self._start_prior(beta, given)
        objective, slope, corner = 0.5 * float(x @ precision @ x), np.zeros(p), np.zeros((p, p))
        with np.errstate(all="ignore"):
            for what in ("drift", "measured"):
                local, U = self._points(what).local, self._root(what, given)
                _, r, by_state, by_theta = self._residuals(what, beta, given)
                if given.dstart.any():
                    by_beta = by_state @ local.phi - (local.slope if what == "drift" else 0.0)
                    by_theta = by_theta + by_beta @ self.start_slopes(given)[local.index]
                rho, J = _applied(U, np.nan_to_num(r)).ravel(), -(U @ by_theta).reshape(-1, p)
                objective, slope, corner = objective + 0.5 * float(rho @ rho), slope + rho @ J, corner + J.T @ J
        return ParameterQuadratic(objective, slope, corner)

    def _points(self, what: str) -> CollocationPoints:
        return self.cells if what == "drift" else self.samples

    def _residuals(self, what: str, beta: Floats, given: RecordValues) -> tuple[Floats, Floats, Floats, Floats]:
        """Return X at the points, ẋ − f or y − h there (NaN where not measured), and ∂/∂X and ∂/∂θ of f or h."""
        p = self._points(what)
        X = p.local.values(beta)
        value, by_state, by_q = self.formulas.values(what, p.t, X, p.u, given.q)
        target = p.local.slopes(beta) if what == "drift" else self.record.y[self.seen]
        if what == "measured" and not np.isfinite(value).all():
            missing = np.isnan(target)[:, :, None]  # an output may be undefined where it was not measured
            by_state, by_q = np.where(missing, 0.0, by_state), np.where(missing, 0.0, by_q)
        return X, target - value, by_state, by_q @ given.dq[:, list(self.formulas.moved)].T

    def _added(
        self, sums: NormalEquations, what: str, beta: Floats, given: RecordValues, exact: bool
    ) -> tuple[ResidualBlock, Floats]:
        """Return the share of the model or of the data, and its residuals as they are."""
        points, U = self._points(what), self._root(what, given)
        X, r, by_state, by_theta = self._residuals(what, beta, given)
        there, curved = np.nan_to_num(r) if what == "measured" else r, None
        if exact:
            weight = -(_applied(U, there)[:, None, :] @ U)[:, 0]
            H = self.formulas.second(what, points.t, X, points.u, given.q, weight)
            curved = (H, given.dq[:, list(self.formulas.moved)])
        return sums.add(points, U, there, by_state, by_theta, X, moving=what == "drift", curved=curved), r

    def _root(self, what: str, given: RecordValues) -> Floats:
        """Return U with UᵀU = weight · W⁻¹ (of the quadrature), or R⁻¹ of what was measured; kept while q stays."""
        key = given.q[self.formulas.levels(what)].tobytes()
        if what not in self._roots or self._roots[what][0] != key:
            points = self._points(what)
            W = self.formulas.covariance(what, points.t, self.covariance_states(what), points.u, given.q)
            self._roots[what] = (key, self._whitened(what, W))
        return self._roots[what][1]

    def covariance_states(self, what: str) -> Floats:
        """Return states at the points that formulas of noise see: none in the intensity of disturbances."""
        return np.zeros((len(self.cells.t), self.n)) if what == "drift" else self.noise_states

    def _whitened(self, what: str, W: Floats) -> Floats:
        if what == "drift":
            return _inverse_root(W, self.record) * np.sqrt(self.weights)[:, None, None]
        missing = ~np.isfinite(self.record.y[self.seen])
        W = np.where(missing[:, :, None] | missing[:, None, :], np.eye(W.shape[1]), W)
        root = _inverse_root(W, self.record) * self.record.weights[self.seen][:, None, :]
        root[missing] = 0.0
        return root

    def start_states(self) -> Integers:
        """Return states of disturbances that start from their stationary distribution."""
        model = self.record.stochastic
        return np.array([model.nx + k for k, s in enumerate(model.starts) if s == "stationary"], dtype=np.int64)

    def _start_prior(self, beta: Floats, given: RecordValues) -> tuple[Floats, Floats]:
        """Return values at the start with a Gaussian distribution around zero, and its precision."""
        states = self.start_states()
        if not len(states):
            return np.zeros(0), np.zeros((0, 0))
        return beta[self.mesh.first[states]], np.asarray(np.linalg.inv(self.stationary(given)), dtype=float)

    def stationary(self, given: RecordValues) -> Floats:
        """Return stationary covariance of disturbances at q."""
        from grisaille.disturbance.constrained_stationarity import stationary

        states = self.start_states()
        t, u = self.cells.t[:1], self.cells.u[:1]
        zero = np.zeros((1, self.n))
        _, A, _ = self.formulas.values("drift", t, zero, u, given.q)
        W = self.formulas.covariance("drift", t, zero, u, given.q)
        inside = np.ix_(np.array([0]), states, states)
        return np.asarray(stationary(A[inside], W[inside], np.zeros((1, 0, len(states))), "The disturbance")[0])

    def stationary_slopes(self, given: RecordValues) -> Floats:
        """Return ∂P/∂θ of the stationary covariance, (p, states, states), by central differences."""
        slopes = []
        for direction in given.dq:
            moved = direction != 0
            sizes = np.abs(given.q[moved] / direction[moved])  # of θ itself: q may be a multiple of it
            h = 1e-5 * float(min(sizes[sizes > 0], default=1 / np.abs(direction[moved]).max(initial=1.0)))
            ends = [self.stationary(replace(given, q=given.q + side * h * direction)) for side in (1, -1)]
            slopes.append((ends[0] - ends[1]) / (2 * h))
        return np.array(slopes).reshape(len(given.dq), len(self.start_states()), len(self.start_states()))

    def prior_band(self, lin: LinearisedProgram, given: RecordValues) -> Floats:
        """Return the share of the disturbances in the Gauss–Newton band: the precision of the path before any data."""
        band = np.zeros_like(lin.band)
        p = self.cells
        J = lin.model.by_beta.reshape(len(p.t) // p.group, -1, p.local.index.shape[1])
        p.add_to_band(band, np.swapaxes(J, 1, 2) @ J)
        _, precision = self._start_prior(lin.beta, given)
        if len(precision):
            _add_start(band, self.mesh.first[self.start_states()], precision)
        return band

    def cell_errors(self, lin: LinearisedProgram) -> Floats:
        """Return, for every cell, the share of the criterion that varies inside it.

        What is left of the model, w = ẋ − f, is smooth between observations at the exact minimum. On too few knots it
        bends inside the cells instead: the part of ½ ∫ |w|²/Q that a straight line through a cell's points does not
        explain.
        """
        group = self.cells.group
        if group < 3:
            # two points always lie on a line: nothing can be said
            return np.zeros(len(lin.model.residuals) // group)
        weights, t = np.sqrt(self.weights).reshape(-1, group), self.cells.t.reshape(-1, group)
        rho = lin.model.residuals.reshape(-1, group, self.n)
        line = np.stack([weights, weights * (t - t.mean(axis=1, keepdims=True))], axis=2)
        Q, _ = np.linalg.qr(line)
        left = rho - Q @ (np.swapaxes(Q, 1, 2) @ rho)
        return np.asarray(0.5 * (left**2).sum(axis=(1, 2)))

    def _with_starts(self, given: RecordValues, sums: NormalEquations) -> tuple[Floats, Floats, Floats]:
        """Return derivatives by θ with known starts moving along: β_held = x₀(θ)."""
        known = np.isfinite(given.start)
        if not given.dstart[:, known].any():
            return sums.slope, sums.border, sums.corner
        S, AS = self.start_slopes(given), np.zeros((self.mesh.count, len(given.dstart)))
        reach = int(self.mesh.first.max()) + self.width + 1  # known starts are the first coefficients
        AS[:reach] = banded.times(sums.band[:, :reach], S[:reach])
        corner = sums.corner + S.T @ sums.border + sums.border.T @ S + S.T @ AS
        return sums.slope + S.T @ sums.gradient, sums.border + AS, corner


def _applied(U: Floats, r: Floats) -> Floats:
    return np.asarray((U @ r[:, :, None])[:, :, 0])


def _add_start(band: Floats, places: Integers, precision: Floats) -> None:
    """Add a symmetric block at a few coefficients."""
    for a, i in enumerate(places):
        for b, j in enumerate(places):
            if i >= j:
                band[i - j, j] += precision[a, b]


def _inverse_root(W: Floats, record: CollocationRecord) -> Floats:
    """Return L⁻¹ with L Lᵀ = W."""
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(W)))
    except np.linalg.LinAlgError:
        raise EstimationError(
            f"Experiment '{record.name}': a noise level is zero, negative or not finite, so its weight is infinite; "
            f"give positive scale= and noise=."
        ) from None
