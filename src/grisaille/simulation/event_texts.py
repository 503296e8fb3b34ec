"""The events that a run has listed, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.task import Task
from grisaille.structure.system import System

Floats = NDArray[np.float64]
MAX_LISTED_EVENTS = 5_000
"""Events that are listed; those beyond are counted."""


def times_of(task: Task) -> Floats:
    """Return instants of the events that are listed."""
    return np.array(task.events[: task.n_events, 0])


def event_sentences(task: Task, system: System) -> list[str]:
    """Return a line for every event that is listed."""
    return [f"t = {t:.9g}: {_sentence(system, int(mode), int(what))}" for t, mode, what in task.events[: task.n_events]]


def clauses_fired(task: Task, system: System) -> tuple[tuple[float, str], ...]:
    """Return the clauses of ``when`` that have fired, in order."""
    rows = task.events[: task.n_events]
    return tuple((float(t), event_text(system, int(number))) for t, number, _ in rows if number >= len(system.modes))


def event_text(system: System, number: int) -> str:
    """Return what is at ``number`` in a list of events: a relation, or behind those a clause of a ``when``."""
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
