"""How often each disturbance is differentiated on its way to each variable, counted in the reduced system.

Let r(s) be the highest derivative of a disturbance w that a symbol s contains: r = k for w^{(k)} itself, and

    r(x_i) = max r(symbols of rhs_i) − 1,      r(z_j) = max r(symbols of its block),      r(y) = max r(symbols of y),

since a state integrates what drives it; r = −1 means that w passes one integration, −2 two of them. States in redundant
coordinates that follow a disturbed constraint come out right too: x' = w' has r(x) = 0. A variable has finite variance
when r < p, the pole excess of the spectrum of w (0 for white noise).

The count looks at which symbols occur, so it is right for nonlinear models and for all parameter values, but it misses
cancellations: it may count too high, never too low. What contains a signal of infinite variance in a nonlinear way
(the square of white noise) has no meaning and is marked ``undefined``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.matching import maximum_matching
from grisaille.structure.system import System

Reach = dict[str, int]
"""Disturbance → r; disturbances that do not arrive are absent."""


@dataclass(frozen=True)
class DifferentiationCount:
    """Per observed name the reach of each disturbance, and the names that make no sense."""

    reach: dict[str, Reach]
    undefined: dict[str, str]
    """Observed name → the symbol of infinite variance that enters nonlinearly on the way."""


def count_differentiations(system: System, pole_excess: Mapping[str, int]) -> DifferentiationCount:
    """The count for every observed name of a reduced system."""
    graph = _Graph(system)
    reach = graph.spread_reach()
    wild = {key for key, found in reach.items() if any(r >= pole_excess[w] for w, r in found.items())}
    undefined = graph.spread_nonsense(wild)
    named = {}
    spoiled = {}
    for name, formula in zip(system.observed_names, ca.vertsplit(system.observed) if system.ny else [], strict=True):
        named[name] = graph.reach_of(formula, reach)
        blame = graph.nonsense_of(formula, wild, undefined)
        if blame:
            spoiled[name] = blame
    return DifferentiationCount(named, spoiled)


class _Graph:
    """Which symbols (x, z, u by their hashes) stand in which formulas."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.names: dict[int, str] = {}
        self.symbols: dict[int, ca.SX] = {}
        texts = [s.name if s.order == 0 else f"der({s.name}, {s.order})" for s in system.signals]
        for vector, labels in ((system.x, system.state_names), (system.z, system.implicit_names), (system.u, texts)):
            for symbol, text in zip(_entries(vector), labels, strict=True):
                self.names[symbol.element_hash()], self.symbols[symbol.element_hash()] = text, symbol
        self.states = {s.element_hash(): f for s, f in zip(_entries(system.x), _entries(system.rhs), strict=True)}
        self.blocks = self._implicit_blocks()

    def spread_reach(self) -> dict[int, Reach]:
        reach: dict[int, Reach] = {
            symbol.element_hash(): {s.name: s.order}
            for symbol, s in zip(_entries(self.system.u), self.system.signals, strict=True)
            if s.kind == "disturbance"
        }
        changed = True
        while changed:  # every turn through a state lowers r, so the highest values settle
            changed = False
            for key, formula in self.states.items():
                lowered = {w: r - 1 for w, r in self.reach_of(formula, reach).items()}
                changed |= _raise(reach, key, lowered)
            for key, formulas in self.blocks.items():
                for formula in formulas:
                    changed |= _raise(reach, key, self.reach_of(formula, reach))
        return reach

    def reach_of(self, formula: ca.SX, reach: Mapping[int, Reach]) -> Reach:
        found: Reach = {}
        for key in self._within(formula):
            for w, r in reach.get(key, {}).items():
                found[w] = max(r, found.get(w, r))
        return found

    def spread_nonsense(self, wild: set[int]) -> dict[int, str]:
        undefined: dict[int, str] = {}
        changed = True
        while changed:
            changed = False
            for key, formulas in {**{k: [f] for k, f in self.states.items()}, **self.blocks}.items():
                if key not in undefined:
                    blame = next((b for f in formulas if (b := self.nonsense_of(f, wild, undefined))), None)
                    if blame:
                        undefined[key] = blame
                        changed = True
        return undefined

    def nonsense_of(self, formula: ca.SX, wild: set[int], undefined: Mapping[int, str]) -> str | None:
        keys = self._within(formula)
        for key in keys:
            if key in undefined:
                return undefined[key]
        here = [key for key in keys if key in wild]
        if not here:
            return None
        slopes = ca.jacobian(formula, ca.vertcat(*(self.symbols[k] for k in here)))
        again = [key for key in self._within(slopes) if key in wild]
        return self.names[again[0]] if again else None

    def _within(self, formula: ca.SX) -> list[int]:
        return [h for s in ca.symvar(formula) if (h := s.element_hash()) in self.names]

    def _implicit_blocks(self) -> dict[int, list[ca.SX]]:
        """For each z the residuals that it depends on, through a matching of residuals with entries of z."""
        residuals = _entries(self.system.residual)
        position = {s.element_hash(): j for j, s in enumerate(_entries(self.system.z))}
        rows = [{position[k] for k in self._within(r) if k in position} for r in residuals]
        owner = {column: row for row, column in enumerate(maximum_matching(rows, len(position)))}
        return {key: [residuals[owner[j]]] for key, j in position.items()}


def _entries(vector: ca.SX) -> Sequence[ca.SX]:
    return ca.vertsplit(vector) if vector.numel() else []


def _raise(reach: dict[int, Reach], key: int, found: Reach) -> bool:
    mine = reach.setdefault(key, {})
    higher = {w: r for w, r in found.items() if w not in mine or r > mine[w]}
    mine.update(higher)
    return bool(higher)
