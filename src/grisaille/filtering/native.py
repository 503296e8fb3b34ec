"""The Kalman filter of ``kalman`` as compiled C, which does not depend on any model: built once per machine.

Where samples are regular it stops computing covariances once they repeat to 1e-13, with all their derivatives. Where
models are interpreted ``add_up`` gives the same numbers by NumPy, which computes every covariance, fifty times slower.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from grisaille.compilation.library import build_library
from grisaille.compilation.requirement import no_compiler
from grisaille.filtering.kalman import DiscreteModel, Sums, run_filter

MOST_OUTPUTS = 1024
"""Simultaneous measurements that the C code has room for."""


def add_up(
    model: DiscreteModel, *, robust: float = np.inf, condition: bool = False, compiled: bool | None = None
) -> Sums:
    """The sums of one pass, compiled where there is a compiler; ``compiled`` as in ``gr.simulate``."""
    entry = None if compiled is False or model.y.shape[1] > MOST_OUTPUTS else _entry(build_key())
    if entry is None:
        if compiled:
            raise no_compiler()
        return run_filter(model, robust=robust, condition=condition)
    return _run(entry, model, robust, condition)


def build_key() -> tuple[str | None, ...]:
    """What decides, in the environment, which compiler and cache are used; asking them takes a hundred times longer."""
    return tuple(os.environ.get(n) for n in ("GRISAILLE_COMPILER", "CC", "PATH", "GRISAILLE_CACHE", "XDG_CACHE_HOME"))


@lru_cache(maxsize=4)
def _entry(key: tuple[str | None, ...]) -> Any:
    text = (resources.files("grisaille.filtering") / "kalman.c").read_text(encoding="utf-8")
    library = build_library(text, 0)
    pointers = [ctypes.c_void_p] * 13
    filter = library.function("gr_kalman", *pointers, ctypes.c_double, *[ctypes.c_void_p] * 10)
    return filter, library.function("gr_kalman_work", *[ctypes.c_long] * 4)


def _run(entry: Any, model: DiscreteModel, robust: float, condition: bool) -> Sums:
    n, ny, nd, nm = model.n, model.y.shape[1], 1 + model.ns, 1 + model.X0.shape[1]
    m = np.zeros((nd, n, nm))
    m[:, :, 0] = model.x0
    m[0, :, 1:] = model.X0
    sizes = [n, ny, nd, nm, len(model.F_of), int(condition), len(model.F), len(model.H)]
    size = np.array(sizes, dtype=np.int64)
    given = [size, model.F, model.F_of, model.c, model.Q, model.Q_of, model.H, model.H_of, model.d, model.R, model.R_of,
             model.y, model.sample_at]  # fmt: skip
    arrays = [np.ascontiguousarray(a, dtype=np.int64 if a.dtype.kind == "i" else np.float64) for a in given]
    base, G = np.zeros(nd), np.zeros((nd, nm, nm))
    information, cross = np.zeros((nd - 1, nd - 1)), np.zeros((nd - 1, nm))
    innovations, variances = np.full(model.y.shape, np.nan), np.full(model.y.shape, np.nan)
    slopes = np.zeros((len(model.y), nd - 1, ny))
    P, work = np.array(model.P0, dtype=float, order="C"), np.zeros(int(entry[1](n, ny, nd, nm)))
    results = [m, P, base, G, information, cross, innovations, variances, slopes, work]
    count = entry[0](*(a.ctypes.data for a in arrays), float(robust), *(a.ctypes.data for a in results))
    failed = -1 - count if count < 0 else -1
    return Sums(max(count, 0), base, G, information, cross, innovations, variances, slopes, failed)
