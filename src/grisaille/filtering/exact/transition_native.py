"""Transitions by compiled C, which does not depend on any model; by NumPy (``transition``) where that is not wished."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from grisaille.compilation.library import build_library
from grisaille.disturbance.discretization import DEGREE, balanced_norm, doublings
from grisaille.disturbance.duals import Floats
from grisaille.filtering.exact import transition, varying
from grisaille.filtering.native import build_key


def state_transition(A: Floats, h: float, degree: int, compiled: bool | None = None) -> tuple[Floats, Floats]:
    """As ``transition.state_transition``."""
    entry = _functions(compiled)
    if entry is None:
        return transition.state_transition(A, h, degree)
    return _transition(entry, np.ascontiguousarray(A), h, degree, doublings(A[0], h))


def noise_covariance(A: Floats, h: float, W: Floats, compiled: bool | None = None) -> Floats:
    """As ``transition.noise_covariance``."""
    entry = _functions(compiled)
    if entry is None:
        return transition.noise_covariance(A, h, W)
    return _noise(entry, np.ascontiguousarray(A), h, W, doublings(A[0], h))


def both(A: Floats, h: float, degree: int, W: Floats, compiled: bool | None = None) -> tuple[Floats, Floats, Floats]:
    """Φ, hΨ and Q of one interval; A is balanced once for both."""
    entry = _functions(compiled)
    if entry is None:
        return *transition.state_transition(A, h, degree), transition.noise_covariance(A, h, W)
    A, s = np.ascontiguousarray(A), doublings(A[0], h)
    return *_transition(entry, A, h, degree, s), _noise(entry, A, h, W, s)


def many(A: Floats, h: Floats, degree: int, W: Floats, compiled: bool | None = None) -> tuple[Floats, Floats, Floats]:
    """Φ, hΨ and Q of many intervals with the same A and W: (G, …) each."""
    entry = _functions(compiled)
    if entry is None:
        found = [both(A, float(step), degree, W, compiled) for step in h]
        F, Psi, Q = (np.stack(parts) for parts in zip(*found, strict=True))
        return F, Psi, Q
    A, W = np.ascontiguousarray(A), np.ascontiguousarray(W)
    G, nd, n, noise = len(h), *A.shape[:2], len(W) - 1
    F, Psi, Q = np.empty((G, *A.shape)), np.empty((G, degree + 1, *A.shape)), np.empty((G, *A.shape))
    work = np.empty((2 + max(degree + 5, 3 * (noise + 1) ** 2 + 3)) * A.size)
    size = np.array([G, n, nd, degree, DEGREE + 2 * n + 1, noise], dtype=np.int64)
    with np.errstate(divide="ignore"):
        s = np.maximum(np.ceil(np.log2(2 * balanced_norm(A[0]) * h)), 0.0).astype(np.int64)
    places = (size, s, np.ascontiguousarray(h), A, W, F, Psi, Q, work)
    entry[2](*(x.ctypes.data for x in places))
    return F, Psi, Q


def varying_transitions(A: Floats, W: Floats, h: Floats, compiled: bool | None = None) -> tuple[Floats, Floats]:
    """As ``varying.varying_transitions``."""
    entry = _functions(compiled)
    if entry is None:
        return varying.varying_transitions(A, W, h)
    K, degree, nd, n = len(A), A.shape[1] - 1, *A.shape[2:4]
    F, Q = np.empty((K, nd, n, n)), np.empty((K, nd, n, n))
    size = np.array([K, n, nd, degree, W.shape[1] - 1, varying.most_terms(n)], dtype=np.int64)
    work = np.empty((2 * degree + 6) * nd * n * n)
    places = (size, *(np.ascontiguousarray(x) for x in (h, A, W)), F, Q, work)
    entry[3](*(x.ctypes.data for x in places))
    return F, Q


def _transition(entry: Any, A: Floats, h: float, degree: int, s: int) -> tuple[Floats, Floats]:
    F, Psi = np.empty(A.shape), np.empty((degree + 1, *A.shape))
    work = np.empty((degree + 5) * A.size)
    terms, nd, n = DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    entry[0](n, nd, degree, terms, s, h, A.ctypes.data, F.ctypes.data, Psi.ctypes.data, work.ctypes.data)
    return F, Psi


def _noise(entry: Any, A: Floats, h: float, W: Floats, s: int) -> Floats:
    degree = W.shape[-4] - 1
    many = np.ascontiguousarray(W).reshape(-1, *W.shape[-4:])
    # over the first 2⁻ˢ of the interval, where nothing is left to double
    over = _transition(entry, A, h * 2.0**-s, 0, 0)[0]
    Q = np.empty((len(many), *A.shape))
    work = np.empty((3 * (degree + 1) ** 2 + 3) * A.size)
    terms, nd, n = DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    for given, found in zip(many, Q, strict=True):
        F = over.copy()
        places = (A.ctypes.data, given.ctypes.data, F.ctypes.data, found.ctypes.data, work.ctypes.data)
        entry[1](n, nd, degree, terms, s, h, *places)
    return Q.reshape(*W.shape[:-4], *A.shape)


def _functions(compiled: bool | None) -> Any:
    if compiled is False:
        return None
    return _entry(build_key())


@lru_cache(maxsize=4)
def _entry(key: tuple[str | None, ...]) -> Any:
    text = (resources.files("grisaille.filtering") / "transition.c").read_text(encoding="utf-8")
    library = build_library(text, 0)
    counts, pointer = [ctypes.c_long] * 5, ctypes.c_void_p
    return (
        library.function("gr_transition", *counts, ctypes.c_double, *[pointer] * 4),
        library.function("gr_noise", *counts, ctypes.c_double, *[pointer] * 5),
        library.function("gr_many", *[pointer] * 9),
        library.function("gr_varying", *[pointer] * 7),
    )
