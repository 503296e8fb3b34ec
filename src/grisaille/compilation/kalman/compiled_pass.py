"""The pass of ``passing`` run by compiled code, forward or in reverse."""

from __future__ import annotations

import ctypes

import numpy as np

from grisaille.compilation.kalman.builds import FilterLibrary
from grisaille.compilation.kalman.passing import FilterPass, Floats, PassResult

_NUMBERS = {"n_cells", "directions", "condition", "doublings", "terms", "count", "failed"}
_NAMES = (
    "n_cells directions condition robust bounds stages steps signals sample given y mask scale q nominal dq s ds base "
    "information innovations variances slopes kept along tape lq doublings terms room work count failed"
).split()
_LONG = np.dtype(ctypes.c_long)
REVERSE = 3
"""Directions that take as long as a gradient in reverse, about."""


class FilterTask(ctypes.Structure):
    """``gr_filter_task``."""

    _fields_ = tuple(
        (n, ctypes.c_long if n in _NUMBERS else ctypes.c_double if n == "robust" else ctypes.c_void_p) for n in _NAMES
    )


class PreparedPass:
    """A pass with its arrays as C reads them; made once per record, q comes with every call."""

    def __init__(self, given: FilterPass) -> None:
        self.given = given
        names = ("bounds", "stages", "signals", "y", "mask", "scale", "nominal")
        self._arrays = {n: np.ascontiguousarray(getattr(given, n), dtype=float) for n in names}
        self._arrays["sample"] = np.ascontiguousarray(given.sample, dtype=_LONG)
        self._arrays["steps"] = np.ascontiguousarray(given.steps, dtype=_LONG)
        if given.given is not None:
            self._arrays["given"] = np.ascontiguousarray(given.given, dtype=float)
        self._addresses = {n: a.ctypes.data for n, a in self._arrays.items()}

    def __deepcopy__(self, memo: dict[int, object]) -> PreparedPass:
        return PreparedPass(self.given)

    def task(self, q: Floats, **more: object) -> FilterTask:
        g = self.given
        return FilterTask(
            n_cells=len(g.bounds) - 1, condition=int(g.condition), robust=g.robust,
            doublings=g.doublings, terms=g.terms, q=q.ctypes.data, **self._addresses, **more,
        )  # fmt: skip


def run_forward(
    library: FilterLibrary, given: PreparedPass, q: Floats, s: Floats, ds: Floats, dq: Floats, keep: bool
) -> PassResult:
    """Return the pass from s along directions ds, (ns, size), and dq, (ns, nq)."""
    result = PassResult.empty(given.given, s, ds, keep)
    ns, lanes = len(ds), _lanes(library)
    blocks = -(-ns // lanes)
    moved, seeds = _in_blocks(ds, blocks, lanes), _in_blocks(dq, blocks, lanes)
    work = np.zeros(int(library.function("gr_filter_work", ctypes.c_long)(ns)))
    room = _room(library, given)
    task = given.task(
        np.ascontiguousarray(q), directions=ns, dq=seeds.ctypes.data, ds=moved.ctypes.data, work=work.ctypes.data,
        room=room.ctypes.data, **_answers(result),
    )  # fmt: skip
    library.function("gr_filter", ctypes.POINTER(FilterTask))(ctypes.byref(task))
    library.count(int(given.given.steps.sum()), ns)
    result.count, result.failed = int(task.count), int(task.failed)
    if ns:
        result.ds = np.ascontiguousarray(moved.transpose(0, 2, 1).reshape(blocks * lanes, len(s))[:ns])
    return result


def run_reverse(library: FilterLibrary, given: PreparedPass, q: Floats, s: Floats) -> PassResult:
    """Return values, and the gradient of ``base[0]`` by the start (``ds``) and by q (``lq``)."""
    result = PassResult.empty(given.given, s, np.zeros((0, len(s))), False)
    result.ds, result.lq = np.zeros(len(s)), np.zeros(len(q))
    g = given.given
    size = library.function("gr_filter_tape", ctypes.c_long, ctypes.c_long)(len(g.bounds) - 1, int(g.steps.sum()))
    tape, room = np.empty(int(size)), _room(library, given)
    task = given.task(
        np.ascontiguousarray(q), ds=result.ds.ctypes.data, lq=result.lq.ctypes.data, tape=tape.ctypes.data,
        room=room.ctypes.data, **_answers(result),
    )  # fmt: skip
    library.function("gr_filter_gradient", ctypes.POINTER(FilterTask))(ctypes.byref(task))
    library.count(int(g.steps.sum()), REVERSE)
    result.count, result.failed = int(task.count), int(task.failed)
    return result


def _answers(result: PassResult) -> dict[str, int | None]:
    names = ("s", "base", "information", "innovations", "variances", "slopes", "kept", "along")
    return {n: None if (a := getattr(result, n)) is None else a.ctypes.data for n in names}


def _in_blocks(directions: Floats, blocks: int, lanes: int) -> Floats:
    """Return (ns, size) as (blocks, size, lanes)."""
    padded = np.zeros((blocks * lanes, directions.shape[1]))
    padded[: len(directions)] = directions
    return np.ascontiguousarray(padded.reshape(blocks, lanes, directions.shape[1]).transpose(0, 2, 1))


def _room(library: FilterLibrary, given: PreparedPass) -> Floats:
    return np.empty(int(library.function("gr_filter_room", ctypes.c_long)(given.given.doublings)))


def _lanes(library: FilterLibrary) -> int:
    return int(library.function("gr_filter_lanes")())
