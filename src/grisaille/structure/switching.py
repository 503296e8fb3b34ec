"""Formulas of time that jump or bend: conditions such as ``time > 5``, ``floor(time / T)``, a table over time.

Where such a formula contains nothing but time and parameters, its switching instants are known before the run. A
formula that is constant between them becomes a signal of its own (kind ``"switch"``), held like a sampled input, so
that every step ends on the jump and sees one side of it. Continuous formulas that only bend there (``abs``,
``minimum``, ``maximum``, tables) stay as they are; their bends are recorded so that steps end on them too.
"""

from __future__ import annotations

import casadi as ca

from grisaille.model.expression import Call
from grisaille.model.text import render
from grisaille.structure.jets import Jets

CONSTANT_BETWEEN = frozenset({"lt", "le", "gt", "ge", "sign", "floor", "ceil"})


class Switches:
    """Collects the switching formulas of one model while it is lowered."""

    def __init__(self, jets: Jets, parameters: dict[str, ca.SX]) -> None:
        self._jets = jets
        self._allowed = {s.element_hash() for s in parameters.values()} | {jets.time.element_hash()}
        self.values: dict[str, ca.SX] = {}
        """Signal → its value as a formula of time and parameters."""
        self.bends: list[ca.SX] = []
        """Piecewise constant formulas of time and parameters that change where another formula bends."""

    def inspect(self, node: Call, arguments: list[ca.SX], value: ca.SX) -> ca.SX:
        """Called for every operation; replaces what jumps with time by a signal."""
        if node.operation in CONSTANT_BETWEEN and self._is_of_time(value):
            return self._signal(node, value)
        if node.operation == "abs" and self._is_of_time(arguments[0]):
            self.bends.append(ca.sign(arguments[0]))
        elif node.operation in ("minimum", "maximum") and self._is_of_time(arguments[0] - arguments[1]):
            self.bends.append(arguments[0] < arguments[1])
        elif node.operation == "table" and self._is_of_time(arguments[0]):
            self.bends.append(sum((arguments[0] > float(x) for x in node.data[2]), start=ca.SX(0)))
        return value

    def _is_of_time(self, formula: ca.SX) -> bool:
        symbols = {s.element_hash() for s in ca.symvar(formula)}
        return self._jets.time.element_hash() in symbols and symbols <= self._allowed

    def _signal(self, node: Call, value: ca.SX) -> ca.SX:
        text = render(node)
        name = text if text not in self.values else f"{text} [{len(self.values)}]"
        self._jets.declare(name, "switch")
        self.values[name] = value
        return self._jets.symbol(name)
