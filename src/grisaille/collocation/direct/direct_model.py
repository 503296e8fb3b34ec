"""The model of direct collocation: states with those of coloured disturbances, driven by unit white noise v.

::

    X = (x, x_w)      X' = f(t, X, Z, v, u, q)      0 = g(t, X, Z, v, u, q)      y = h(t, X, Z, u, q) + e,  e ~ N(0, R)

White disturbances are w = D v, coloured ones C x_w with x_w' = A x_w + B v: every scale stands in the equations, and v
has the same intensity whatever is estimated, so that the weight of ∫|v|²/2 does not move. A disturbance that starts
stationary has x_w(t₀) = L ζ with L Lᵀ its stationary covariance and ζ ~ N(0, I). All remaining freedom of the start is
fixed by conditions s(X₀, Z₀) = start, so that hidden constraints and conditions together determine the first point.

Paths are smooth here, for which the ordinary chain rule holds; under Itô's reading of noise that multiplies states the
drift is corrected accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import casadi as ca

from grisaille.cache import Cache
from grisaille.disturbance import Process, build_process, group_correlated, start_root_symbolic
from grisaille.disturbance.free_levels import (
    correlation_of,
    filter_state_names,
    measurement_covariance,
    noise_root,
    scale_formulas,
    symbolic_process,
)
from grisaille.errors import EstimationError
from grisaille.laws import Law
from grisaille.model.flat import FlatDisturbance, FlatModel
from grisaille.model.lowering.lowering import lower
from grisaille.model.measurement.distributions import formulas_of, has_law
from grisaille.structure.reduction import Structure
from grisaille.structure.stochastic.diffusion import find_diffusion
from grisaille.structure.stochastic.white_noise import white_names

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ArgumentsByLaw:
    """An output that is measured by a law, with the law's arguments as formulas, the location first."""

    column: int
    law: Law
    paths: tuple[str, ...]
    formulas: ca.SX


@dataclass(frozen=True, eq=False)
class DirectModel:
    """Formulas over (t, X, Z, v, u, q); q = (all parameters, levels that are given by name)."""

    structure: Structure
    state_names: tuple[str, ...]
    """Of X: the plant's, then ``w[0]``, ``w[1]``, … of a disturbance w."""
    n: int
    nx: int
    """How many of them belong to the plant."""
    nz: int
    nv: int
    quantities: tuple[str, ...]
    outputs: tuple[str, ...]
    white: tuple[str, ...]
    """The disturbance behind each entry of v."""
    t: ca.SX
    X: ca.SX
    Z: ca.SX
    v: ca.SX
    u: ca.SX
    q: ca.SX
    rates: ca.SX
    residual: ca.SX
    constraints: ca.SX
    measured: ca.SX
    variance: ca.SX
    """R, (ny, ny)."""
    observed: ca.SX
    """Every name the user knows."""
    start_root: ca.SX
    """L, (n_w, n_w); zero columns for what starts at zero."""
    laws: tuple[ArgumentsByLaw, ...]
    """Of outputs that are measured by laws; normal noise is in R, where these have 1."""
    levels: ca.SX
    """Everything that says how strong noise is, and how disturbances move, as a column."""

    def cached_value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what follows from the model and the key alone, made once."""
        found: T = self._made.get(key, make)
        return found

    @cached_property
    def _made(self) -> Cache[Any]:
        return Cache(16)

    @property
    def arguments(self) -> list[ca.SX]:
        return [self.t, self.X, self.Z, self.v, self.u, self.q]


def build_direct_model(
    structure: Structure, outputs: Sequence[str], levels: Sequence[str], values: Mapping[str, float]
) -> DirectModel:
    """Return the model of a structure, made once.

    levels : ``"scale(w)"``, ``"noise(y)"`` that are entries of q instead of the declared formulas
    values : of all parameters and levels, at the guess; they decide ranks and units only
    """
    known: Cache[DirectModel] = structure.cached_value("models of direct collocation", lambda: Cache(8))
    key = tuple(outputs), tuple(levels), tuple(values.items())
    return known.get(key, lambda: _build(structure, outputs, levels, values))


def _build(
    structure: Structure, outputs: Sequence[str], levels: Sequence[str], values: Mapping[str, float]
) -> DirectModel:
    system, flat = structure.system, structure.model
    quantities = (*system.parameter_names, *levels)
    q = ca.vertcat(system.p, ca.SX.sym("level", len(levels)))
    place = {name: k for k, name in enumerate(quantities)}
    groups = group_correlated(flat.disturbances)
    symbolic = [symbolic_process(g, levels, lambda path: q[place[path]], values) for g in groups]
    nominal = [_numbers(g, levels, values) for g in groups]
    used = {s.name for s in system.signals if s.kind == "disturbance"}
    kept = [k for k, p in enumerate(symbolic) if any(n in used for n in p.names)]
    processes, at_guess = [symbolic[k] for k in kept], [nominal[k] for k in kept]
    coloured = [p for p in processes if not p.is_white]
    xw = ca.SX.sym("xw", sum(p.order for p in coloured))
    v = ca.SX.sym("v", sum(len(p.names) for p in processes))
    signals, drive = _signals(structure, processes, xw, v)

    def put(formula: ca.SX) -> ca.SX:
        return ca.densify(ca.substitute(formula, system.u, signals)) if formula.numel() else formula

    observed = put(system.observed)
    rows = {name: observed[k] for k, name in enumerate(system.observed_names)}
    leaves = {**rows, **{n: q[k] for n, k in place.items()}, "time": system.t}
    variance = measurement_covariance(flat, outputs, levels, leaves)
    laws = tuple(
        _by_law(flat, outputs, column, leaves) for column in range(len(outputs)) if has_law(flat, outputs[column])
    )
    return DirectModel(
        structure=structure,
        state_names=(*system.state_names, *filter_state_names(coloured)),
        n=system.nx + xw.numel(), nx=system.nx, nz=system.nz, nv=v.numel(),
        quantities=quantities,
        outputs=tuple(outputs),
        white=tuple(n for p in processes for n in p.names),
        t=system.t, X=ca.vertcat(system.x, xw), Z=system.z, v=v, u=system.u, q=q,
        rates=ca.densify(ca.vertcat(put(system.rhs) - put(_correction(structure, processes)), drive)),
        residual=put(system.residual),
        constraints=put(system.constraints),
        measured=ca.densify(ca.vertcat(*(rows[y] for y in outputs))),
        variance=variance,
        laws=laws,
        levels=ca.densify(
            ca.vertcat(
                ca.vec(variance),
                *(law.formulas[1:] for law in laws),
                *(ca.vec(ca.SX(m)) for p in processes for m in (p.A, p.B, p.C, p.D)),
            )
        ),
        observed=observed,
        start_root=_block([start_root_symbolic(p, n) for p, n in zip(processes, at_guess, strict=True)
                           if not p.is_white]),
    )  # fmt: skip


def _by_law(flat: FlatModel, outputs: Sequence[str], column: int, leaves: Mapping[str, ca.SX]) -> ArgumentsByLaw:
    law = flat.outputs[outputs[column]].distribution
    assert law is not None
    inside = formulas_of(law)
    values = lower(list(inside.values()), leaves.__getitem__)
    return ArgumentsByLaw(
        column, law, (law.location_path, *inside), ca.densify(ca.vertcat(leaves[outputs[column]], *values))
    )


def _numbers(group: Sequence[FlatDisturbance], levels: Sequence[str], known: Mapping[str, float]) -> Process:
    names, spectra = [d.name for d in group], [d.spectrum for d in group]
    return build_process(names, spectra, scale_formulas(group, levels), correlation_of(group), known)


def _signals(structure: Structure, processes: Sequence[Process], xw: ca.SX, v: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return u with every disturbance in terms of v and x_w, and x_w'."""
    signals = ca.SX(structure.system.u)
    maps: dict[tuple[str, int], ca.SX] = {}
    drive: list[ca.SX] = []
    first_state = first_noise = 0
    for process in processes:
        own, noise = xw[first_state : first_state + process.order], v[first_noise : first_noise + len(process.names)]
        first_state, first_noise = first_state + process.order, first_noise + len(process.names)
        for order in {s.order for s in structure.system.signals if s.name in process.names}:
            if process.is_white and order:
                raise EstimationError(
                    f"Index reduction differentiates the white noise {', '.join(process.names)}: its path has no "
                    "derivative. Use gr.spectra.lowpass(bandwidth=…) of sufficient order."
                )
            rows = process.D @ noise if process.is_white else process.output_map(order) @ own
            maps.update({(name, order): rows[i] for i, name in enumerate(process.names)})
        if not process.is_white:
            drive.append(process.A @ own + process.B @ noise)
    for k, s in enumerate(structure.system.signals):
        if s.kind == "disturbance":
            signals[k] = maps[s.name, s.order]
    return signals, ca.vertcat(*drive) if drive else ca.SX(0, 1)


def _correction(structure: Structure, processes: Sequence[Process]) -> ca.SX:
    """Return ½ Σ Q_kl (∂G_k/∂x) G_l over noise read as Itô: what the ordinary chain rule adds to the drift."""
    if not white_names(structure.model):
        return ca.SX(structure.system.nx, 1)
    diffusion = find_diffusion(structure)
    total = ca.SX(structure.system.nx, 1)
    for k, reading in enumerate(diffusion.readings):
        if reading == "ito":
            total += 0.5 * diffusion.own_correction(k)
    return ca.substitute(ca.densify(total), diffusion.root, noise_root(diffusion, processes))


def _block(parts: Sequence[ca.SX]) -> ca.SX:
    return ca.densify(ca.diagcat(*parts)) if parts else ca.SX(0, 0)
