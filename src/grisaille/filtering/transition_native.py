"""Transitions by compiled C, which does not depend on any model, or by NumPy (``transition``) without a compiler."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from grisaille.compilation.library import build_library
from grisaille.disturbance.discretization import DEGREE, doublings
from grisaille.filtering import transition
from grisaille.filtering.duals import Floats
from grisaille.filtering.native import build_key


def state_transition(A: Floats, h: float, degree: int, compiled: bool | None = None) -> tuple[Floats, Floats]:
    """As ``transition.state_transition``."""
    entry = _functions(compiled)
    if entry is None:
        return transition.state_transition(A, h, degree)
    F, Psi = np.empty(A.shape), np.empty((degree + 1, *A.shape))
    work = np.empty((degree + 5) * A.size)
    terms, nd, n = DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    entry[0](n, nd, degree, terms, doublings(A[0], h), h, *_addresses(A, F, Psi, work))
    return F, Psi


def noise_covariance(A: Floats, h: float, W: Floats, compiled: bool | None = None) -> Floats:
    """As ``transition.noise_covariance``."""
    entry = _functions(compiled)
    if entry is None:
        return transition.noise_covariance(A, h, W)
    s, degree = doublings(A[0], h), W.shape[-4] - 1
    many = W.reshape(-1, *W.shape[-4:])
    over = state_transition(A, h * 2.0**-s, 0, compiled)[0]
    Q = np.empty((len(many), *A.shape))
    work = np.empty((3 * (degree + 1) ** 2 + 3) * A.size)
    terms, nd, n = DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    for k, given in enumerate(many):
        F = over.copy()
        entry[1](n, nd, degree, terms, s, h, *_addresses(A, np.ascontiguousarray(given), F, Q[k], work))
    return Q.reshape(*W.shape[:-4], *A.shape)


def _addresses(*arrays: Floats) -> tuple[Any, ...]:
    return tuple(np.ascontiguousarray(a).ctypes.data_as(ctypes.c_void_p) for a in arrays)


def _functions(compiled: bool | None) -> Any:
    if compiled is False:
        return None
    return _entry(build_key())


@lru_cache(maxsize=4)
def _entry(key: tuple[str | None, ...]) -> Any:
    text = (resources.files("grisaille.filtering") / "transition.c").read_text(encoding="utf-8")
    library = build_library(text, 0)
    if library is None:
        return None
    counts, pointer = [ctypes.c_long] * 5, ctypes.c_void_p
    return (
        library.function("gr_transition", *counts, ctypes.c_double, *[pointer] * 4),
        library.function("gr_noise", *counts, ctypes.c_double, *[pointer] * 5),
    )
