"""The model as a stochastic differential equation in states that include those of its coloured disturbances.

::

    X = (x, x_w)        dX = f(t, X, u, q) dt + B(t, X, u, q) dV        y_k = h(t, X, u, q) + e_k,  e_k ~ N(0, R)

    x' = rhs(t, x, u, p),  every disturbance in u replaced by C Aᵈ x_w (its derivative of order d),  white noise by B dV
    x_w' = A x_w + B v

q = (all parameters, the scales and noise levels that are estimated by name). Where f, h are affine in X and B, R free
of it the model is linear; the matrices may still depend on inputs, time and q. Reference: N. R. Kristensen,
H. Madsen, S. B. Jørgensen, Automatica 40 (2004) 225, eqs. (1), (2).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import casadi as ca

from grisaille.cache import Cache
from grisaille.disturbance import Process, group_correlated
from grisaille.disturbance.free_levels import (
    filter_state_names,
    measurement_covariance,
    noise_root,
    symbolic_process,
)
from grisaille.disturbance.model_jumps import FormulaGroup, ModelJump, find_jumps
from grisaille.disturbance.unobservable_disturbance import hidden_disturbance
from grisaille.errors import EstimationError
from grisaille.structure.delays.delay import refuse_past_of_unknowns
from grisaille.structure.reduction import Structure
from grisaille.structure.stochastic.diffusion import find_diffusion
from grisaille.structure.stochastic.white_noise import white_names
from grisaille.structure.switching_pieces import relations_of

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class StochasticModel:
    """Formulas over (t, X, u, q); ``u`` has the layout of the reduced system, its disturbances do not occur."""

    structure: Structure
    names: tuple[str, ...]
    """Of the states X, in the user's names; ``w[0]``, ``w[1]``, … for those of a disturbance w."""
    nx: int
    """How many of them belong to the plant."""
    starts: tuple[str, ...]
    """``"stationary"`` or ``"zero"`` for each disturbance state."""
    quantities: tuple[str, ...]
    """Names of q."""
    outputs: tuple[str, ...]
    t: ca.SX
    X: ca.SX
    u: ca.SX
    q: ca.SX
    drift: ca.SX
    noise: ca.SX
    measured: ca.SX
    """h, one row per output."""
    variance: ca.SX
    """R, (ny, ny)."""
    observed: ca.SX
    """Every name the user knows, as far as its variance is finite (others hold white noise and are set to NaN)."""
    observed_names: tuple[str, ...]
    infinite: tuple[str, ...]
    """Names whose variance is not finite."""
    constraints: ca.SX
    z: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """Algebraic unknowns that stay implicit; every formula above may contain them."""
    residual: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """g(t, X, z, u, q) = 0"""
    signals: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    """u with disturbances in terms of their states, white ones at zero."""

    @cached_property
    def content(self) -> str:
        """Return the formulas that filters are made of, as text: equal for models that share them."""
        arguments = [self.t, self.X, self.z, self.u, self.q]
        formulas = [self.drift, self.noise, self.measured, self.variance, self.constraints, self.residual]
        return str(ca.Function("content", arguments, formulas).serialize())

    def cached_value(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what follows from the model and the key alone, made once."""
        found: T = self._made.get(key, make)
        return found

    @cached_property
    def _made(self) -> Cache[Any]:
        return Cache(64)

    @cached_property
    def n(self) -> int:
        return len(self.names)

    @cached_property
    def hidden(self) -> str:
        """Return a disturbance without a linear effect where it is zero; empty where there is none."""
        return hidden_disturbance(self)

    @cached_property
    def levels(self) -> frozenset[str]:
        """Parameters that enter noise and nothing else."""
        noise = ca.vertcat(ca.vec(ca.densify(self.noise)), ca.vec(ca.densify(self.variance)))
        rest = ca.vertcat(self.drift, self.measured, self.constraints)
        driven = set(ca.jacobian_sparsity(noise, self.q).get_col())
        return frozenset(self.quantities[k] for k in driven - set(ca.jacobian_sparsity(rest, self.q).get_col()))

    @property
    def arguments(self) -> list[ca.SX]:
        return [self.t, self.X, self.u, self.q]

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Time and the inputs that the coefficients of the states vary with."""
        A = ca.jacobian(self.drift, self.X)
        signals = sorted(set(ca.jacobian_sparsity(ca.vec(ca.densify(A)), self.u).get_col()))
        names = [self.structure.system.signals[k].name for k in signals]
        return ("time", *names) if ca.depends_on(A, self.t) else tuple(names)

    @cached_property
    def nonlinear(self) -> str:
        """Return what is not affine in the states everywhere, in words; empty for a linear model."""
        if self.z.numel():
            return f"the equation of {self.structure.system.implicit_names[0]}"
        drift, measured, noise, variance = self.parts
        for part, formula in (
            (drift, ca.jacobian(self.drift, self.X)),
            (measured, ca.jacobian(self.measured, self.X)),
            (noise, self.noise),
            (variance, self.variance),
        ):
            for i, name in enumerate(part.names):
                if formula.size2() and ca.depends_on(ca.simplify(formula[i, :]), self.X):
                    return part.words.format(name)
        if self._has_relations:
            for part in (drift, measured):
                for i, name in enumerate(part.names):
                    if relations_of(part.formula[i, :], self.X):
                        return part.words.format(name)
        return ""

    @property
    def parts(self) -> tuple[FormulaGroup, FormulaGroup, FormulaGroup, FormulaGroup]:
        """Formulas that filters read, row by row with words for each: drift, measured, noise, variance."""
        return (
            FormulaGroup("the equation of der({})", self.drift, self.names),
            FormulaGroup("the output {}", self.measured, self.outputs),
            FormulaGroup("the noise that drives {}", self.noise, self.names),
            FormulaGroup("the measurement noise of {}", self.variance, self.outputs),
        )

    @cached_property
    def jumps(self) -> tuple[ModelJump, ...]:
        """Relations of states and algebraic unknowns across which a formula of the model is not continuous."""
        if not self._has_relations:
            return ()
        parts = [*self.parts]
        if self.z.numel():
            parts.append(FormulaGroup("the equation of {}", self.residual, self.structure.system.implicit_names))
        return find_jumps(parts, ca.vertcat(self.X, self.z), self.symbol_names)

    @property
    def symbol_names(self) -> dict[int, str]:
        """Return the user's name of every symbol, by its hash."""
        return {
            **{s.element_hash(): n for s, n in zip(_entries(self.X), self.names, strict=True)},
            **{s.element_hash(): n for s, n in zip(_entries(self.q), self.quantities, strict=True)},
            **{
                s.element_hash(): n for s, n in zip(_entries(self.z), self.structure.system.implicit_names, strict=True)
            },
            **{s.element_hash(): n.name for s, n in zip(_entries(self.u), self.structure.system.signals, strict=True)},
            self.t.element_hash(): "time",
        }

    @cached_property
    def _has_relations(self) -> bool:
        """Return whether anything switches with states or algebraic unknowns; known once for all fits of a model."""
        formulas = [self.drift, self.measured, self.noise, self.variance, self.residual]
        unknowns = ca.vertcat(self.X, self.z)
        return _relations.get(self.content, lambda: any(relations_of(f, unknowns) for f in formulas))


_relations: Cache[bool] = Cache(256)


def _entries(vector: ca.SX) -> list[ca.SX]:
    return list(ca.vertsplit(vector)) if vector.numel() else []


def build_stochastic_model(
    structure: Structure,
    outputs: Sequence[str],
    *,
    scales: Sequence[str] = (),
    noises: Sequence[str] = (),
    values: Mapping[str, float] | None = None,
) -> StochasticModel:
    """Return the stochastic model of a structure, made once.

    outputs : those that are measured
    scales, noises : disturbances and outputs whose levels are entries of q instead of the declared formulas
    values : of all parameters; they decide the rank of correlations only, and such models are made for each of them
    """
    asked = tuple(outputs), tuple(scales), tuple(noises)
    if any(d.correlation for d in structure.model.disturbances.values()):
        return _built(structure, *asked, values or {})
    return structure.cached_value(("stochastic", *asked), lambda: _built(structure, *asked, values or {}))


def _built(
    structure: Structure, outputs: Sequence[str], scales: Sequence[str], noises: Sequence[str],
    values: Mapping[str, float],
) -> StochasticModel:  # fmt: skip
    if structure.system.moving is not None:
        plain = replace(structure, system=structure.system.moving.plain)
        return _on_moving_clock(_built(plain, outputs, scales, noises, values), structure)
    system, flat = structure.system, structure.model
    if system.has.pasts:
        refuse_past_of_unknowns(system.delays, "filters and collocation follow states")
    if system.pieces:
        relation, text = system.pieces[0]
        raise EstimationError(
            f"'{text}' jumps with '{relation}', an unknown of its own: filters and collocation follow slopes and do "
            f"not see the jump. Use gr.OutputError() or gr.SimulatedPEM(), which simulate it, or a smooth formula."
        )
    free = (*(f"scale({w})" for w in scales), *(f"noise({y})" for y in noises))
    extra = ca.SX.sym("level", len(free))
    q = ca.vertcat(system.p, extra)
    quantities = (*system.parameter_names, *free)
    place = {name: k for k, name in enumerate(quantities)}
    known = {**values, **{name: 1.0 for name in free}}
    processes = [
        symbolic_process(g, free, lambda path: q[place[path]], known) for g in group_correlated(flat.disturbances)
    ]
    driven = {s.name for s in system.signals if s.kind == "disturbance"}
    coloured = [p for p in processes if not p.is_white and any(n in driven for n in p.names)]
    xw = ca.SX.sym("xw", sum(p.order for p in coloured))
    X, u = ca.vertcat(system.x, xw), system.u
    drift, gain, infinite = _white_noise(structure, [p for p in processes if p.is_white])
    signals = _signals(structure, coloured, xw)

    def put(formula: ca.SX) -> ca.SX:
        return ca.substitute([formula], [system.u], [signals])[0]

    observed = put(system.observed)
    rows = {name: observed[k] for k, name in enumerate(system.observed_names)}
    leaves = {**rows, **{n: q[k] for n, k in place.items()}, "time": system.t}
    return StochasticModel(
        structure=structure,
        names=(*system.state_names, *filter_state_names(coloured)),
        nx=system.nx,
        starts=tuple(s for p in coloured for s, n in zip(p.starts, p.blocks, strict=True) for _ in range(n)),
        quantities=quantities,
        outputs=tuple(outputs),
        t=system.t, X=X, u=u, q=q,
        drift=ca.densify(ca.vertcat(put(drift), _block([p.A for p in coloured]) @ xw)),
        noise=ca.sparsify(ca.diagcat(put(gain), _block([p.B for p in coloured]))),
        measured=ca.densify(ca.vertcat(*(rows[y] for y in outputs))),
        variance=measurement_covariance(flat, outputs, free, leaves),
        observed=observed,
        observed_names=system.observed_names,
        infinite=infinite,
        constraints=put(system.constraints),
        z=system.z,
        residual=put(system.residual),
        signals=signals,
    )  # fmt: skip


def _on_moving_clock(model: StochasticModel, structure: Structure) -> StochasticModel:
    """Return the same where breaks move (``moving_breaks.py``): drift and intensity are stretched as time is."""
    system = structure.system
    assert system.moving is not None
    names = ("drift", "measured", "variance", "observed", "constraints", "residual")
    put = dict(zip(names, system.moving.put([getattr(model, n) for n in names]), strict=True))
    (noise,), stretch = system.moving.put([ca.densify(model.noise)]), system.moving.stretch
    if system.moving.follows:
        put["drift"], noise = ca.densify(stretch * put["drift"]), ca.sqrt(stretch) * noise
    return replace(model, structure=structure, u=system.u, noise=ca.sparsify(noise), **put)


def _white_noise(structure: Structure, white: Sequence[Process]) -> tuple[ca.SX, ca.SX, tuple[str, ...]]:
    """Return drift, noise factor and the names that have no value at an instant."""
    if not white_names(structure.model):
        return structure.system.rhs, ca.SX(structure.system.nx, 0), ()
    diffusion = find_diffusion(structure)
    D = noise_root(diffusion, white)
    drift, noise = ca.substitute([diffusion.drift, ca.densify(diffusion.noise)], [diffusion.root], [D])
    return drift, ca.sparsify(noise), diffusion.infinite


def _signals(structure: Structure, coloured: Sequence[Process], xw: ca.SX) -> ca.SX:
    """Return u with disturbances in terms of their states; white ones at zero."""
    signals = ca.SX(structure.system.u)
    maps: dict[tuple[str, int], ca.SX] = {}
    at = 0
    for process in coloured:
        own = xw[at : at + process.order]
        at += process.order
        orders = {s.order for s in structure.system.signals if s.name in process.names}
        for order in orders:
            rows = process.output_map(order) @ own
            maps.update({(name, order): rows[i] for i, name in enumerate(process.names)})
    for k, s in enumerate(structure.system.signals):
        if s.kind == "disturbance":
            signals[k] = maps.get((s.name, s.order), ca.SX(0))
    return signals


def _block(parts: Sequence[ca.SX]) -> ca.SX:
    return ca.diagcat(*parts) if parts else ca.SX(0, 0)


def plant_states(model: StochasticModel) -> dict[str, int]:
    """Return every name that is a state of the plant, up to merging of equal variables."""
    places = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(model.X[: model.nx]))} if model.nx else {}
    found = {name: k for k, name in enumerate(model.names[: model.nx])}
    for name, formula in zip(model.observed_names, ca.vertsplit(model.observed), strict=True):
        if formula.element_hash() in places:
            found.setdefault(name, places[formula.element_hash()])
    return found
