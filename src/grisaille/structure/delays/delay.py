"""Delayed formulas as signals: every leaf of ``delay(f, tau)`` becomes a signal that repeats its source tau later.

::

    delay(f(x, u, time), tau)   →   f(x(t − tau), u(t − tau), t − tau),    each leaf at its start value before t₀ + tau

A formula of parameters that held before (``before=``) is chosen by a signal that is one from t₀ + tau on. Delays inside
delays add up. Such signals have derivatives as inputs have, so that index reduction may differentiate them: the
derivative of what was is what its derivative was. Sources are inputs, switches, time itself, and unknowns of the model,
whose past is known only while the model runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import casadi as ca

from grisaille.errors import EstimationError, ModelError, StructureError
from grisaille.model.expression import Call
from grisaille.model.notation.text import render
from grisaille.structure.jets import Jets, derivative_text

PASSED_SOURCE = "the start"
"""The source of the signal that is zero before t₀ + tau and one from there on."""
TIME_SOURCE = "time"


@dataclass(frozen=True)
class Delay:
    """One delayed signal."""

    name: str
    """``"delay(u, tau)"``"""
    source: str
    """The name of an input, a switch or an unknown, ``"time"``, or ``PASSED_SOURCE``."""
    kind: str
    """``"input"``, ``"switch"``, ``"unknown"``, ``"time"`` or ``"passed"``."""
    tau: ca.SX
    """A formula of parameters."""
    text: str
    """tau in the user's names."""


class Delays:
    """Collects the delayed signals of one model while it is lowered."""

    def __init__(self, model: str, jets: Jets, parameters: dict[str, ca.SX], discretes: Collection[str] = ()) -> None:
        self._model, self._jets, self._parameters = model, jets, parameters
        self._allowed = {s.element_hash() for s in parameters.values()}
        self._discretes = {parameters[n].element_hash(): n for n in discretes}
        self.values: dict[str, Delay] = {}

    def lowered(self, node: Call, x: ca.SX, tau: ca.SX, before: ca.SX | None = None) -> ca.SX:
        """Return delay(x, tau, before) over signals that are declared here."""
        for symbol in ca.symvar(ca.vertcat(x, tau, *([] if before is None else [before]))):
            if symbol.element_hash() in self._discretes:
                raise StructureError(
                    f"{self._model}: {render(node)} contains the discrete variable "
                    f"'{self._discretes[symbol.element_hash()]}', whose past is not kept: let a state follow it, "
                    f"der(d) == (n - d) / T, and delay that, or delay what it stands beside."
                )
        self._check(node, "dead time", tau, node.arguments[1])
        if before is not None:
            self._check(node, "value before the start", before, node.arguments[2])
        text = render(node.arguments[1])
        old, new = [], []
        for symbol in ca.symvar(x):
            if symbol.element_hash() not in self._allowed:
                old.append(symbol)
                new.append(self._leaf(node, symbol, tau, text))
        if not old:
            raise ModelError(f"{self._model}: {render(node)} is the delay of a constant; remove the delay.")
        past = ca.substitute(x, ca.vertcat(*old), ca.vertcat(*new))
        if before is None:
            return past
        passed = self._signal(PASSED_SOURCE, "passed", tau, text, 0)
        return passed * past + (1 - passed) * before

    def _check(self, node: Call, what: str, formula: ca.SX, written: object) -> None:
        if any(s.element_hash() not in self._allowed for s in ca.symvar(formula)):
            raise ModelError(
                f"{self._model}: the {what} of {render(node)} is {written}, which is no formula of parameters; give a "
                f"number, a parameter or a formula of parameters."
            )

    def _leaf(self, node: Call, symbol: ca.SX, tau: ca.SX, text: str) -> ca.SX:
        if symbol.element_hash() == self._jets.time.element_hash():
            return self._signal(TIME_SOURCE, "time", tau, text, 0)
        meaning = self._jets.meaning(symbol)
        assert meaning is not None
        if meaning.kind == "disturbance":
            raise StructureError(
                f"{self._model}: {render(node)} delays the disturbance '{meaning.name}', whose past is random: let a "
                f"state follow it, der(d) == ({meaning.name} - d) / T, and delay that, or delay an input."
            )
        if meaning.kind == "delayed":
            inner = self.values[meaning.name]
            return self._signal(inner.source, inner.kind, inner.tau + tau, _sum(inner.text, text), meaning.order)
        if meaning.kind == "unknown" and meaning.order:
            raise StructureError(
                f"{self._model}: {render(node)} delays {derivative_text(meaning.name, meaning.order)}, so that a rate "
                f"depends on an earlier rate (a neutral equation), which is not solved here. Delay "
                f"{meaning.name} itself, or let a state follow the rate and delay that."
            )
        return self._signal(meaning.name, meaning.kind, tau, text, meaning.order)

    def _signal(self, source: str, kind: str, tau: ca.SX, text: str, order: int) -> ca.SX:
        name = f"delay({source}, {text})"
        if name not in self.values:
            self._jets.declare(name, "delayed")
            self.values[name] = Delay(name, source, kind, tau, text)
        return self._jets.symbol(name, order)


def _sum(first: str, second: str) -> str:
    return f"{first} + {second}"


def refuse_past_of_unknowns(delays: Sequence[Delay], who: str) -> None:
    """Refuse delayed unknowns; ``who`` needs states that tell everything of the past."""
    unknown = [d.name for d in delays if d.kind == "unknown"]
    if unknown:
        raise EstimationError(
            f"The equations contain {unknown[0]}, the past of an unknown, and {who}: the states of one instant do not "
            f"tell it. Use gr.OutputError(), which simulates, or gr.SimulatedPEM() where disturbances matter; or "
            f"replace the delay by a chain of n lags, der(d[k]) == (d[k-1] - d[k]) * n / tau."
        )
