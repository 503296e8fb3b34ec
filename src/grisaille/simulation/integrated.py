"""The system that integrators run, and its arguments: those of a point, with what each feature of its model adds.

Relations are held between events in compiled integrators only (``structure/events.py``, gr_events.h); interpreted ones
step across jumps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.compiler import is_switched_off
from grisaille.compilation.task import Task
from grisaille.errors import SimulationError
from grisaille.experiment.interpolation import SignalTable
from grisaille.simulation.events import LISTED
from grisaille.simulation.past import Past, past_of
from grisaille.structure.delays.pasts import with_moving_past
from grisaille.structure.events import HELD, Events
from grisaille.structure.jumps import Jumps
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System
from grisaille.trial import Point

Floats = NDArray[np.float64]
LEEWAY = 10.0
"""Tolerances beyond a switch over which a run keeps its piece (``structure/held.py``)."""


@dataclass(frozen=True, eq=False)
class Arguments:
    """Of a run: signals, parameters, implicit unknowns and tolerances; derivatives have a row for each direction."""

    table: SignalTable
    p: Floats
    dp: Floats
    z: Floats
    sz: Floats | None
    atol: Floats
    """Of x and z."""
    past: Past | None = None


@dataclass(frozen=True, eq=False)
class Integrated:
    """What is run in place of the structure's own system."""

    plain: System
    """Before relations are held."""
    system: System
    events: Events | None = None

    def is_exact(self, jumps: Jumps) -> bool:
        """Whether derivatives contain the share of every jump: all relations of states that jump are held."""
        if self.events is None:
            return not jumps.of_states
        return self.events.is_dated and all(jump.kind in HELD for jump in jumps.of_states)

    def listing(self, task: Task) -> Task:
        """The same task, with room for a list of its events."""
        if self.events is not None:
            task.most_events, task.events = LISTED, np.zeros((LISTED, 3))
        return task


def integrated(structure: Structure, ns: int, compiled: bool | None) -> Integrated:
    """With modes where the run is compiled and something jumps; refused where events would have to be interpreted."""
    if structure.system.has.pasts and ns:
        structure = with_moving_past(structure, ns)
    plain, is_interpreted = structure.system, compiled is False or is_switched_off()
    if plain.reactions is not None:
        refuse_interpreted(plain, compiled)
    events = None if is_interpreted else structure.jumps.events
    return Integrated(plain, plain if events is None else events.system, events)


def refuse_interpreted(system: System, compiled: bool | None) -> None:
    """Refuse events of a model's own where integrators are interpreted."""
    assert system.reactions is not None
    if compiled is False or is_switched_off():
        why = "compiled=False was given" if compiled is False else "GRISAILLE_COMPILER=none switches it off"
        raise SimulationError(
            f"gr.when({system.reactions.texts[0]}) needs the compiled integrators, and {why}: interpreted ones know "
            f"no events. Leave compiled= out, or install a compiler (python -m pip install ziglang)."
        )


def arguments_of(point: Point, form: Integrated, ns: int, atol: Floats, rtol: float, leeway: float) -> Arguments:
    """Of a point.

    ns : directions that the system was prepared for
    leeway : the tolerance that pieces of relations held as unknowns are kept by
    """
    sz = point.dstart.sz if len(point.dq) else None
    given, has = Arguments(point.table, point.p, point.dp, point.start.z, sz, atol), point.structure.system.has
    if has.pasts:
        given = _with_past(given, point, form, ns)
    if has.leeway is not None:
        coef = given.table.coef.copy()
        coef[:, has.leeway, 0] = LEEWAY * leeway
        given = replace(given, table=replace(given.table, coef=coef))
    return given if form.events is None else held(given, form.events, rtol)


def _with_past(given: Arguments, point: Point, form: Integrated, ns: int) -> Arguments:
    """With what is to be filled in on the way."""
    past = past_of(point, form.plain, ns)
    past = past if form.events is None else replace(past, slopes=tuple(form.events.slopes))
    if not ns:
        return replace(given, past=past)
    coef = given.table.coef
    more = np.zeros((len(coef), len(past.places) * ns, coef.shape[2]))
    return replace(
        given,
        table=replace(given.table, coef=np.concatenate([coef, more], axis=1)),
        p=np.concatenate([given.p, np.zeros(ns)]),
        dp=np.concatenate([given.dp, np.eye(ns)[: len(given.dp)]], axis=1),
        past=past,
    )


def held(given: Arguments, events: Events, rtol: float) -> Arguments:
    """Of the system with modes, which integrators set themselves, and with shares of what slides, of the size one."""
    more, place, count, table = events.system.np - events.before.np, events.place, events.count, given.table
    if events.slopes:  # derivatives of signals that gaps contain
        moving = table.coef[:, list(events.slopes), :]
        slopes = np.zeros_like(moving)
        slopes[:, :, :-1] = moving[:, :, 1:] * np.arange(1, moving.shape[2])
        table = replace(table, coef=np.concatenate([table.coef, slopes], axis=1))
    return replace(
        given,
        table=table,
        p=_longer(given.p, given.p.shape[-1], more, 0.0),
        dp=_longer(given.dp, given.dp.shape[-1], more, 0.0),
        z=_longer(given.z, place, count, 0.0),
        sz=None if given.sz is None else _longer(given.sz, place, count, 0.0),
        atol=_longer(given.atol, events.system.nx + place, count, 1e-3 * rtol),
    )


def _longer(values: Floats, place: int, count: int, value: float) -> Floats:
    """Along the last axis."""
    more = np.full((*values.shape[:-1], count), value)
    return np.concatenate([values[..., :place], more, values[..., place:]], axis=-1)
