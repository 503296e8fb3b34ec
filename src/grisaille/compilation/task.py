"""What an integrator is asked and what it answers, on the Python side.

``Task`` has the fields of ``gr_task`` (kernels/gr_task.h) under the same names. Matrices are stored so that their
memory is what the C side reads::

    dp (ns, np)   sx (ns, nx)   sz (ns, nz)      one contiguous row per sensitivity direction
    y  (n_times, ny)            sy (n_times, ns, ny)
    coef (n_breaks - 1, nu, degree + 1)          u_i(t) = Σ_k coef[seg, i, k] (t - breaks[seg])^k

Tasks are made by a ``Plan`` (plan.py). Integrators get
``task.pack()`` and are read back with ``task.unpack(structure)``. Arrays are shared with C, never copied.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from operator import attrgetter, itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Status(IntEnum):
    """How a run ended; the numbers are those of gr_task.h."""

    DONE = 0
    MORE = 1
    STIFF = 2
    STEP_TOO_SMALL = 3
    TOO_MANY_STEPS = 4
    NOT_FINITE = 5
    NEWTON = 6
    SINGULAR = 7
    PROJECTION = 8
    BRANCH_ENDS = 9
    UNSETTLED = 10
    ACCUMULATES = 11
    GRAZES = 12
    REPEATS = 13
    CONTRADICTS = 14
    NO_INSTANT = 15
    CLASHES = 16
    ORDER = 17


class ModelDimensions(Protocol):
    """An object with the dimensions of a model; every ``Kernel`` is one."""

    @property
    def nx(self) -> int: ...
    @property
    def nz(self) -> int: ...
    @property
    def nu(self) -> int: ...
    @property
    def np(self) -> int: ...
    @property
    def ny(self) -> int: ...


_D, _L = ctypes.c_double, ctypes.c_long
_DP, _BP = ctypes.c_void_p, ctypes.c_void_p

TASK_FIELDS: tuple[tuple[str, Any], ...] = (
    ("t0", _D), ("t1", _D), ("p", _DP), ("x", _DP), ("z", _DP),
    ("ns", _L), ("dp", _DP), ("sx", _DP), ("sz", _DP),
    ("n_breaks", _L), ("breaks", _DP), ("coef", _DP), ("degree", _L), ("kink", _BP),
    ("n_times", _L), ("times", _DP), ("y", _DP), ("sy", _DP), ("written", _L),
    ("rtol", _D), ("atol", _DP), ("nominal", _DP), ("h", _D), ("hmax", _D), ("fixed_step", _D),
    ("max_steps", _L), ("slice", _L), ("work", _DP),
    ("t", _D), ("steps", _L), ("rejected", _L), ("evaluations", _L), ("jacobians", _L), ("factorizations", _L),
    ("newton_iterations", _L), ("status", _L), ("where", _L),
    ("amount", _D), ("error_estimate", _D), ("worst_constraint", _D), ("resumed", _L), ("rescues", _L), ("snaps", _L),
    ("branch", _L), ("branch_at", _D), ("snapped_at", _D),
    ("n_events", _L), ("most_events", _L), ("events", _DP), ("event_at", _D), ("joined_at", _D),
    ("at_once", _L), ("factors", _DP), ("room", _L), ("wanted", _L), ("dt", _DP),
)  # fmt: skip


class TaskStructure(ctypes.Structure):
    """The memory layout of ``gr_task``."""

    _fields_ = TASK_FIELDS


_DOUBLE, _BYTE = np.dtype(np.float64), np.dtype(np.uint8)
_ARRAYS = tuple(name for name, kind in TASK_FIELDS if kind is ctypes.c_void_p)
_NUMBERS = tuple(name for name, kind in TASK_FIELDS if kind is not ctypes.c_void_p)
# one call for all of them: a call with a small model is packed and unpacked in a tenth of its time
_numbers_of, _arrays_of = attrgetter(*_NUMBERS), attrgetter(*_ARRAYS)
_in_order = itemgetter(*((*_NUMBERS, *_ARRAYS).index(name) for name, _ in TASK_FIELDS))


@dataclass(eq=False)
class Task:
    """One run of an integrator, from ``t0`` to ``t1``; see gr_task.h for the meaning of each field."""

    t0: float
    t1: float
    p: Floats
    x: Floats
    z: Floats
    ns: int
    dp: Floats
    sx: Floats
    sz: Floats
    n_breaks: int
    breaks: Floats
    coef: Floats
    degree: int
    kink: NDArray[np.uint8]
    n_times: int
    times: Floats
    y: Floats
    sy: Floats
    rtol: float
    atol: Floats
    nominal: Floats
    written: int = 0
    h: float = 0.0
    hmax: float = 0.0
    fixed_step: float = 0.0
    max_steps: int = 10_000_000
    slice: int = 0
    work: Floats = field(default_factory=lambda: np.zeros(0))
    t: float = 0.0
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    jacobians: int = 0
    factorizations: int = 0
    newton_iterations: int = 0
    status: int = Status.DONE
    where: int = -1
    amount: float = 0.0
    error_estimate: float = 0.0
    worst_constraint: float = 0.0
    resumed: int = 0
    rescues: int = 0
    snaps: int = 0
    branch: int = 0
    branch_at: float = 0.0
    snapped_at: float = 0.0
    n_events: int = 0
    most_events: int = 0
    events: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    event_at: float = 0.0
    joined_at: float = 0.0
    at_once: int = 0
    factors: Floats = field(default_factory=lambda: np.zeros(0))
    room: int = 1
    wanted: int = 0
    dt: Floats = field(default_factory=lambda: np.zeros(0))
    plan: Any = None
    """The ``Plan`` that it was made from; C never sees it."""
    tried: int = 0
    """Steps since the scheme began, rejected ones included, wherever a slice was used up (``Status.MORE``); C never
    sees it."""
    differs: tuple[int, float] | None = None
    """Of equal steps: the observed quantity that differs most from a run under error control, and by which share of
    what it covers, where that is much; C never sees it."""

    def copy(self) -> Task:
        """Return the run as it stands: what integrators change is copied, but for rows already asked for and
        factors.
        """
        changed = {name: getattr(self, name).copy() for name in ("p", "dp", "x", "z", "sx", "sz", "dt", "events")}
        return replace(self, work=self.work.copy() if self.resumed else np.zeros_like(self.work), **changed)

    def take_over(self, other: Task) -> None:
        """Take over all fields of ``other``."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))

    def pack(self) -> TaskStructure:
        """Return the C structure; it borrows the arrays, so the task must outlive it."""
        addresses = map(_address, _ARRAYS, _arrays_of(self))
        return TaskStructure(*_in_order((*_numbers_of(self), *addresses)))

    def unpack(self, packed: TaskStructure) -> None:
        """Take back what the C side changed (the arrays were shared all along)."""
        self.__dict__.update(zip(_NUMBERS, _numbers_of(packed), strict=True))


def _address(name: str, array: np.ndarray) -> int:
    kind = _BYTE if name == "kink" else _DOUBLE
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError(f"task.{name} must be a C-contiguous {kind} array, not {array.dtype}.")
    # array.ctypes.data is the same number, five times slower
    return int(array.__array_interface__["data"][0])
