"""Relations across which the reduced equations jump: with states, or with inputs and parameters alone.

A trajectory that crosses such a switch has a derivative by its parameters with a share of the jump itself,
(f⁺ − f⁻)·∂t*/∂θ, which the derivatives of the pieces do not contain. Found when first asked for, and shared by all
structures that differ in values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from grisaille.structure.differentiability import in_names
from grisaille.structure.held_events import HeldEvents, hold_events
from grisaille.structure.jets import Jets
from grisaille.structure.switching_pieces import Relation, jumps_of, relations_of
from grisaille.structure.system import System


@dataclass(frozen=True)
class Jump:
    """A relation of the reduced system across which something jumps."""

    text: str
    gap: ca.SX
    """Over (t, x, z, u, p)."""
    is_integer: bool
    """The switch is at every integer of the gap (``floor``), not at zero."""
    kind: str = ""
    """As ``Relation.kind``."""


@dataclass(frozen=True)
class InputCondition:
    """A relation of inputs and parameters alone in a condition of ``when``."""

    text: str
    inputs: tuple[int, ...]
    """Places in u."""
    parameters: tuple[int, ...]
    """Places in p."""


class Jumps:
    """The jumps of one reduced system."""

    def __init__(self, system: System, jets: Jets, parameters: Mapping[str, ca.SX]) -> None:
        self.system, self._jets, self._parameters = system, jets, parameters

    @cached_property
    def of_states(self) -> tuple[Jump, ...]:
        """Return the jumps with states and implicit unknowns that affect the motion."""
        system = self.system
        felt = system.nz > 0 and ca.depends_on(system.rhs, system.z)
        formula = ca.vertcat(system.rhs, system.residual) if felt else system.rhs
        return self._found(formula, ca.vertcat(system.x, system.z)) if system.nx else ()

    @cached_property
    def of_inputs(self) -> tuple[Jump, ...]:
        """Return those of inputs that contain parameters and no states: they switch where an input passes a
        threshold.
        """
        system = self.system
        inputs = [system.u[k] for k, s in enumerate(system.signals) if s.kind in ("input", "delayed")]
        if not inputs:
            return ()
        formula = ca.vertcat(system.rhs, system.residual, system.observed)
        moving = ca.vertcat(system.x, system.z)
        found = self._found(formula, ca.vertcat(*inputs))
        return tuple(j for j in found if ca.depends_on(j.gap, system.p) and not ca.depends_on(j.gap, moving))

    @cached_property
    def conditions_of_inputs(self) -> tuple[InputCondition, ...]:
        """Return relations of inputs that contain parameters and nothing that moves by itself, in conditions of
        ``when``.
        """
        system = self.system
        places = [k for k, s in enumerate(system.signals) if s.kind == "input"]
        if system.reactions is None or not places:
            return ()
        found = []
        inputs = ca.vertcat(*(system.u[k] for k in places))
        for relation in relations_of(system.reactions.conditions, inputs):
            inside = {s.element_hash() for s in ca.symvar(relation.gap)}
            driving = tuple(k for k, s in enumerate(ca.vertsplit(system.u)) if s.element_hash() in inside)
            constants = tuple(k for k, s in enumerate(ca.vertsplit(system.p)) if s.element_hash() in inside)
            if constants and not ca.depends_on(relation.gap, ca.vertcat(system.t, system.x, system.z)):
                found.append(InputCondition(self.name(relation.value), driving, constants))
        return tuple(found)

    @cached_property
    def gaps(self) -> ca.Function:
        """(t, x, z, u, p) → the gaps of ``of_states``."""
        s = self.system
        rows = ca.vertcat(*(j.gap for j in self.of_states)) if self.of_states else ca.SX(0, 1)
        return ca.Function("gaps", [s.t, s.x, s.z, s.u, s.p], [rows])

    @cached_property
    def events(self) -> HeldEvents | None:
        """Return the system with its relations held between events; None where nothing jumps with states or inputs."""
        return hold_events(self.system, self.name)

    def name(self, formula: ca.SX) -> str:
        """Return a short formula in the user's names."""
        return in_names(self._jets, self._parameters, formula)

    def _found(self, formula: ca.SX, symbols: ca.SX) -> tuple[Jump, ...]:
        return tuple(self._named(r) for r in jumps_of(formula, symbols))

    def _named(self, relation: Relation) -> Jump:
        text = self.name(relation.value)
        return Jump(text, relation.gap, relation.kind in ("floor", "ceil"), relation.kind)
