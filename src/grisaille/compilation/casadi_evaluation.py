"""CasADi functions of one output called with plain NumPy arrays (``numerics.flat_functions``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.numerics.flat_functions import FlatEvaluation, Floats, flat_function

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csc_array

__all__ = [
    "Evaluation", "FlatEvaluation", "flat_function", "flat_over_points", "numpy_matrix", "numpy_vector",
    "sparse_matrix",
]  # fmt: skip

Evaluation = Callable[..., Floats]


def numpy_vector(function: ca.Function) -> Evaluation:
    """Return ``function`` (one dense column) as a callable: arrays in, 1-D array out.

    Not checked: lengths of the arguments, beyond what NumPy's assignment checks.
    """
    n = function.numel_out(0)
    if n == 0:
        return lambda *_: np.zeros(0)
    flat = flat_function(function)
    return lambda *arguments: flat(*arguments)[0]


def numpy_matrix(function: ca.Function) -> Evaluation:
    """Return ``function`` (one matrix) as a callable: arrays in, 2-D array out, in column-major order."""
    rows, columns = function.size_out(0)
    if rows * columns == 0 or function.nnz_out(0) == 0:
        return lambda *_: np.zeros((rows, columns))
    flat = flat_function(function)
    if not function.sparsity_out(0).is_dense():
        at = tuple(np.array(i) for i in function.sparsity_out(0).get_triplet())
        return lambda *arguments: _spread(rows, columns, at, flat(*arguments)[0])
    return lambda *arguments: flat(*arguments)[0].reshape(columns, rows).T


def sparse_matrix(function: ca.Function) -> Callable[..., csc_array]:
    """Return ``function`` (one matrix) as a callable: arrays in, the entries that may differ from zero out."""
    sparsity = function.sparsity_out(0)
    place = np.array(sparsity.row(), dtype=np.int32), np.array(sparsity.colind(), dtype=np.int32)
    shape = function.size_out(0)
    flat = flat_function(function)

    def evaluate(*arguments: ArrayLike) -> csc_array:
        from scipy.sparse import csc_array

        return csc_array((flat(*arguments)[0], *place), shape=shape)

    return evaluate


def flat_over_points(function: ca.Function, count: int, shared: Sequence[int]) -> FlatEvaluation:
    """Return ``function`` evaluated at many points in one call; arguments have a row for each point, shared ones have
    one row.

    Outputs of all points follow one another.
    """
    if count == 1:  # a map over one point loses outputs that are zero everywhere
        return flat_function(function)
    return flat_function(function.map(function.name(), "serial", count, list(shared), []))


def _spread(rows: int, columns: int, at: tuple[NDArray[np.int64], ...], values: Floats) -> Floats:
    matrix = np.zeros((columns, rows)).T
    matrix[at] = values
    return matrix
