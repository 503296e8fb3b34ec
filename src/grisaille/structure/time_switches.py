"""Formulas of time that jump or bend: conditions such as ``time > 5``, ``floor(time / T)``, a table over time.

Where such a formula contains nothing but time and parameters, its switching instants are known before the run. A
formula that is constant between them becomes a signal of its own (kind ``"switch"``), held like a sampled input, so
that every step ends on the jump and sees one side of it. Formulas that bend there (``abs``, ``minimum``, ``maximum``,
tables) are made of pieces that such a signal chooses. Switches may contain switches: ``time - T * floor(time / T) > d``
is a train of pulses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.model.expression import Call
from grisaille.model.lowering.table_lowering import Held, lower_table, lower_table2
from grisaille.model.notation.text import render
from grisaille.structure.jets import Jets

if TYPE_CHECKING:
    from grisaille.structure.system import System

CONSTANT_BETWEEN = frozenset({"lt", "le", "gt", "ge", "sign", "floor", "ceil"})


class Switches:
    """Collects the switching formulas of one model while it is lowered."""

    def __init__(self, jets: Jets, parameters: dict[str, ca.SX]) -> None:
        self._jets = jets
        self._allowed = {s.element_hash() for s in parameters.values()} | {jets.time.element_hash()}
        self.values: dict[str, ca.SX] = {}
        """Signal → its value as a formula of time and parameters."""

    def inspect(self, node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        """Called for every operation; replaces what jumps with time by a signal."""
        if node.operation in CONSTANT_BETWEEN:
            formula = self._of_time(value)
            return value if formula is None else self._signal(node, formula)
        if node.operation == "abs":
            formula = self._of_time(arguments[0])
            return value if formula is None else self._signal(node, ca.sign(formula)) * arguments[0]
        if node.operation in ("minimum", "maximum"):
            formula = self._of_time(arguments[0] - arguments[1])
            if formula is None:
                return value
            smaller = self._signal(node, formula < 0)
            first, second = arguments if node.operation == "minimum" else reversed(arguments)
            return ca.if_else(smaller, first, second)
        if node.operation == "table" and self._of_time(arguments[0]) is not None:
            return lower_table(node.data, *arguments, held=self._counted(node))
        if node.operation == "table2":
            timed = [self._of_time(a) is not None for a in arguments[:2]]
            if any(timed):
                held = [self._counted(node) if of_time else None for of_time in timed]
                return lower_table2(node.data, *arguments, held=(held[0], held[1]))
        return value

    def _counted(self, node: Call) -> Held:
        """Return the number of knots that were passed, as a signal."""

        def held(count: ca.SX) -> ca.SX:
            formula = self._of_time(count)
            return count if formula is None else self._signal(node, formula)

        return held

    def constant(self, name: str, value: float) -> ca.SX:
        """Return a signal that has this value unless a simulation sets another."""
        if name not in self.values:
            self._jets.declare(name, "switch")
            self.values[name] = ca.SX(value)
        return self._jets.symbol(name)

    def counter(self, name: str, value: ca.SX) -> str:
        """Return a signal that counts the ticks of a clock; gives its name."""
        if name not in self.values:
            self._jets.declare(name, "switch")
            self.values[name] = value
        return name

    def symbol(self, name: str) -> ca.SX:
        """Return the symbol of a signal."""
        return self._jets.symbol(name)

    def _of_time(self, formula: ca.SX) -> ca.SX | None:
        """Return the formula in time and parameters alone, switches within it written out; None where anything else
        occurs.
        """
        used = {s.element_hash() for s in ca.symvar(formula)}
        inner = [(s, v) for n, v in self.values.items() if (s := self._jets.symbol(n)).element_hash() in used]
        used -= {s.element_hash() for s, _ in inner}
        if not used <= self._allowed or not (inner or self._jets.time.element_hash() in used):
            return None
        if not inner:
            return formula
        symbols, values = zip(*inner, strict=True)
        return ca.substitute(formula, ca.vertcat(*symbols), ca.vertcat(*values))

    def _signal(self, node: Call, value: ca.SX) -> ca.SX:
        text = render(node)
        name = text if text not in self.values else f"{text} [{len(self.values)}]"
        self._jets.declare(name, "switch")
        self.values[name] = value
        return self._jets.symbol(name)


def steady_signals(system: System, values: Mapping[str, float], t: float, p: np.ndarray) -> np.ndarray:
    """Return all signals where inputs and disturbances stay at ``values`` (zero if not named); switches as they stand
    at t.
    """
    switches = system.switch_function(t, p).full().ravel()
    names = [s.name for s in system.signals if s.kind == "switch" and s.order == 0]
    known = {**values, **dict(zip(names, switches, strict=True))}
    return np.array([known.get(s.name, 0.0) if s.order == 0 else 0.0 for s in system.signals])
