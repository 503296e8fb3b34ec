"""Which unknowns change at once where a discrete variable does.

In an action a quantity has the value that the equations give it with the states before the event and the *new* discrete
variables. What is written out in states and discrete variables has it by itself. Implicit unknowns and states that
constraints tie to a discrete variable are found by solving, after the actions: a formula that contains one together
with an action that changes it is not computed but refused.

An implicit unknown is carried by a discrete variable that its own equation contains, or another unknown that is carried
and stands in its equation; whose equation is whose is told by a matching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.structure.bipartite_matching import maximum_matching


@dataclass(frozen=True, eq=False)
class ImplicitDependence:
    """The unknowns that are solved for: z by the residuals, and states by constraints."""

    x: ca.SX
    z: ca.SX
    residual: ca.SX
    constraints: ca.SX
    state_names: tuple[str, ...]
    implicit_names: tuple[str, ...]

    def carried_by(self, discrete: ca.SX) -> list[tuple[str, ca.SX]]:
        """(name, symbol) of the unknowns that change where this discrete variable does."""
        rows = _incidence(self.constraints, ca.vertcat(discrete, self.x))
        tied = {k - 1 for row in rows if 0 in row for k in row - {0}}
        names = [*self.state_names, *self.implicit_names]
        places = [*sorted(tied), *(self.x.numel() + k for k in sorted(self._implicit(discrete, tied)))]
        symbols = [*ca.vertsplit(self.x), *ca.vertsplit(self.z)]
        return [(names[k], symbols[k]) for k in places]

    def _implicit(self, discrete: ca.SX, tied: set[int]) -> set[int]:
        if not self.z.numel():
            return set()
        rows = _incidence(self.residual, self.z)
        own = maximum_matching(rows, int(self.z.numel()))
        moving = ca.vertcat(discrete, *(self.x[k] for k in sorted(tied)))
        found = {own[i] for i, row in enumerate(_incidence(self.residual, moving)) if row}
        while more := {own[i] for i, row in enumerate(rows) if own[i] not in found and row & found}:
            found |= more
        return found


def _incidence(formulas: ca.SX, symbols: ca.SX) -> list[set[int]]:
    """For every formula the symbols in it, by where they stand; also inside relations, whose slope is zero."""
    if not formulas.numel() or not symbols.numel():
        return [set() for _ in range(formulas.numel())]
    dense = ca.Function("incidence", [symbols], [ca.densify(formulas)], {"allow_free": True})
    rows: list[set[int]] = [set() for _ in range(formulas.numel())]
    for row, column in zip(*dense.sparsity_jac(0, 0).get_triplet(), strict=True):
        rows[row].add(column)
    return rows


def carried_in(formula: ca.SX, carried: Sequence[tuple[str, ca.SX]]) -> str:
    """Return the first of the unknowns that a formula contains; empty where there is none."""
    return next((name for name, symbol in carried if ca.depends_on(formula, symbol)), "")
