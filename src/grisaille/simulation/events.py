"""Runs whose relations are held between events: arguments of the system with modes, and what happened in words.

Modes exist in compiled integrators only (``structure/events.py``, gr_events.h); interpreted ones step across jumps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.compiler import is_switched_off
from grisaille.compilation.task import Task
from grisaille.errors import SimulationError
from grisaille.experiment.interpolation import SignalTable
from grisaille.structure.events import HELD, Events
from grisaille.structure.jumps import Jumps
from grisaille.structure.system import System

Floats = NDArray[np.float64]
LISTED = 5_000
"""Events that are listed; those beyond are counted."""


class Form:
    """The system that integrators run, and its arguments from those of the structure's own."""

    def __init__(self, system: System, events: Events | None) -> None:
        self.events, self.plain = events, system
        self.system = system if events is None else events.system

    @property
    def slopes(self) -> tuple[int, ...]:
        """Places in u of signals whose derivatives ``table`` appends."""
        return () if self.events is None else tuple(self.events.slopes)

    def is_exact(self, jumps: Jumps) -> bool:
        """Whether derivatives contain the share of every jump: all relations of states that jump are held."""
        if self.events is None:
            return not jumps.of_states
        return self.events.is_dated and all(jump.kind in HELD for jump in jumps.of_states)

    def parameters(self, p: Floats) -> Floats:
        """Values or derivatives, along the last axis; modes are set by integrators."""
        return p if self.events is None else _longer(p, p.shape[-1], self.system.np - self.events.before.np, 0.0)

    def implicit(self, z: Floats) -> Floats:
        """Values or derivatives, along the last axis; shares of what slides are set by integrators."""
        return z if self.events is None else _longer(z, self.events.place, self.events.count, 0.0)

    def tolerances(self, atol: Floats, rtol: float) -> Floats:
        """Of x and z; a share has the size one."""
        if self.events is None:
            return atol
        return _longer(atol, self.system.nx + self.events.place, self.events.count, 1e-3 * rtol)

    def table(self, table: SignalTable) -> SignalTable:
        """With the derivatives of signals that gaps contain."""
        if self.events is None or not self.events.slopes:
            return table
        moving = table.coef[:, list(self.events.slopes), :]
        slopes = np.zeros_like(moving)
        slopes[:, :, :-1] = moving[:, :, 1:] * np.arange(1, moving.shape[2])
        return replace(table, coef=np.concatenate([table.coef, slopes], axis=1))

    def listing(self, task: Task) -> Task:
        """The same task, with room for a list of its events."""
        if self.events is not None:
            task.most_events, task.events = LISTED, np.zeros((LISTED, 3))
        return task


def form_of(system: System, jumps: Jumps, compiled: bool | None) -> Form:
    """With modes where the run is compiled and something jumps."""
    refuse_interpreted(system, compiled)
    return Form(system, None if compiled is False or is_switched_off() else jumps.events)


def refuse_interpreted(system: System, compiled: bool | None) -> None:
    """Refuse events of a model's own where integrators are interpreted."""
    if system.reactions is not None and (compiled is False or is_switched_off()):
        why = "compiled=False was given" if compiled is False else "GRISAILLE_COMPILER=none switches it off"
        raise SimulationError(
            f"gr.when({system.reactions.texts[0]}) needs the compiled integrators, and {why}: interpreted ones know "
            f"no events. Leave compiled= out, or install a compiler (python -m pip install ziglang)."
        )


def _longer(values: Floats, place: int, count: int, value: float) -> Floats:
    more = np.full((*values.shape[:-1], count), value)
    return np.concatenate([values[..., :place], more, values[..., place:]], axis=-1)


def times_of(task: Task) -> Floats:
    """Instants of the events that are listed."""
    return np.array(task.events[: task.n_events, 0])


def sentences(task: Task, system: System) -> list[str]:
    """A line for every event that is listed."""
    return [f"t = {t:.9g}: {_sentence(system, int(mode), int(what))}" for t, mode, what in task.events[: task.n_events]]


def fired(task: Task, system: System) -> tuple[tuple[float, str], ...]:
    """The clauses of ``when`` that have fired, in order."""
    rows = task.events[: task.n_events]
    return tuple((float(t), event_text(system, int(number))) for t, number, _ in rows if number >= len(system.modes))


def event_text(system: System, number: int) -> str:
    """What is at ``number`` in a list of events: a relation, or behind those a clause of a ``when``."""
    clause = number - len(system.modes)
    if system.reactions is not None and 0 <= clause < len(system.reactions.texts):
        return f"gr.when({system.reactions.texts[clause]})"
    return f"'{system.modes[number].text}'" if 0 <= number < len(system.modes) else "a relation"


def _sentence(system: System, number: int, what: int) -> str:
    does = _what(system.modes[number].kind, what) if number < len(system.modes) else "fires"
    return f"{event_text(system, number)} {does}"


def _what(kind: str, what: int) -> str:
    if what == 0:
        return "slides"
    rises = what > 0
    becomes = {
        "lt": "false" if rises else "true", "le": "false" if rises else "true", "sign": "1" if rises else "-1",
        "floor": "larger" if rises else "smaller", "ceil": "larger" if rises else "smaller",
    }[kind]  # fmt: skip
    return f"becomes {becomes}" if abs(what) == 1 else f"stops sliding and becomes {becomes}"
