"""A model near a point: E δz' = F δz + G δu + J δw, δy = H δz, from its equations as they stand.

Every equation 0 = f(z', z, u, w, p, t) is differentiated in its jets (CasADi, exact): E = ∂f/∂z', F = −∂f/∂z,
G = −∂f/∂u, J = −∂f/∂w. No index is reduced on the way, so the pencil sE − F carries the whole index of the model. A
higher derivative makes the variable and its lower derivatives entries of z, joined by equations z_k' = z_{k+1}; an
input or disturbance that is differentiated by the user, or that stands in an output, becomes an entry of z too
(0 = z_u − u).

Where no matrix depends on variables or time, and no relation of them switches, the model is linear and the result holds
everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.descriptor.pencil import Matrix
from grisaille.structure.equations import Equations
from grisaille.structure.jets import JetKind, JetSymbol, derivative_text
from grisaille.structure.switching_pieces import relations_of

Jet = tuple[str, int]
"""The name of a quantity and how often it is differentiated."""


@dataclass(frozen=True)
class Linearization:
    """The matrices at one point with the user's names of their rows and columns."""

    E: Matrix
    F: Matrix
    G: Matrix
    J: Matrix
    H: Matrix
    variables: tuple[str, ...]
    equations: tuple[str, ...]
    inputs: tuple[str, ...]
    disturbances: tuple[str, ...]
    outputs: tuple[str, ...]

    def require_finite(self, where: str) -> None:
        """Raise ``StructureError`` naming an equation or output that has no finite slope here."""
        rows = ~np.isfinite(np.hstack([self.E, self.F, self.G, self.J])).all(axis=1)
        bad = [f"the equation '{self.equations[k]}'" for k in np.flatnonzero(rows)]
        bad += [self.outputs[k] for k in np.flatnonzero(~np.isfinite(self.H).all(axis=1))]
        if bad:
            raise StructureError(f"{bad[0]} has no finite derivatives {where}")


class Linearizer:
    """Linearises one set of equations again and again; ``outputs`` are names of ``equations.observed``."""

    def __init__(self, equations: Equations, outputs: Sequence[str]) -> None:
        self.equations, self.outputs = equations, tuple(outputs)
        self.layout = _Layout(equations, self.outputs)
        self.matrices = self._differentiate()
        within = equations.jets.within(ca.vertcat(*(ca.vec(m) for m in self.matrices)))
        self.needed: tuple[Jet, ...] = tuple((m.name, m.order) for m in within)
        """Jets whose values the matrices depend on; empty for a linear model."""
        symbols = [equations.jets.symbol(*jet) for jet in self.needed]
        arguments = [equations.jets.time, ca.vertcat(*symbols), ca.vertcat(*equations.parameters.values())]
        self.depends_on_time = bool(ca.depends_on(ca.vertcat(*(ca.vec(m) for m in self.matrices)), arguments[0]))
        self._function = ca.Function("linearize", arguments, [ca.densify(m) for m in self.matrices])

    @cached_property
    def is_linear(self) -> bool:
        """Return whether it is affine everywhere, with constant coefficients: ``sign(x)`` has a constant slope and is
        not.
        """
        if self.needed or self.depends_on_time:
            return False
        formulas = [row.residual for row in self.equations.rows] + [self.equations.observed[n] for n in self.outputs]
        formula = ca.vertcat(*formulas) if formulas else ca.SX(0, 1)
        jets = [self.equations.jets.symbol(m.name, m.order) for m in self.equations.jets.within(formula)]
        return not jets or not relations_of(formula, ca.vertcat(*jets))

    def at(self, parameters: Matrix, values: Mapping[Jet, float] | None = None, time: float = 0.0) -> Linearization:
        """Return the matrices at given parameter values (all of them, in order) and values of the ``needed`` jets."""
        point = np.array([(values or {})[jet] for jet in self.needed])
        found = [np.array(m.full()) for m in self._function(time, point, parameters)]
        E, F, G, J, H = (m.reshape(s.shape) for m, s in zip(found, self.matrices, strict=True))
        layout = self.layout
        return Linearization(
            E, F, G, J, H, layout.names, layout.texts, layout.inputs, layout.disturbances, self.outputs
        )  # fmt: skip

    def _differentiate(self) -> list[ca.SX]:
        layout, rows = self.layout, [row.residual for row in self.equations.rows]
        residual = ca.vertcat(*rows) if rows else ca.SX(0, 1)
        observed = ca.vertcat(*(self.equations.observed[n] for n in self.outputs)) if self.outputs else ca.SX(0, 1)
        E, F = layout.jacobian(residual, layout.rates), -layout.jacobian(residual, layout.entries)
        G, J = (-layout.jacobian(residual, layout.outside(kind)) for kind in ("input", "disturbance"))
        H = layout.jacobian(observed, layout.entries)
        chain_E, chain_F = layout.chains()
        tie_F, tie_G, tie_J = layout.ties()
        nt, n = tie_F.shape[0], len(layout.entries)
        return [
            ca.vertcat(E, chain_E, ca.SX(nt, n)),
            ca.vertcat(F, chain_F, tie_F),
            ca.vertcat(G, ca.SX(chain_E.shape[0], G.shape[1]), tie_G),
            ca.vertcat(J, ca.SX(chain_E.shape[0], J.shape[1]), tie_J),
            H,
        ]


class _Layout:
    """Which jets are entries of z, which of z', which stay outside as u and w."""

    def __init__(self, equations: Equations, outputs: Sequence[str]) -> None:
        self.jets = equations.jets
        model = equations.model
        self.inputs, self.disturbances = tuple(model.inputs), tuple(model.disturbances)
        in_rows = _highest(self.jets.within(ca.vertcat(*(row.residual for row in equations.rows))))
        in_outputs = _highest(self.jets.within(ca.vertcat(*(equations.observed[n] for n in outputs))))
        self.sizes: dict[str, int] = {}
        for name in (*equations.unknowns, *self.inputs, *self.disturbances):
            size = max(in_rows.get(name, 0), in_outputs.get(name, -1) + 1)
            if name in equations.unknowns:
                size = max(size, 1)
            if size:
                self.sizes[name] = size
        self.entries: list[Jet] = [(name, k) for name, size in self.sizes.items() for k in range(size)]
        self.rates: list[Jet | None] = [(n, k + 1) if k + 1 == self.sizes[n] else None for n, k in self.entries]
        self.signals = [n for n in (*self.inputs, *self.disturbances) if n in self.sizes]
        self.names = tuple(derivative_text(*entry) for entry in self.entries)
        chained = [f"der({derivative_text(n, k)}) == {derivative_text(n, k + 1)}" for n, k in self._chained()]
        self.texts = (*(row.text for row in equations.rows), *chained, *(f"{n} is given" for n in self.signals))

    def outside(self, kind: JetKind) -> list[Jet | None]:
        names = self.inputs if kind == "input" else self.disturbances
        return [None if name in self.sizes else (name, 0) for name in names]

    def jacobian(self, formula: ca.SX, jets: Sequence[Jet | None]) -> ca.SX:
        result = ca.SX(formula.numel(), len(jets))
        named = [(column, self.jets.symbol(*jet)) for column, jet in enumerate(jets) if jet is not None]
        if named and formula.numel():
            result[:, [column for column, _ in named]] = ca.jacobian(formula, ca.vertcat(*(s for _, s in named)))
        return result

    def chains(self) -> tuple[ca.SX, ca.SX]:
        """Return z_k' = z_{k+1} for every quantity with more than one entry."""
        pairs = self._chained()
        E, F = ca.SX(len(pairs), len(self.entries)), ca.SX(len(pairs), len(self.entries))
        for row, (name, k) in enumerate(pairs):
            E[row, self.entries.index((name, k))] = 1
            F[row, self.entries.index((name, k + 1))] = 1
        return E, F

    def ties(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """0 = z_u − u for every signal that is an entry of z."""
        F = ca.SX(len(self.signals), len(self.entries))
        outside = [ca.SX(len(self.signals), len(names)) for names in (self.inputs, self.disturbances)]
        for row, name in enumerate(self.signals):
            F[row, self.entries.index((name, 0))] = 1
            for matrix, names in zip(outside, (self.inputs, self.disturbances), strict=True):
                if name in names:
                    matrix[row, names.index(name)] = -1
        return F, outside[0], outside[1]

    def _chained(self) -> list[Jet]:
        return [(name, k) for name, k in self.entries if k + 1 < self.sizes[name]]


def _highest(symbols: Sequence[JetSymbol]) -> dict[str, int]:
    found: dict[str, int] = {}
    for symbol in symbols:
        found[symbol.name] = max(symbol.order, found.get(symbol.name, 0))
    return found
