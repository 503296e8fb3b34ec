"""How often each disturbance is differentiated on its way to each variable, counted in the equations.

Let r(x) be the highest derivative of a disturbance w that the unknown x contains: 0 for w itself, −k where w passes k
integrations first. The transversal of the signature method says which unknown each equation determines. If equation i
determines x_j and contains it up to order σ_ij, then

    r(x_j) + σ_ij = max over the other symbols of equation i of (r(x_k) + σ_ik, order of w),

a longest-path problem without positive cycles, because the transversal is maximal. The result is the degree of
numerator minus denominator of the transfer function from w to x_j for generic coefficients. A variable has finite
variance when r < p, the pole excess of the spectrum of w (0 for white noise).

The count looks at which symbols occur, so it holds for nonlinear models and all parameter values, but misses
cancellations: it may be too high, never too low. Where a signal of infinite variance enters the reduced system
nonlinearly (the square of white noise, its sign), what depends on it has no meaning and is marked ``undefined``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.bipartite_matching import maximum_matching
from grisaille.structure.equations import Equations
from grisaille.structure.jets import JetSymbol, derivative_text
from grisaille.structure.reduction import Structure
from grisaille.structure.switching_pieces import relations_of

Reach = dict[str, int]
"""Disturbance → r; disturbances that do not arrive are absent."""


@dataclass(frozen=True)
class DifferentiationCount:
    """Per observed name the reach of each disturbance, and the names that make no sense."""

    reach: dict[str, Reach]
    undefined: dict[str, str]
    """Observed name → the symbol of infinite variance that enters nonlinearly on the way."""

    def is_finite(self, name: str, pole_excess: Mapping[str, int]) -> bool:
        """Return whether no disturbance reaches the name as white noise or worse."""
        return name not in self.undefined and all(r < pole_excess[w] for w, r in self.reach[name].items())


def count_differentiations(structure: Structure, pole_excess: Mapping[str, int]) -> DifferentiationCount:
    """Return the count for every name the user knows."""
    equations = structure.equations
    reach = _reach_of_unknowns(equations, structure.offsets.transversal)
    named = {name: _reach_of(equations.jets.within(formula), reach) for name, formula in equations.observed.items()}
    wild = {
        (name, order)
        for name, order in _symbols_of_system(structure).values()
        if any(
            r + order >= pole_excess[w] for w, r in reach.get(name, {name: 0} if name in pole_excess else {}).items()
        )
    }
    return DifferentiationCount(named, _Sense(structure, wild).undefined())


def _reach_of_unknowns(equations: Equations, transversal: Sequence[int]) -> dict[str, Reach]:
    reach: dict[str, Reach] = {}
    rows = []
    for row, unknown in zip(equations.rows, transversal, strict=True):
        name = equations.unknowns[unknown]
        within = equations.jets.within(row.residual)
        own = max(m.order for m in within if m.name == name)
        rows.append((name, own, [m for m in within if m.name != name]))
    changed = True
    while changed:
        changed = False
        for name, own, others in rows:
            mine = reach.setdefault(name, {})
            for w, r in _reach_of(others, reach).items():
                if r - own > mine.get(w, r - own - 1):
                    mine[w] = r - own
                    changed = True
    return reach


def _reach_of(symbols: Sequence[JetSymbol], reach: Mapping[str, Reach]) -> Reach:
    found: Reach = {}
    for m in symbols:
        own = {m.name: 0} if m.kind == "disturbance" else reach.get(m.name, {})
        for w, r in own.items():
            found[w] = max(r + m.order, found.get(w, r + m.order))
    return found


def _symbols_of_system(structure: Structure) -> dict[int, tuple[str, int]]:
    """Return every symbol of the reduced system by its hash: which unknown or signal, at which order of derivative."""
    system, jets = structure.system, structure.equations.jets
    meanings = {s.element_hash(): jets.meaning(s) for v in (system.x, system.z, system.u) for s in _entries(v)}
    return {key: (m.name, m.order) for key, m in meanings.items() if m is not None}


class _Sense:
    """Where signals of infinite variance (``wild``) enter the reduced system nonlinearly, and what that spoils."""

    def __init__(self, structure: Structure, wild: set[tuple[str, int]]) -> None:
        self.system = structure.system
        self.meaning = _symbols_of_system(structure)
        self.symbols = {s.element_hash(): s for v in (self.system.x, self.system.z, self.system.u) for s in _entries(v)}
        self.wild = {key for key, meaning in self.meaning.items() if meaning in wild}
        self.sources = {
            s.element_hash(): [f] for s, f in zip(_entries(self.system.x), _entries(self.system.rhs), strict=True)
        }
        self.sources.update(self._implicit())

    def undefined(self) -> dict[str, str]:
        spoiled: dict[int, str] = {}
        changed = bool(self.wild)
        while changed:
            changed = False
            for key, formulas in self.sources.items():
                blame = next((b for f in formulas if (b := self._blame(f, spoiled))), None)
                if blame and key not in spoiled:
                    spoiled[key] = blame
                    changed = True
        observed = zip(self.system.observed_names, _entries(self.system.observed), strict=True)
        return {name: blame for name, formula in observed if (blame := self._blame(formula, spoiled))}

    def _blame(self, formula: ca.SX, spoiled: Mapping[int, str]) -> str | None:
        keys = self._within(formula)
        for key in keys:
            if key in spoiled:
                return spoiled[key]
        here = [self.symbols[key] for key in keys if key in self.wild]
        if not here:
            return None
        wild = ca.vertcat(*here)
        curved = ca.vertcat(ca.vec(ca.jacobian(formula, wild)), *(r.gap for r in relations_of(formula, wild)))
        again = [key for key in self._within(curved) if key in self.wild]
        return derivative_text(*self.meaning[again[0]]) if again else None

    def _within(self, formula: ca.SX) -> list[int]:
        return [key for s in ca.symvar(formula) if (key := s.element_hash()) in self.symbols]

    def _implicit(self) -> dict[int, list[ca.SX]]:
        """For each entry of z the residual that determines it, by a matching."""
        residuals = _entries(self.system.residual)
        position = {s.element_hash(): j for j, s in enumerate(_entries(self.system.z))}
        rows = [{position[k] for k in self._within(r) if k in position} for r in residuals]
        owner = {column: row for row, column in enumerate(maximum_matching(rows, len(position)))}
        return {key: [residuals[owner[j]]] for key, j in position.items()}


def _entries(vector: ca.SX) -> Sequence[ca.SX]:
    return ca.vertsplit(vector) if vector.numel() else []
