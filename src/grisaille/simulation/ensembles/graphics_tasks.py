"""Ensembles of models that stay implicit or are stiff on a graphics processor: a thread takes one realization through
the frozen integrators.

Disturbances are sampled on the processor and handed over as polynomials, as in ``task_engine``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.cuda.tasks import bytes_of, machine_for_tasks, run_tasks
from grisaille.compilation.kernel import build_kernel
from grisaille.compilation.task import Task
from grisaille.simulation.ensembles.engines import EnsembleSetup
from grisaille.simulation.ensembles.reducers import REALIZATIONS_PER_BLOCK
from grisaille.simulation.ensembles.task_engine import EngineSolver, Made, TaskEngine, blocks_of

MAX_TASK_BYTES = 1 << 30
"""Bytes of tasks that are run together."""


@dataclass(frozen=True, eq=False)
class _Taken:
    """Tasks that have been run, by their place in a block."""

    members: NDArray[np.int64]
    tasks: Mapping[int, Task]

    def __call__(self, i: int) -> Task | None:
        return self.tasks.get(int(self.members[i]))


class GraphicsTaskEngine(TaskEngine):
    """``solver`` is what was chosen on the processor."""

    def __init__(self, setting: EnsembleSetup, solver: EngineSolver, device: str) -> None:
        super().__init__(setting, solver)
        self.device = device
        # the device's text is dense, and so is the room of its tasks
        self.kernel = build_kernel(self.form.system, sensitive=bool(len(setting.dp)), sparse=False)
        self.machine = machine_for_tasks(self.form.system, bool(len(setting.dp)))
        free = self.machine.free()
        self.held = MAX_TASK_BYTES if free is None else min(MAX_TASK_BYTES, free // 2)

    @property
    def name(self) -> str:
        return f"{self.solver.scheme} on {self.device}"

    def _blocks(self, slab: slice, skip: set[int]) -> Iterator[tuple[NDArray[np.int64], Made]]:
        waiting: list[NDArray[np.int64]] = []
        tasks: dict[int, Task] = {}
        for members in blocks_of(self.setting.count):
            signals = self._signals(members)
            waiting.append(members)
            for i, m in enumerate(members.tolist()):
                if m not in skip:
                    tasks[m] = self._plan(signals, i, m, slab.stop).task()
            if members[-1] + 1 < self.setting.count and len(tasks) + REALIZATIONS_PER_BLOCK <= self._most(tasks):
                continue
            run_tasks(self.machine, self.kernel, list(tasks.values()), self.solver.scheme)
            yield from ((block, _Taken(block, tasks)) for block in waiting)
            waiting, tasks = [], {}

    def _most(self, tasks: dict[int, Task]) -> int:
        """Return how many are run together."""
        one = next(iter(tasks.values()), None)
        return self.held if one is None else self.held // bytes_of(self.kernel, one, self.solver.scheme)
