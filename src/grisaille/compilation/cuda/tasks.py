"""Tasks of the integrators on a graphics processor: one thread takes one task to its end, slice by slice.

All tasks are of one model and have the same sizes. Arrays that are equal in all of them are put there once; what the
integrators change comes back into the tasks.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from grisaille import interrupts
from grisaille.cache import Cache
from grisaille.compilation.cuda.cuda_source import TASK_KERNEL_SOURCE, one_text
from grisaille.compilation.cuda.launch import USABLE_MEMORY_SHARE, Graphics, OutOfDeviceMemory
from grisaille.compilation.derivatives import differentiate
from grisaille.compilation.kernel import Kernel
from grisaille.compilation.kernel_source import c_source
from grisaille.compilation.schemes import EXPLICIT, Scheme
from grisaille.compilation.schemes.tableau_source import tableau_source
from grisaille.compilation.task import TASK_FIELDS, Status, Task, TaskStructure
from grisaille.errors import SimulationError
from grisaille.structure.system import System

STEPS_PER_LAUNCH = 2000
"""Steps of one launch: an interrupt takes effect when it is done."""
THREADS_PER_BLOCK = 32
ARRAYS_WRITTEN = ("p", "x", "z", "dp", "sx", "sz", "y", "sy")
"""Arrays that integrators write."""
_ARRAYS = tuple(name for name, kind in TASK_FIELDS if kind is ctypes.c_void_p)
_INLINE = "#ifdef __CUDACC__\n#define GR_FN static __device__ __noinline__\n#endif\n"
"""Integrators are many functions that call one another: put into their callers, they take minutes to compile."""


class TaskMachine(Protocol):
    """Where tasks run."""

    name: str

    def put(self, array: np.ndarray) -> Any: ...
    def fetch(self, array: Any) -> np.ndarray: ...
    def address(self, array: Any) -> int: ...
    def run(self, tasks: Any, count: int, is_implicit: bool) -> None: ...
    def free(self) -> int | None:
        """Return bytes of memory that are left, where they are few."""


class GraphicsTasks(Graphics):
    """The device with the integrators of one model."""

    has_given = False

    def run(self, tasks: Any, count: int, is_implicit: bool) -> None:
        with self.queue:
            self.kernel("gr_cuda_tasks")(
                (-(-count // THREADS_PER_BLOCK),), (THREADS_PER_BLOCK,), (tasks, np.int64(count), np.int64(is_implicit))
            )  # fmt: skip
        self.queue.synchronize()


_machines: Cache[TaskMachine] = Cache(16)


def task_source(system: System, sensitive: bool) -> str:
    """Return the text of the integrators of one model."""
    functions = differentiate(system, sensitive=sensitive, sparse=False)
    return _INLINE + one_text(
        c_source(system, sensitive, functions) + tableau_source(EXPLICIT.tableaux), TASK_KERNEL_SOURCE
    )


def machine_for_tasks(system: System, sensitive: bool) -> TaskMachine:
    """Return the device with the integrators of a model; compiled when they are first asked for."""
    source = task_source(system, sensitive)
    return _machines.get(source, lambda: GraphicsTasks(source))


def bytes_of(kernel: Kernel, task: Task, scheme: Scheme) -> int:
    """Return the most device memory that a task takes, in bytes."""
    arrays = sum(int(getattr(task, n).nbytes) for n in _ARRAYS if n != "work")
    return arrays + 8 * kernel.work_size(scheme.taking(task.fixed_step), task.ns) + ctypes.sizeof(TaskStructure)


def _least_bytes(task: Task, size: int) -> int:
    """Return the least device memory that a task takes, in bytes: what it writes, and its work space."""
    return sum(int(getattr(task, n).nbytes) for n in ARRAYS_WRITTEN) + 8 * size + ctypes.sizeof(TaskStructure)


def run_tasks(machine: TaskMachine, kernel: Kernel, tasks: Sequence[Task], scheme: Scheme) -> None:
    """Run every task to its end or failure; the tasks hold the results."""
    if not tasks:
        return
    size = kernel.work_size(scheme.taking(tasks[0].fixed_step), tasks[0].ns)
    free = machine.free()
    if free is None or len(tasks) * _least_bytes(tasks[0], size) <= free:
        try:
            _run(machine, tasks, scheme, size)
            return
        except OutOfDeviceMemory:
            pass  # what was held is free again when this is left
    free, each = machine.free() or 0, bytes_of(kernel, tasks[0], scheme)
    raise SimulationError(
        f"{len(tasks)} realizations at a time do not fit into the {free / 2**30:.3g} GiB that are free on "
        f"{machine.name}: each takes {each / 2**20:.3g} MiB, and {int(USABLE_MEMORY_SHARE * free / each)} would "
        "fit. Nothing has "
        f"been changed: give fewer realizations or output times, or device='cpu'."
    )


def _run(machine: TaskMachine, tasks: Sequence[Task], scheme: Scheme, size: int) -> None:
    count = len(tasks)
    held = {name: _put(machine, name, tasks) for name in _ARRAYS if name != "work"}
    work = machine.put(np.zeros((count, max(size, 1))))
    packed = (TaskStructure * count)()
    for i, task in enumerate(tasks):
        task.slice = STEPS_PER_LAUNCH
        packed[i] = task.pack()
        for name, (array, each) in held.items():
            setattr(packed[i], name, machine.address(array) + i * each)
        packed[i].work = machine.address(work) + 8 * i * max(size, 1)
    structures = np.frombuffer(memoryview(packed).cast("B"), dtype=np.uint8)
    there = machine.put(structures)
    while True:
        machine.run(there, count, scheme.is_implicit)
        interrupts.check()
        structures[...] = machine.fetch(there)
        if all(packed[i].status != Status.MORE for i in range(count)):
            break
    answers = {name: machine.fetch(held[name][0]) for name in ARRAYS_WRITTEN}
    for i, task in enumerate(tasks):
        task.unpack(packed[i])
        for name, found in answers.items():
            mine = getattr(task, name)
            mine[...] = found[i].ravel()[: mine.size].reshape(mine.shape)


def _put(machine: TaskMachine, name: str, tasks: Sequence[Task]) -> tuple[np.ndarray, int]:
    """Return an array of all tasks, and bytes from one to the next."""
    arrays = [getattr(t, name) for t in tasks]
    first = arrays[0]
    if name not in ARRAYS_WRITTEN and all(a is first or np.array_equal(a, first) for a in arrays[1:]):
        return machine.put(first if first.size else np.zeros(1, first.dtype)), 0
    return machine.put(np.stack(arrays) if first.size else np.zeros((len(arrays), 1), first.dtype)), first.nbytes
