"""Symbols with all their time derivatives, and the total time derivative of a formula.

A *jet* is a quantity that depends on time together with its derivatives: unknown x, x', x'', …; input u, u', …; a
disturbance likewise. Differentiating a formula shifts every jet by one order (chain rule) and adds ∂/∂t:

    d/dt f = Σ_k ∂f/∂s_k · s_k'  +  ∂f/∂t
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import casadi as ca

JetKind = Literal["unknown", "input", "disturbance", "switch", "delayed"]


@dataclass(frozen=True)
class JetSymbol:
    """The ``order``-th time derivative of the quantity ``name``."""

    name: str
    order: int
    kind: JetKind

    @property
    def text(self) -> str:
        return derivative_text(self.name, self.order)


def derivative_text(name: str, order: int) -> str:
    """Return ``x``, ``der(x)``, ``der(x, 2)``: the way a user writes it."""
    return name if order == 0 else f"der({name})" if order == 1 else f"der({name}, {order})"


class Jets:
    """All time-dependent symbols of one model; grows on demand as derivatives are asked for."""

    def __init__(self) -> None:
        self.time = ca.SX.sym("t")
        self._kinds: dict[str, JetKind] = {}
        self._symbols: dict[tuple[str, int], ca.SX] = {}
        self._meaning: dict[int, JetSymbol] = {}
        self._inside: dict[int, tuple[ca.SX, dict[str, int]]] = {}

    def declare(self, name: str, kind: JetKind) -> None:
        self._kinds[name] = kind

    def symbol(self, name: str, order: int = 0) -> ca.SX:
        key = (name, order)
        if key not in self._symbols:
            symbol = ca.SX.sym(f"s{len(self._symbols)}")
            self._symbols[key] = symbol
            self._meaning[symbol.element_hash()] = JetSymbol(name, order, self._kinds[name])
        return self._symbols[key]

    def meaning(self, symbol: ca.SX) -> JetSymbol | None:
        """Return what an ``SX`` symbol stands for; None for time and parameters."""
        return self._meaning.get(symbol.element_hash())

    def within(self, formula: ca.SX) -> list[JetSymbol]:
        """Return every jet symbol that occurs in a formula."""
        found = (self.meaning(s) for s in ca.symvar(formula))
        return [m for m in found if m is not None]

    def unknowns(self, formula: ca.SX) -> dict[str, int]:
        """Return the highest order with which each unknown occurs."""
        if formula.numel() != 1:
            return self._unknowns(formula)
        key = formula.element_hash()
        if key not in self._inside:
            self._inside[key] = formula, self._unknowns(formula)  # the formula lives on, so that its key stays its own
        return self._inside[key][1]

    def _unknowns(self, formula: ca.SX) -> dict[str, int]:
        highest: dict[str, int] = {}
        for m in self.within(formula):
            if m.kind == "unknown":
                highest[m.name] = max(m.order, highest.get(m.name, 0))
        return highest

    def differentiate(self, formula: ca.SX) -> ca.SX:
        """Return the total time derivative."""
        known = self.meaning(formula) if formula.is_symbolic() and formula.numel() == 1 else None
        if known is not None:
            return self.symbol(known.name, known.order + 1)
        here = self.within(formula)
        now = [self.time] + [self.symbol(m.name, m.order) for m in here]
        rate = [ca.SX(1)] + [self.symbol(m.name, m.order + 1) for m in here]
        return ca.simplify(ca.jtimes(formula, ca.vertcat(*now), ca.vertcat(*rate)))

    def of_kind(self, kinds: Iterable[JetKind]) -> list[JetSymbol]:
        """Return the symbols of some kinds, in order of appearance."""
        wanted = set(kinds)
        return [m for m in self._meaning.values() if m.kind in wanted]
