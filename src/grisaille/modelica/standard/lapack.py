"""Functions of LAPACK that ``Modelica.Math.Matrices`` calls, on numbers that are known before a run.

Each takes the arguments of the Fortran routine and gives those that the routine writes, by position. The routines are
LAPACK's own, called by SciPy, so that the order of eigenvalues and the signs of vectors are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import lapack

from grisaille.modelica.values import Value

Written = Mapping[int, Any]
Numbers = Callable[[int], np.ndarray[Any, Any]]
"""The argument at a position as an array of numbers."""


def dgesv(values: Sequence[np.ndarray], numbers: Numbers) -> Written:
    """Return A X = B."""
    lu, pivots, x, info = lapack.dgesv(numbers(2), numbers(5))
    return {2: lu, 4: pivots + 1, 5: x.reshape(np.shape(values[5])), 7: info}


def dgetrf(values: Sequence[Value], numbers: Numbers) -> Written:
    """Return P A = L U."""
    lu, pivots, info = lapack.dgetrf(numbers(2))
    return {2: lu, 4: pivots + 1, 5: info}


def dgetri(values: Sequence[Value], numbers: Numbers) -> Written:
    """Return the inverse from L U."""
    inverse, info = lapack.dgetri(numbers(1), numbers(3).astype(int) - 1)
    return {1: inverse, 6: info}


def dgetrs(values: Sequence[np.ndarray], numbers: Numbers) -> Written:
    """Return A X = B from L U."""
    x, info = lapack.dgetrs(numbers(3), numbers(5).astype(int) - 1, numbers(6), trans=int(values[0] != "N"))
    return {6: x.reshape(np.shape(values[6])), 8: info}


def dgeev(values: Sequence[Value], numbers: Numbers) -> Written:
    """Return eigenvalues, and eigenvectors where they are asked for."""
    left, right = values[0] == "V", values[1] == "V"
    real, imaginary, of_left, of_right, info = lapack.dgeev(numbers(3), compute_vl=left, compute_vr=right)
    vectors = {7: of_left} if left else {}
    return {5: real, 6: imaginary, **vectors, **({9: of_right} if right else {}), 13: info}


def dpotrf(values: Sequence[Value], numbers: Numbers) -> Written:
    """Return A = L Lᵀ or Uᵀ U; the other triangle stays as it is."""
    factor, info = lapack.dpotrf(numbers(2), lower=int(values[0] == "L"), clean=0)
    return {2: factor, 4: info}


FUNCTIONS: dict[str, Callable[[Sequence[Any], Numbers], Written]] = {
    "dgesv": dgesv, "dgetrf": dgetrf, "dgetri": dgetri, "dgetrs": dgetrs, "dgeev": dgeev, "dpotrf": dpotrf,
}  # fmt: skip
