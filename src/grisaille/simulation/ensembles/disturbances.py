"""The disturbances of a model, at values of its parameters, as the matrices that frozen runs need.

Numbers come from the exact discretisation and are those of ``sample_path``; their derivatives come from the same
discretisation as formulas (``disturbance.formulas``) with

    q = (parameters, scale(w₁), scale(w₂), …),        dF = ∂F/∂q · dq,  and likewise dL, dR, dC.

A scale that a caller gives (``"scale(w)"``) replaces the declared formula. A derivative that a spectrum does not have,
but that only observed quantities need, is left out together with those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import Cache, IdentityKey, LastValues
from grisaille.compilation.coloured_noise_source import ColouredNoise, ColouredNoiseLayout, NoiseFilterGroup
from grisaille.disturbance import (
    Process,
    Purpose,
    Stream,
    build_process,
    build_symbolic_process,
    correlation_matrix,
    discretize,
    distinct_steps,
    doublings,
    factorize,
    group_correlated,
    make_transitions,
    nonzero_pivots,
    start_root_symbolic,
    transition_symbolic,
)
from grisaille.model.expression import Expression, Name, as_expression, postorder
from grisaille.model.flat import FlatDisturbance, FlatModel
from grisaille.simulation.ensembles.hermite import mixing
from grisaille.structure.system import System

if TYPE_CHECKING:
    from grisaille.model.spectra import Spectrum

Floats = NDArray[np.float64]
RESOLUTION = 0.05
"""Default length of a grid cell, times the fastest rate of any filter."""


@dataclass(frozen=True)
class Draw:
    """Which random numbers: everything that selects a stream."""

    seed: int
    purpose: Purpose = Purpose.DATA
    antithetic: bool = False
    first: int = 0
    """Number of the first realization."""

    def stream(self, name: str) -> Stream:
        return Stream.of(self.seed, self.purpose, name, self.antithetic)


@dataclass(frozen=True, eq=False)
class DisturbanceValues:
    """The values at which disturbances are evaluated: parameters, given scales, and the derivatives of both."""

    parameters: Mapping[str, float]
    scales: Mapping[str, float] = field(default_factory=dict)
    """Disturbance → scale instead of the declared one."""
    dp: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(ns, np)"""
    dscales: Mapping[str, Floats] = field(default_factory=dict)
    """Disturbance → (ns,)"""

    def known(self) -> dict[str, float]:
        return {**self.parameters, **{f"scale({n})": v for n, v in self.scales.items()}}


@dataclass(frozen=True)
class DrivenComponent:
    """One signal made by a group: its place in u, the component and how often that is differentiated."""

    place: int
    component: int
    order: int


_WHITE_SLOPES: Cache[ca.Function] = Cache()


class Disturbances:
    """The filtered and the white disturbances that drive a system."""

    def __init__(self, model: FlatModel, system: System) -> None:
        self.model = model
        self.parameters = tuple(model.parameters)
        places = {(s.name, s.order): k for k, s in enumerate(system.signals) if s.kind == "disturbance"}
        undefined = _undefined(model, system)
        places = {signal: k for signal, k in places.items() if k not in undefined}
        self.infinite = _depending(system, undefined)
        """Observed names of infinite variance, which have no value at an instant."""
        self.groups: list[tuple[FlatDisturbance, ...]] = []
        self.driven: list[tuple[DrivenComponent, ...]] = []
        self.white: list[tuple[FlatDisturbance, ...]] = []
        for group in group_correlated(model.disturbances):
            names = [d.name for d in group]
            signals = [DrivenComponent(k, names.index(n), order) for (n, order), k in places.items() if n in names]
            if group[0].spectrum.is_white:
                self.white.append(group)
            elif signals:
                self.groups.append(group)
                self.driven.append(tuple(signals))
        self.last = LastValues()
        self._derivatives: dict[tuple[object, ...], ca.Function] = {}
        self._dependence: dict[tuple[object, ...], set[int]] = {}
        self._gains: tuple[DisturbanceValues, Floats] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(d.name for group in (*self.groups, *self.white) for d in group)

    @property
    def white_names(self) -> tuple[str, ...]:
        """In order of declaration."""
        return tuple(n for n, d in self.model.disturbances.items() if d.spectrum.is_white)

    def processes(self, values: DisturbanceValues) -> list[Process]:
        """Return every filtered group in numbers."""
        return [self._process(group, values) for group in self.groups]

    def fastest_rate(self, values: DisturbanceValues) -> float:
        """Return largest |pole| of any filter; zero without one."""
        return max((float(np.abs(np.linalg.eigvals(p.A)).max()) for p in self.processes(values)), default=0.0)

    def linear_loss(self, values: DisturbanceValues, step: float) -> float:
        """Return part of E w² that lines between points ``step`` apart lose: (1 − ρ(step))/3, the largest of any
        disturbance.

        Averaged over a cell, ((1 − f) w₀ + f w₁)² has the mean (2/3 + ρ/3) E w². Disturbances whose derivatives are
        used too are joined by smoother polynomials, and those that are not stationary have no E w² to lose.
        """
        processes = self.processes(values)

        def make() -> float:
            return self._loss(processes, step)

        return self.last.get(("loss",), (step, *(IdentityKey(p) for p in processes)), make)

    def _loss(self, processes: Sequence[Process], step: float) -> float:
        lost = [0.0]
        for process, signals in zip(processes, self.driven, strict=True):
            if not np.all(np.linalg.eigvals(process.A).real < 0):
                continue
            F, P = discretize(process.A, process.intensity, step)[0], process.start_covariance()
            now, later = np.diag(process.C @ P @ process.C.T), np.diag(process.C @ F @ P @ process.C.T)
            chained = {s.component for s in signals if s.order}
            lost += [(1 - later[i] / now[i]) / 3 for i in range(len(now)) if now[i] > 0 and i not in chained]
        return float(max(lost))

    def layout(self, values: DisturbanceValues, normals_per_noise: int = 1) -> ColouredNoiseLayout:
        """Return what the fused step must be built for."""
        return ColouredNoiseLayout(
            orders=tuple(sum(d.spectrum.order for d in group) for group in self.groups),
            outputs=tuple((s.place, g) for g, signals in enumerate(self.driven) for s in signals),
            white=tuple(normals_per_noise * len(group) for group in self.white),
            paired=normals_per_noise == 2,
            sensitive=self.is_moved(values),
            chains=self._chains(),
        )

    def is_moved(self, values: DisturbanceValues) -> bool:
        """Return whether any direction changes a filter."""
        dq = self._dq(values)
        if not dq.any():
            return False
        moving = np.flatnonzero(dq.any(axis=0))
        return any(moving_entry in self._depends(g, values) for g in range(len(self.groups)) for moving_entry in moving)

    def _chains(self) -> tuple[tuple[int, ...], ...]:
        """Return outputs that are one disturbance and its derivatives; signals hold all orders from zero up."""
        flat = [(g, s) for g, signals in enumerate(self.driven) for s in signals]
        chains: dict[tuple[int, int], list[int]] = {}
        for k, (g, s) in sorted(enumerate(flat), key=lambda entry: entry[1][1].order):
            chains.setdefault((g, s.component), []).append(k)
        return tuple(tuple(chain) for chain in chains.values() if len(chain) > 1)

    def _mix(self, steps: Floats, substeps: int) -> Floats | None:
        sizes = [len(chain) - 1 for chain in self._chains()]
        fractions = np.arange(1, 2 * substeps) / (2 * substeps)
        rows = [[[mixing(d, float(h), f).ravel() for d in sizes] for f in fractions] for h in steps]
        return np.array([[np.concatenate(r) for r in row] for row in rows]) if sizes else None

    def filters(self, values: DisturbanceValues, grid: Floats, draw: Draw, substeps: int = 1) -> ColouredNoise:
        """Return matrices and streams for a grid."""
        moved = self.is_moved(values)

        def make() -> ColouredNoise:
            steps, which = self._distinct_steps(grid)
            groups = tuple(self._group(g, values, grid, draw, moved) for g in range(len(self.groups)))
            white = tuple(draw.stream(group[0].name) for group in self.white)
            return ColouredNoise(which, groups, white, draw.first, mix=self._mix(steps, substeps))

        if moved:
            return make()
        key = (IdentityKey(grid), draw, *(IdentityKey(p) for p in self.processes(values)))
        return self.last.get(("filters", substeps), key, make)

    def _distinct_steps(self, grid: Floats) -> tuple[Floats, NDArray[np.int64]]:
        return self.last.get("steps", IdentityKey(grid), lambda: distinct_steps(grid))

    def white_gains(self, values: DisturbanceValues) -> Floats:
        """Return D of all white disturbances, in order of declaration, column by column: w dt = D dV."""
        if self._gains is not None and self._gains[0] is values:
            return self._gains[1]
        names = self.white_names
        D = np.zeros((len(names), len(names)))
        for group in self.white:
            at = [names.index(d.name) for d in group]
            D[np.ix_(at, at)] = self._process(group, values).D
        self._gains = values, D.ravel(order="F")
        return self._gains[1]

    def white_gain_directions(self, values: DisturbanceValues) -> Floats:
        """Return (ns, entries): the derivatives of ``white_gains``."""
        if not self.white:
            return np.zeros((len(values.dp), 0))
        dq, known, scales = self._dq(values), values.known(), frozenset(values.scales)
        inside = self.last.get("in correlations", (), lambda: _in_correlations(self.white))
        numbers = tuple(known[n] for n in inside)  # which decide the rank of correlations
        slopes = _WHITE_SLOPES.get((IdentityKey(self.model), scales, numbers), lambda: self._white_slopes(values))
        found = np.array(slopes(self._q(values)).full())
        return np.asarray(dq @ found.reshape(len(self.white_names) ** 2, dq.shape[1]).T)

    def _white_slopes(self, values: DisturbanceValues) -> ca.Function:
        """Return the derivatives of ``white_gains`` by q."""
        names, q = self.white_names, self._symbols()
        D = ca.SX(len(names), len(names))
        for group in self.white:
            at = [names.index(d.name) for d in group]
            D[at, at] = self._symbolic(group, values, q).D
        return ca.Function("d", [q], [ca.densify(ca.jacobian(ca.vec(ca.densify(D)), q))])

    def _process(self, group: Sequence[FlatDisturbance], values: DisturbanceValues) -> Process:
        """Return the process of a group, computed again only where a number that it contains has changed."""
        scales = [Name(f"scale({d.name})") if d.name in values.scales else _scale(d) for d in group]
        known = values.known()
        key = tuple(known[n] for n in self._inside(group, tuple(scales)))

        def make() -> Process:
            return build_process(*_declared(group), scales, _correlation(group), known)

        return self.last.get(("process", group[0].name, frozenset(values.scales)), key, make)

    def _inside(self, group: Sequence[FlatDisturbance], scales: tuple[Expression, ...]) -> tuple[str, ...]:
        """Return names of the numbers that a group of disturbances contains."""

        def make() -> tuple[str, ...]:
            formulas: list[Any] = [
                e for d in group for matrix in d.spectrum.state_space() for row in matrix for e in row
            ]
            formulas += [value for row in _correlation(group) or [] for value in row]
            plain = [f for f in (*formulas, *scales) if isinstance(f, Expression)]
            return tuple(dict.fromkeys(n.path for n in postorder(plain) if isinstance(n, Name)))

        return self.last.get(("inside", group[0].name), tuple(map(str, scales)), make)

    def _group(self, g: int, values: DisturbanceValues, grid: Floats, draw: Draw, moved: bool) -> NoiseFilterGroup:
        process, signals = self._process(self.groups[g], values), self.driven[g]
        steps = make_transitions(process, grid, self._distinct_steps(grid))
        C = np.array([process.output_map(s.order)[s.component] for s in signals])
        R = factorize(process.start_covariance())
        stream = draw.stream(process.names[0])
        if not moved:
            return NoiseFilterGroup(stream, steps.F, steps.L, R, C)
        return NoiseFilterGroup(stream, steps.F, steps.L, R, C, *self._slopes(g, values, process, steps.steps))

    def _slopes(
        self, g: int, values: DisturbanceValues, process: Process, steps: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        n, q, dq, ns = process.order, self._q(values), self._dq(values), len(self._dq(values))
        rows = len(self.driven[g])
        dF, dL = np.empty((2, len(steps), ns, n, n))
        for i, h in enumerate(steps):
            found = self._derivative(g, values, process, float(h), ns)(q, dq.T, h)
            dF[i], dL[i] = (np.array(m.full()).T.reshape(ns, n, n) for m in found[:2])
        dR, dC = (np.array(m.full()).T.reshape(ns, -1, n) for m in found[2:])
        return dF, dL, dR.reshape(ns, n, n), dC.reshape(ns, rows, n)

    def _derivative(self, g: int, values: DisturbanceValues, nominal: Process, h: float, ns: int) -> ca.Function:
        """Return directional derivatives, each matrix row by row; what is frozen in the formulas is part of the key."""
        Q = discretize(nominal.A, nominal.intensity, h)[1]
        ranks = nonzero_pivots(factorize(Q)), nonzero_pivots(factorize(nominal.start_covariance()))
        key = (g, ns, doublings(nominal.A, h), ranks, frozenset(values.scales))
        if key not in self._derivatives:
            q, length = self._symbols(), ca.SX.sym("h")
            dq = ca.SX.sym("dq", q.numel(), ns)
            process = self._symbolic(self.groups[g], values, q)
            maps = [process.output_map(s.order)[s.component, :] for s in self.driven[g]]
            F, L = transition_symbolic(process, nominal, length, h)
            matrices = [F, L, start_root_symbolic(process, nominal), ca.vertcat(*maps)]
            slopes = [ca.densify(ca.jtimes(ca.vec(ca.densify(m).T), q, dq)) for m in matrices]
            self._derivatives[key] = ca.Function("slopes", [q, dq, length], slopes)
        return self._derivatives[key]

    def _symbolic(self, group: Sequence[FlatDisturbance], values: DisturbanceValues, q: ca.SX) -> Process:
        """Return the process with q as symbols; a declared scale has the entry of its own added, which is zero."""
        names = (*self.parameters, *(f"scale({n})" for n in self.model.disturbances))
        place = {name: k for k, name in enumerate(names)}
        own = [Name(f"scale({d.name})") for d in group]
        scales = [o if d.name in values.scales else o + _scale(d) for o, d in zip(own, group, strict=True)]
        known = values.known()
        return build_symbolic_process(*_declared(group), scales, _correlation(group), lambda p: q[place[p]], known)

    def _depends(self, g: int, values: DisturbanceValues) -> set[int]:
        key = (g, frozenset(values.scales))
        if key not in self._dependence:
            q = self._symbols()
            process = self._symbolic(self.groups[g], values, q)
            all_entries = ca.vertcat(*(ca.vec(ca.densify(m)) for m in (process.A, process.B, process.C)))
            self._dependence[key] = set(ca.jacobian_sparsity(all_entries, q).get_col())
        return self._dependence[key]

    def _symbols(self) -> ca.SX:
        return ca.SX.sym("q", len(self.parameters) + len(self.model.disturbances))

    def _q(self, values: DisturbanceValues) -> Floats:
        scales = [values.scales.get(n, 0.0) for n in self.model.disturbances]
        return np.array([*(values.parameters[n] for n in self.parameters), *scales])

    def _dq(self, values: DisturbanceValues) -> Floats:
        ns = len(values.dp)
        still = np.zeros(ns)
        scales = [values.dscales.get(n, still) for n in self.model.disturbances]
        return np.column_stack([values.dp.reshape(ns, len(self.parameters)), *scales])


def _undefined(model: FlatModel, system: System) -> tuple[int, ...]:
    """Return places in u of derivatives of infinite variance that no equation of motion needs."""
    moving = ca.vertcat(system.rhs, system.residual, system.constraints)
    return tuple(
        k
        for k, s in enumerate(system.signals)
        if s.kind == "disturbance"
        and s.order >= max(1, model.disturbances[s.name].spectrum.pole_excess)
        and not ca.depends_on(moving, system.u[k])
    )


def _depending(system: System, places: tuple[int, ...]) -> tuple[str, ...]:
    if not places:
        return ()
    rows = set(ca.jacobian_sparsity(system.observed, system.u[list(places)]).row())
    return tuple(name for i, name in enumerate(system.observed_names) if i in rows)


def _declared(group: Sequence[FlatDisturbance]) -> tuple[list[str], list[Spectrum]]:
    return [d.name for d in group], [d.spectrum for d in group]


def _scale(disturbance: FlatDisturbance) -> Expression:
    return as_expression(1.0 if disturbance.scale is None else disturbance.scale)


def _in_correlations(groups: Sequence[Sequence[FlatDisturbance]]) -> tuple[str, ...]:
    """Return the names that the correlations of groups contain."""
    entries = [entry for group in groups for row in _correlation(group) or [] for entry in row]
    return tuple(dict.fromkeys(node.path for node in postorder(entries) if isinstance(node, Name)))


def _correlation(group: Sequence[FlatDisturbance]) -> list[list[Expression]] | None:
    return correlation_matrix(group) if len(group) > 1 else None
