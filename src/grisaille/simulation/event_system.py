"""The system that integrators run, and the plan of a run: that of a point, with what each feature of its model adds.

Relations are held between events (``structure/held_events.py``, gr_events.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.plan import Functions, Plan
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.simulation.delayed_unknowns import past_of
from grisaille.simulation.event_texts import MAX_LISTED_EVENTS
from grisaille.structure.delays.pasts import with_moving_past
from grisaille.structure.held_events import HELD_KINDS, HeldEvents
from grisaille.structure.jumps import Jump, Jumps
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System

Floats = NDArray[np.float64]
LEEWAY_TOLERANCES = 10.0
"""Tolerances beyond a switch over which a run keeps its piece (``structure/relations_as_unknowns.py``)."""


@dataclass(frozen=True, eq=False)
class EventSystem:
    """What is run in place of the structure's own system."""

    plain: System
    """Before relations are held."""
    system: System
    events: HeldEvents | None = None

    def is_exact(self, jumps: Jumps) -> bool:
        """Return whether derivatives contain the share of every jump: all relations of states that jump are held."""
        return self.is_exact_across(jumps.of_states)

    def is_exact_across(self, crossed: Sequence[Jump]) -> bool:
        """Return the same of some relations."""
        if self.events is None:
            return not crossed
        return self.events.is_dated and all(jump.kind in HELD_KINDS for jump in crossed)

    def listing(self, plan: Plan[Functions]) -> Plan[Functions]:
        """Return the same plan, with a list of its events."""
        return plan if self.events is None else plan.replace(most_events=MAX_LISTED_EVENTS)


def event_system(structure: Structure, ns: int) -> EventSystem:
    """Return what is run of a structure: with modes where something jumps."""
    if structure.system.has.pasts and ns:
        structure = with_moving_past(structure, ns)
    plain, events = structure.system, structure.jumps.events
    return EventSystem(plain, plain if events is None else events.system, events)


def plan_of(
    point: ExperimentPoint,
    form: EventSystem,
    kernel: Functions,
    sizes: Floats,
    rtol: float,
    *,
    directions: int,
    leeway: float,
) -> Plan[Functions]:
    """Return the run of a point over its times: its signals, parameters and start, with what each feature of its model
    adds.

    sizes : absolute tolerances of x and z
    directions : those that the system was prepared for
    leeway : the tolerance that pieces of relations held as unknowns are kept by
    """
    system, moved, has = point.structure.system, len(point.dq) > 0, point.structure.system.has
    plan = Plan(
        kernel, point.t0, float(point.times[-1]), point.times, point.table, point.p, point.start.x, point.start.z,
        dp=point.dp, sx=point.dstart.sx if moved else None, sz=point.dstart.sz if moved else None, rtol=rtol,
        atol=sizes, nominal=point.initializer.nominal[: system.nx],
    )  # fmt: skip
    if has.pasts:
        plan = _with_past(plan, point, form, directions)
    if has.leeway is not None:
        table = _table(plan)
        coef = table.coef.copy()
        coef[:, has.leeway, 0] = LEEWAY_TOLERANCES * leeway
        plan = plan.replace(signals=replace(table, coef=coef))
    return plan if form.events is None else leeway_parameters(plan, form.events)


def _with_past(plan: Plan[Functions], point: ExperimentPoint, form: EventSystem, ns: int) -> Plan[Functions]:
    """Return the plan with the past that is filled in during the run."""
    past = past_of(point, form.plain, ns)
    past = past if form.events is None else replace(past, slopes=tuple(form.events.slopes))
    if not ns:
        return plan.replace(past=past)
    table, dp = _table(plan), np.asarray(plan.dp)
    more = np.zeros((len(table.coef), len(past.places) * ns, table.coef.shape[2]))
    return plan.replace(
        signals=replace(table, coef=np.concatenate([table.coef, more], axis=1)),
        p=np.concatenate([np.asarray(plan.p), np.zeros(ns)]),
        dp=np.concatenate([dp, np.eye(ns)[: len(dp)]], axis=1),
        past=past,
    )


def leeway_parameters(plan: Plan[Functions], events: HeldEvents) -> Plan[Functions]:
    """Return the plan with the leeways of a system with modes, which integrators set, and with shares of sliding
    motions, of size one.
    """
    more, place, count, table = events.system.np - events.before.np, events.place, events.count, _table(plan)
    if events.slopes:  # derivatives of signals that gaps contain
        moving = table.coef[:, list(events.slopes), :]
        slopes = np.zeros_like(moving)
        slopes[:, :, :-1] = moving[:, :, 1:] * np.arange(1, moving.shape[2])
        table = replace(table, coef=np.concatenate([table.coef, slopes], axis=1))
    p, dp, z = (np.asarray(a) for a in (plan.p, plan.dp, plan.z))
    return plan.replace(
        signals=table,
        p=_longer(p, p.shape[-1], more, 0.0),
        dp=_longer(dp, dp.shape[-1], more, 0.0),
        z=_longer(z, place, count, 0.0),
        sz=None if plan.sz is None else _longer(np.asarray(plan.sz), place, count, 0.0),
        atol=_longer(np.asarray(plan.atol), events.system.nx + place, count, 1e-3 * plan.rtol),
    )


def _table(plan: Plan[Functions]) -> SignalTable:
    assert isinstance(plan.signals, SignalTable)
    return plan.signals


def _longer(values: Floats, place: int, count: int, value: float) -> Floats:
    """Return an array extended along the last axis."""
    more = np.full((*values.shape[:-1], count), value)
    return np.concatenate([values[..., :place], more, values[..., place:]], axis=-1)
