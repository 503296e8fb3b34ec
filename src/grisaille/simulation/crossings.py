"""Whether a trajectory crosses a switch of its states at which the equations jump, and when first.

Compiled runs list their events. Where relations are not held between events, the run is repeated without derivatives in
short stretches, and the gap of every relation is looked at where they join: a switch that is crossed there and back
within one stretch can be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Status, Task
from grisaille.errors import ModelError
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.simulation.event_texts import MAX_LISTED_EVENTS
from grisaille.simulation.integration import run
from grisaille.structure.reduction import Structure
from grisaille.structure.system import System

MIN_STRETCHES = 400
"""At least this many over a run, and two for every requested time."""


@dataclass(frozen=True)
class Crossing:
    """The first time at which a relation switches."""

    relation: str
    t: float

    def __str__(self) -> str:
        return f"'{self.relation}' at t = {self.t:.6g}"


def find_crossings(structure: Structure, plan: Plan[Kernel]) -> list[Crossing]:
    """Return the switches that a run crosses."""
    jumps = structure.jumps.of_states
    if not (jumps or structure.model.whens) or plan.t1 <= plan.t0:
        return []
    if plan.kernel.ne and structure.jumps.events is not None:
        return _listed(structure.jumps.events.system, plan)
    task, plan = plan.task(), plan.without_derivatives().replace(hmax=0.0, max_steps=100_000, past=None)
    joints = _joints(task)
    table = SignalTable(task.breaks, task.coef, task.kink)
    x, z, found = task.x.copy(), task.z.copy(), dict[str, Crossing]()
    before = _gaps(structure, joints[0], x, z, table, task.p)
    for left, right in pairwise(joints):
        stretch = plan.replace(t0=float(left), t1=float(right), x=x, z=z, times=np.array([right]))
        part = run(stretch).task
        if part.status != Status.DONE:
            break
        x, z = part.x.copy(), part.z.copy()
        after = _gaps(structure, float(right), x, z, table, task.p)
        for k, jump in enumerate(jumps):
            if jump.text not in found and _has_switched(before[k], after[k], jump.is_integer):
                found[jump.text] = Crossing(jump.text, float(left + right) / 2)
        # a gap of zero takes the side it comes from, so that a start on the switch is no crossing
        before = np.where(after == 0, before, after)
        if len(found) == len(jumps):
            break
    return sorted(found.values(), key=lambda c: c.t)


def _listed(system: System, plan: Plan[Kernel]) -> list[Crossing]:
    """Return the first event of every relation."""
    task = run(plan.without_derivatives().replace(times=np.zeros(0), most_events=MAX_LISTED_EVENTS)).task
    first = {int(mode): t for t, mode, _ in reversed(task.events[: task.n_events])}
    found = [
        Crossing(system.modes[mode].text, float(t))
        for mode, t in first.items()
        if t > plan.t0 and mode < len(system.modes)
    ]
    return sorted(found, key=lambda c: c.t)


def refuse_crossings(crossings: Sequence[Crossing], names: Sequence[str]) -> None:
    """Refuse derivatives of a run that crosses a switch."""
    if crossings:
        raise ModelError(
            f"The derivative by '{names[0]}' would be wrong: the trajectory crosses {crossings[0]}, where the "
            f"equations jump, and the instant depends on it. Replace the relation by a smooth formula "
            f"(gr.smooth_sign, or a ramp with gr.minimum and gr.maximum), or take differences of simulations."
        )


def _joints(task: Task) -> np.ndarray:
    times = np.unique(np.concatenate([[task.t0], task.times[(task.times > task.t0) & (task.times <= task.t1)]]))
    parts = max(2, int(np.ceil(MIN_STRETCHES / max(times.size - 1, 1))))
    if times.size < 2:
        times = np.array([task.t0, task.t1])
    return np.unique(np.concatenate([np.linspace(a, b, parts + 1) for a, b in pairwise(times)]))


def _gaps(
    structure: Structure, t: float, x: np.ndarray, z: np.ndarray, table: SignalTable, p: np.ndarray
) -> np.ndarray:
    u = table.at(float(t)) if structure.system.nu else np.zeros(0)
    return np.array(structure.jumps.gaps(t, x, z, u, p).full()).ravel()


def _has_switched(before: float, after: float, is_integer: bool) -> bool:
    if is_integer:
        return bool(np.floor(before) != np.floor(after))
    return bool(before * after < 0)
