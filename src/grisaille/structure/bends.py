"""Finds where formulas bend with states: knots of tables, ``abs``, ``minimum``, ``maximum``, relations and ``floor``.

Between bends a formula is smooth. Integrators look at the bends that a step passes, so that nothing is stepped over
that no stage has seen (gr_bends.h). Each bend is known by a gap that is zero there; those of ``floor``, of ``ceil`` and
of tables that repeat themselves by a value that is a whole number there::

    a < b, min(a, b), max(a, b): a − b,    sign a, |a|: a,    floor a, ceil a: a (whole)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.structure.switch_sides import (
    BACKWARD_OPERATIONS,
    CUTTING_OPERATIONS,
    FORWARD_OPERATIONS,
    ONE_ARGUMENT_OPERATIONS,
    STEP_OPERATIONS,
    operations_on,
)

if TYPE_CHECKING:
    from grisaille.structure.system import System


@dataclass(frozen=True, eq=False)
class RateBends:
    """The gaps at which the rates of states bend with states alone, and the rates, as functions of (t, x, u, p)."""

    gaps: ca.SX
    values: ca.Function
    """The gaps, one of which changes its sign at each bend."""
    rates: ca.Function

    @classmethod
    def of(cls, system: System) -> RateBends | None:
        """Return the bends of a system without algebraic unknowns; None where there are none."""
        gaps, wholes = bends_of(system.rhs, system.x)
        rows = [*ca.vertsplit(gaps)] if gaps.numel() else []
        rows += [ca.sin(np.pi * whole) for whole in (ca.vertsplit(wholes) if wholes.numel() else [])]
        rows = [g for g in rows if not system.nu or not ca.depends_on(g, system.u)]
        if not rows or system.nz:
            return None
        column, arguments = ca.vertcat(*rows), [system.t, system.x, system.u, system.p]
        values = ca.Function("gaps", arguments, [ca.densify(column)])
        return cls(column, values, ca.Function("rates", arguments, [ca.densify(system.rhs)]))


def bends_of(formula: ca.SX, symbols: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the gaps and the whole values of all bends in a column that depend on ``symbols``, each once."""
    nothing = ca.SX(0, 1)
    arguments = ca.symvar(formula)
    if not arguments or not symbols.numel() or not ca.depends_on(formula, symbols):
        return nothing, nothing
    gaps: dict[int, ca.SX] = {}
    wholes: dict[int, ca.SX] = {}
    for operation, values in operations_on(formula, symbols, CUTTING_OPERATIONS):
        if operation in STEP_OPERATIONS:
            wholes.setdefault(values[0].element_hash(), values[0])
        else:
            gap = _gap(operation, values)
            gaps.setdefault(gap.element_hash(), gap)
    return (ca.vertcat(*gaps.values()) if gaps else nothing, ca.vertcat(*wholes.values()) if wholes else nothing)


def _gap(operation: int, values: list[ca.SX]) -> ca.SX:
    if operation in FORWARD_OPERATIONS or operation in BACKWARD_OPERATIONS:
        return values[0] - values[1]
    return values[0] if operation in ONE_ARGUMENT_OPERATIONS else values[1]
