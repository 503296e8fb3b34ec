"""White noise in the reduced system: the stochastic differential equation that a model with ``white()`` means.

::

    x' = rhs(t, x, u, p) with white w in u      becomes      dx = f(t, x, u, p) dt + G(t, x, u, p) D dV      (Itô)

    G = ∂rhs/∂w      f = rhs at w = 0, plus ½ Σ_k Σ_l Q_kl (∂G_k/∂x) G_l over the w_k read as Stratonovich, Q = D Dᵀ

Where algebraic unknowns stay implicit, 0 = g(t, x, z, u, p), all formulas may contain z, and derivatives by x go
through it: dz/dx = −(∂g/∂z)⁻¹ ∂g/∂x.

V are independent Wiener processes, one per white disturbance; D = diag(scale)·chol(correlation) maps their increments
to those of the disturbances, w dt = D dV. D stays a matrix of symbols, so that f and G do not depend on the formulas of
scales and correlations. Coloured disturbances stay signals in u.

What is refused, and why Itô or Stratonovich must sometimes be said, is in ``white_noise``. Reference: P. E. Kloeden,
E. Platen, Numerical Solution of Stochastic Differential Equations (1992), chapter 4.9 (readings), 10.3 (commutative).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.errors import ModelError, StructureError
from grisaille.model.flat import FlatModel
from grisaille.structure.reduction import Structure
from grisaille.structure.stochastic.white_noise import (
    chain_rule_equations,
    interpretation_question,
    names_of_infinite_variance,
    refuse_infinite_variance,
    refuse_nonlinear,
    white_names,
)
from grisaille.structure.switching_pieces import relations_of
from grisaille.structure.system import System

ZERO_TOLERANCE = 1e-10
"""A formula is taken to vanish identically when it is below this, relative to its terms, at every probed point."""


@dataclass(frozen=True, eq=False)
class Diffusion:
    """dx = drift dt + gain·root dV for one system, over its own symbols and those of ``root``."""

    system: System
    names: tuple[str, ...]
    """The white disturbances, in the order of the columns."""
    white: tuple[int, ...]
    """Their places in ``system.u``; values there are ignored."""
    root: ca.SX
    """D, all nw × nw entries as symbols."""
    mask: np.ndarray
    """(nw, nw): which entries of D can differ from zero."""
    readings: tuple[str, ...]
    """``"ito"`` or ``"stratonovich"`` for each disturbance."""
    infinite: tuple[str, ...] = ()
    """Observed names that contain white noise and so have no value at an instant."""

    @property
    def nw(self) -> int:
        return len(self.names)

    @property
    def symbols(self) -> list[ca.SX]:
        """(t, x, u, p, D): the arguments of every formula here."""
        s = self.system
        return [s.t, s.x, s.u, s.p, self.root]

    @cached_property
    def gain(self) -> ca.SX:
        """Return G, nx × nw."""
        return _gain(self.system, self.white)

    @cached_property
    def noise(self) -> ca.SX:
        """Return B = G D, nx × nw: the factor of the independent Wiener processes."""
        return ca.sparsify(ca.mtimes(self.gain, self.masked_root))

    @cached_property
    def correction(self) -> ca.SX:
        """½ Σ_k Σ_l Q_kl (∂G_k/∂x) G_l over the disturbances read as Stratonovich."""
        total = ca.SX(self.system.nx, 1)
        for k, reading in enumerate(self.readings):
            if reading == "stratonovich":
                total += 0.5 * self.own_correction(k)
        return ca.sparsify(ca.simplify(total))

    @cached_property
    def drift(self) -> ca.SX:
        """Return f, the drift in the sense of Itô."""
        at_zero = ca.substitute(self.system.rhs, _entries(self.system.u, self.white), ca.SX.zeros(self.nw))
        return ca.densify(at_zero + self.correction)

    @cached_property
    def smooth_drift(self) -> ca.SX:
        """Return the drift in the sense of Stratonovich, where the chain rule is that of smooth paths."""
        total = ca.substitute(self.system.rhs, _entries(self.system.u, self.white), ca.SX.zeros(self.nw))
        for k, reading in enumerate(self.readings):
            if reading != "stratonovich":
                total -= 0.5 * self.own_correction(k)
        return ca.densify(total)

    def own_correction(self, k: int) -> ca.SX:
        """Σ_l Q_kl (∂G_k/∂x) G_l: d⟨G_k, w_k⟩/dt, which vanishes where both readings of w_k agree."""
        intensity = ca.mtimes(self.masked_root, self.masked_root.T)
        direction = ca.mtimes(self.gain, intensity[:, k])
        return ca.sparsify(self.along(self.gain[:, k], direction))

    def along(self, formula: ca.SX, direction: ca.SX) -> ca.SX:
        """Return how a column of formulas changes when the states move in a direction and z with them."""
        s, formula, direction = self.system, ca.densify(formula), ca.densify(direction)
        change = ca.jtimes(formula, s.x, direction)
        if s.nz and ca.depends_on(formula, s.z):
            moved = -ca.solve(ca.jacobian(s.residual, s.z), ca.jtimes(s.residual, s.x, direction))
            change = change + ca.jtimes(formula, s.z, moved)
        return change

    @property
    def driven(self) -> tuple[int, ...]:
        """Return states that white noise drives directly."""
        return tuple(sorted(set(self.gain.sparsity().row())))

    @cached_property
    def is_additive(self) -> bool:
        """Return whether G is free of the states, and of what moves with them."""
        return not ca.depends_on(self.gain, ca.vertcat(self.system.x, self.system.z))

    @cached_property
    def is_decoupled(self) -> bool:
        """Return whether G does not depend on the states that the noise drives: ∂G_k/∂x·G_l = 0, Itô = Stratonovich."""
        G = self.gain
        return self.is_additive or all(
            self.vanishes(self.along(G[:, k], G[:, j])) for k in range(self.nw) for j in range(self.nw)
        )

    @cached_property
    def is_commutative(self) -> bool:
        """Return whether ∂G_l/∂x·G_k = ∂G_k/∂x·G_l: then iterated integrals are products of increments."""
        G = self.gain
        return self.is_decoupled or all(
            self.vanishes(self.along(G[:, k], G[:, j]) - self.along(G[:, j], G[:, k]))
            for k in range(self.nw)
            for j in range(k)
        )

    def vanishes(self, formula: ca.SX) -> bool:
        """Return whether a formula of ``symbols`` is zero: by its sparsity, or at random points where it is defined."""
        formula = ca.sparsify(ca.simplify(formula))
        if formula.nnz() == 0:
            return True
        terms = self.gain.nz[:] if self.gain.nnz() else ca.SX(1)
        probe = ca.Function("probe", [*self.symbols, self.system.z], [formula.nz[:], terms])
        found = [values for values in (self._probe(probe, k) for k in range(9)) if np.isfinite(values[0])]
        return bool(found) and all(value <= ZERO_TOLERANCE * max(1.0, size) ** 2 for value, size in found)

    def _probe(self, function: ca.Function, k: int) -> tuple[float, float]:
        random = np.random.default_rng(k)
        low, high = ((0.5, 1.5), (-1.0, 1.0), (-1.5, -0.5))[k % 3]
        states = random.uniform(low, high, self.system.nx)
        others = [random.uniform(0.5, 1.5, s.shape) for s in (self.system.t, self.system.u, self.system.p, self.root)]
        value, terms = function(others[0], states, *others[1:], random.uniform(low, high, self.system.nz))
        return float(np.abs(value.full()).max()), float(np.abs(terms.full()).max())

    @property
    def masked_root(self) -> ca.SX:
        """Return D with its known zeros."""
        return ca.sparsify(self.root * ca.DM(self.mask.astype(float)))


def find_diffusion(structure: Structure) -> Diffusion:
    """Return the stochastic differential equation of a model with white disturbances.

    Raises ``StructureError`` where white noise enters nonlinearly, reaches a state, a constraint or an output directly,
    or where it must be said how the equations are read.
    """
    flat, system = structure.model, structure.system
    names = white_names(flat)
    if not names:
        raise ModelError(
            f"{flat.name} has no white disturbance; its trajectories are those of a differential equation."
        )
    refuse_infinite_variance(structure, names)
    refuse_nonlinear(structure, names)
    white = tuple(next(i for i, s in enumerate(system.signals) if s.name == n and s.order == 0) for n in names)
    stated = [flat.disturbances[n].spectrum.interpretation for n in names]
    infinite = names_of_infinite_variance(structure, names)
    plain = split_noise(system, white, mask=correlation_mask(flat, names), infinite=infinite)
    readings = _readings(structure, plain, stated)
    return split_noise(system, white, readings, plain.mask, infinite)


def split_noise(
    system: System,
    white: Sequence[int],
    readings: Sequence[str] | None = None,
    mask: np.ndarray | None = None,
    infinite: tuple[str, ...] = (),
) -> Diffusion:
    """Return the same for a system made by hand: ``white`` are places in ``u``; Itô and any D unless said otherwise.

    Raises ``StructureError`` when the right-hand side is not affine in the white signals.
    """
    nw = len(white)
    names = tuple(system.signals[i].name for i in white)
    w = _entries(system.u, white)
    if nw and (ca.depends_on(_gain(system, white), w) or relations_of(system.rhs, w)):
        raise StructureError(f"The right-hand side is not linear in the white noise {', '.join(names)}.")
    return Diffusion(
        system,
        names,
        tuple(white),
        ca.SX.sym("D", nw, nw),
        np.ones((nw, nw), dtype=bool) if mask is None else mask,
        tuple(readings or ("ito",) * nw),
        infinite,
    )


def correlation_mask(flat: FlatModel, names: Sequence[str]) -> np.ndarray:
    """(nw, nw): lower triangular, where D = diag(scale)·chol(correlation) may differ from zero."""
    mask = np.eye(len(names), dtype=bool)
    place = {n: i for i, n in enumerate(names)}
    for name in names:
        for other, _ in flat.disturbances[name].correlation or ():
            if other in place:
                mask[place[name], place[other]] = mask[place[other], place[name]] = True
    for _ in names:  # correlated with something correlated: the root fills in
        mask = (mask.astype(int) @ mask.astype(int)) > 0
    return np.tril(mask)


def _gain(system: System, white: Sequence[int]) -> ca.SX:
    if not white:
        return ca.SX(system.nx, 0)
    return ca.sparsify(ca.simplify(ca.jacobian(system.rhs, _entries(system.u, white))))


def _entries(vector: ca.SX, places: Sequence[int]) -> ca.SX:
    return ca.vertcat(*(vector[i] for i in places)) if places else ca.SX(0, 1)


def _readings(structure: Structure, diffusion: Diffusion, stated: Sequence[str | None]) -> tuple[str, ...]:
    """Return Itô where nothing was said, unless the chain rule was used on what the noise drives."""
    blamed: list[str] | None = None
    for k, name in enumerate(diffusion.names):
        if stated[k] == "stratonovich" or diffusion.vanishes(diffusion.own_correction(k)):
            continue
        blamed = chain_rule_equations(structure, diffusion.names) if blamed is None else blamed
        if blamed and stated[k] is None:
            raise StructureError(interpretation_question(structure, name, _touched(diffusion, k), blamed))
        _refuse_leaving_constraints(diffusion, k)
    return tuple(s or "ito" for s in stated)


def _touched(diffusion: Diffusion, k: int) -> list[str]:
    """Return states that noise drives and that the factor of noise k depends on."""
    system, column = diffusion.system, ca.densify(diffusion.gain[:, k])
    depends = set(ca.jacobian_sparsity(column, system.x).get_col())
    if system.nz and ca.depends_on(column, system.z):
        depends |= set(ca.jacobian_sparsity(system.residual, system.x).get_col())
    return [system.state_names[i] for i in diffusion.driven if i in depends]


def _refuse_leaving_constraints(diffusion: Diffusion, k: int) -> None:
    """In the sense of Itô a constraint c drifts by ½ ∂²c/∂x²[G_k, G_k] under noise k."""
    system, direction = diffusion.system, ca.densify(diffusion.gain[:, k])
    if not system.nc:
        return
    bent = ca.jtimes(ca.jtimes(system.constraints, system.x, direction), system.x, direction)
    first = ca.jtimes(system.constraints, system.x, ca.densify(diffusion.along(direction, direction)))
    for i, text in enumerate(system.constraint_texts):
        if not diffusion.vanishes(bent[i] - first[i]):
            name = diffusion.names[k]
            raise StructureError(
                f"Read as Itô, the noise {name} leaves the constraint '{text}' at a rate of its intensity: the "
                f"equations contradict each other. State {name} = gr.Disturbance(gr.spectra.white("
                f'interpretation="stratonovich")), which keeps it; or use gr.spectra.lowpass(bandwidth=…).'
            )
