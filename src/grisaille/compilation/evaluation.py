"""CasADi functions called with plain NumPy arrays.

Going through ``DM`` costs about 45 µs per call; here arguments are copied into memory that CasADi's virtual machine
reads directly, 1 to 2 µs. Each thread has its own memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Floats = NDArray[np.float64]
Evaluation = Callable[..., Floats]
FlatEvaluation = Callable[..., list[Floats]]


def numpy_vector(function: ca.Function) -> Evaluation:
    """``function`` (one dense column) as arrays in, 1-D array out.

    Not checked: lengths of the arguments, beyond what NumPy's assignment checks.
    """
    n = function.numel_out(0)
    if n == 0:
        return lambda *_: np.zeros(0)
    flat = flat_function(function)
    return lambda *arguments: flat(*arguments)[0]


def numpy_matrix(function: ca.Function) -> Evaluation:
    """``function`` (one matrix) as arrays in, 2-D array out, in column-major order."""
    rows, columns = function.size_out(0)
    if rows * columns == 0 or function.nnz_out(0) == 0:
        return lambda *_: np.zeros((rows, columns))
    flat = flat_function(function)
    if not function.sparsity_out(0).is_dense():
        at = tuple(np.array(i) for i in function.sparsity_out(0).get_triplet())
        return lambda *arguments: _spread(rows, columns, at, flat(*arguments)[0])
    return lambda *arguments: flat(*arguments)[0].reshape(columns, rows).T


def sparse_matrix(function: ca.Function) -> Callable[..., csc_array]:
    """``function`` (one matrix) as arrays in, the entries that may differ from zero out."""
    sparsity = function.sparsity_out(0)
    place = np.array(sparsity.row(), dtype=np.int32), np.array(sparsity.colind(), dtype=np.int32)
    shape = function.size_out(0)
    flat = flat_function(function)

    def evaluate(*arguments: Any) -> csc_array:
        from scipy.sparse import csc_array

        return csc_array((flat(*arguments)[0], *place), shape=shape)

    return evaluate


def _spread(rows: int, columns: int, at: tuple[NDArray[np.int64], ...], values: Floats) -> Floats:
    matrix = np.zeros((columns, rows)).T
    matrix[at] = values
    return matrix


def flat_function(function: ca.Function) -> FlatEvaluation:
    """All outputs, each flattened column by column; arguments in any shape with memory in that order, or numbers."""
    memory = threading.local()

    def evaluate(*arguments: Any) -> list[Floats]:
        try:
            targets, run, results = memory.ready
        except AttributeError:
            targets, run, results = memory.ready = _prepare(function)
        for i, target in targets:
            given = arguments[i]
            target[:] = given.ravel() if isinstance(given, np.ndarray) else given
        run()
        return [result.copy() for result in results]

    return evaluate


def _prepare(function: ca.Function) -> tuple[list[tuple[int, Floats]], Callable[[], None], list[Floats]]:
    buffer: Any
    buffer, run = function.buffer()
    targets = [(i, np.zeros(function.nnz_in(i))) for i in range(function.n_in()) if function.nnz_in(i)]
    results = [np.zeros(function.nnz_out(o)) for o in range(function.n_out())]
    for i, target in targets:
        buffer.set_arg(i, target.data)
    for o, result in enumerate(results):
        if result.size:
            buffer.set_res(o, result.data)
    return targets, _Run(function, buffer, run), results


class _Run:
    """Keeps the function and its buffer alive as long as the call is."""

    def __init__(self, function: ca.Function, buffer: Any, run: Callable[[], None]) -> None:
        self._alive = (function, buffer)
        self._run = run

    def __call__(self) -> None:
        self._run()
