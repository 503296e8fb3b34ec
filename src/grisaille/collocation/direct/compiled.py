"""Elimination along time by compiled C, which depends on no model and is built once per machine.

Where models are interpreted ``is_there`` is false, and ``elimination`` does the same by NumPy, some eight
times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.direct.element import Derivatives, Sizes
from grisaille.collocation.direct.mesh import Floats
from grisaille.collocation.native import native

ARRAYS = {"gr_condense": 10, "gr_sweep": 7, "gr_substitute": 6, "gr_scatter": 7}
"""Functions and how many arrays each takes."""


def is_there() -> bool:
    """Whether there is a library, or a compiler to build it."""
    return native("direct_elimination.c", "gr_sweep", ARRAYS["gr_sweep"]) is not None


def condensed(d: Derivatives, sizes: Sizes, n: int, nz: int, damping: Floats | None) -> tuple[Floats, Floats, Floats]:
    """M, S and onto of every element; raises ``LinAlgError`` where the equations of one are singular."""
    E, N, w = len(d.c), sizes.total, 1 + sizes.slots + sizes.past + sizes.noise
    M, S, onto = np.empty((E, N, w)), np.empty((E, w, w)), np.empty((E, 1 + sizes.slots + n, w))
    given = [np.ascontiguousarray(x) for x in (d.jacobian.swapaxes(1, 2), d.hessian, d.gradient, d.c)]
    given.append(np.zeros((E, sizes.noise)) if damping is None else np.ascontiguousarray(damping))
    work = np.empty(sizes.inner**2 + N * w)
    if _call("gr_condense", _size(E, sizes, n, nz), *given, M, S, onto, work):
        raise np.linalg.LinAlgError("Singular matrix")
    return M, S, onto


def swept(S: Floats, onto: Floats, sizes: Sizes) -> tuple[Floats, Floats, Floats]:
    """P, K and the Cholesky factors of M for the elements of a record; raises ``LinAlgError`` where one has none."""
    E, q, w = onto.shape
    P, K, root = np.zeros((E + 1, q, q)), np.empty((E, w - q, q)), np.empty((E, w - q, w - q))
    if _call("gr_sweep", _size(E, sizes, sizes.past, 0), S, onto, P, K, root, np.empty((q + w) * w)):
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return P, K, root


def substituted(onto: Floats, K: Floats, X: Floats, head: Floats, sizes: Sizes) -> Floats:
    """s of every element, (E, w, D), for (1, dθ) = head, (1 + slots, D), from X, (n, D), at the first one's start."""
    path = np.empty((len(onto), onto.shape[2], head.shape[1]))
    path[:, : len(head)] = head
    columns = np.array([head.shape[1]], dtype=np.int64)
    _call("gr_substitute", _size(len(onto), sizes, sizes.past, 0), columns, onto, K, np.array(X, order="C"), path)
    return path


def scattered(onto: Floats, K: Floats, root: Floats, X: Floats, sizes: Sizes) -> tuple[Floats, Floats]:
    """Covariances of X at every end, (E + 1, n, n), from that at the first one's start, and of (X_prev, v)."""
    n, noise = sizes.past, sizes.noise
    ends, joint = np.empty((len(onto) + 1, n, n)), np.empty((len(onto), n + noise, n + noise))
    ends[0] = X
    work = np.empty(2 * noise**2 + n * (n + noise))
    _call("gr_scatter", _size(len(onto), sizes, n, 0), onto, K, root, ends, joint, work)
    return ends, joint


def _size(E: int, sizes: Sizes, n: int, nz: int) -> NDArray[np.int64]:
    return np.array([E, sizes.past, sizes.inner, sizes.noise, sizes.slots, n, nz], dtype=np.int64)


def _call(name: str, *arrays: NDArray[Any]) -> int:
    run = native("direct_elimination.c", name, ARRAYS[name])
    assert run is not None
    return run(*arrays)
