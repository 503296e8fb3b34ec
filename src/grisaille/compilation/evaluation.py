"""CasADi functions called with plain NumPy arrays.

Going through ``DM`` costs about 45 µs per call; here arguments are copied into memory that CasADi's virtual machine
reads directly, about 1 µs. Each thread has its own memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Evaluation = Callable[..., NDArray[np.float64]]
_Memory = tuple[list[tuple[int, NDArray[np.float64]]], Callable[[], None], NDArray[np.float64]]


def numpy_function(function: ca.Function) -> Evaluation:
    """``function`` (one dense output) as arrays in, array out: 1-D for a column (declared so), 2-D for a matrix.

    Matrices come back in column-major order. Not checked: the lengths of the arguments beyond what NumPy's assignment
    checks.
    """
    return _evaluation(function, matrix=function.size2_out(0) != 1)


def numpy_matrix(function: ca.Function) -> Evaluation:
    """As ``numpy_function``, but 2-D even for one column."""
    return _evaluation(function, matrix=True)


def _evaluation(function: ca.Function, matrix: bool) -> Evaluation:
    rows, columns = function.size_out(0)
    shape = (rows, columns) if matrix else (rows,)
    if rows * columns == 0:
        return lambda *_: np.zeros(shape)
    memory = threading.local()

    def evaluate(*arguments: Any) -> NDArray[np.float64]:
        try:
            targets, run, result = memory.ready
        except AttributeError:
            targets, run, result = memory.ready = _prepare(function)
        for i, target in targets:
            target[:] = arguments[i]
        run()
        answer: NDArray[np.float64] = result.copy()
        return answer.reshape(columns, rows).T if matrix else answer

    return evaluate


def _prepare(function: ca.Function) -> _Memory:
    buffer: Any
    buffer, run = function.buffer()
    targets = []
    for i in range(function.n_in()):
        if function.nnz_in(i):
            target = np.zeros(function.nnz_in(i))
            buffer.set_arg(i, target.data)
            targets.append((i, target))
    result = np.zeros(function.nnz_out(0))
    buffer.set_res(0, result.data)
    return targets, _Run(function, buffer, run), result


class _Run:
    """Keeps the function and its buffer alive as long as the call is."""

    def __init__(self, function: ca.Function, buffer: Any, run: Callable[[], None]) -> None:
        self._alive = (function, buffer)
        self._run = run

    def __call__(self) -> None:
        self._run()
