"""The Kalman filter of ``kalman`` as compiled C, which does not depend on any model: built once per machine.

Where samples are regular it stops computing covariances once they repeat to 1e-13, with all their derivatives, unless
they are asked for.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from grisaille.compilation.shared_library import build_library
from grisaille.disturbance.duals import Floats
from grisaille.filtering.kalman import DiscreteModel, FilterMoments, LikelihoodSums


def add_up(model: DiscreteModel, *, robust: float = np.inf, condition: bool = False) -> LikelihoodSums:
    """Return the sums of one pass over the data.

    robust : Huber's c, in standard deviations; −c for the smooth loss
    condition : leave the first sample out of the likelihood
    """
    return _run(model, robust, condition)


def add_up_given(model: DiscreteModel, m: Floats, P: Floats, *, robust: float, condition: bool) -> LikelihoodSums:
    """Return the same with the moments before each sample given, duals (N, 1 + ns, n) and (N, 1 + ns, n, n)."""
    return _run(model, robust, condition, given=np.concatenate([m.reshape(len(m), -1), P.reshape(len(P), -1)], axis=1))


def filter_moments(model: DiscreteModel) -> tuple[LikelihoodSums, Floats, Floats]:
    """Return the sums, and duals of the moments before and after the update at every cell boundary.

    Means (K + 1, 2, 1 + ns, n) and covariances (K + 1, 2, 1 + ns, n, n), without a flat prior.
    """
    nd, n = 1 + model.ns, model.n
    kept = np.full((len(model.sample_at), 2, nd * (n + n * n)), np.nan)
    sums = _run(model, np.inf, False, kept=kept)
    m, P = np.split(kept, [nd * n], axis=2)
    return sums, m.reshape(*m.shape[:2], nd, n), P.reshape(*P.shape[:2], nd, n, n)


def filter_states(model: DiscreteModel) -> tuple[LikelihoodSums, FilterMoments]:
    """Return the sums, and the moments without their derivatives."""
    sums, m, P = filter_moments(model)
    return sums, FilterMoments(m[:, 0, 0], P[:, 0, 0], m[:, 1, 0], P[:, 1, 0])


def build_key() -> tuple[str | None, ...]:
    """Return what decides, in the environment, which compiler and cache are used; asking them takes a hundred times
    longer.
    """
    return tuple(os.environ.get(n) for n in ("GRISAILLE_COMPILER", "CC", "PATH", "GRISAILLE_CACHE", "XDG_CACHE_HOME"))


@lru_cache(maxsize=4)
def _entry(key: tuple[str | None, ...]) -> Any:
    text = (resources.files("grisaille.filtering") / "kalman.c").read_text(encoding="utf-8")
    library = build_library(text, 0)
    pointers = [ctypes.c_void_p] * 13
    filter = library.function("gr_kalman", *pointers, ctypes.c_double, *[ctypes.c_void_p] * 12)
    return filter, library.function("gr_kalman_work", *[ctypes.c_long] * 4)


def _run(
    model: DiscreteModel, robust: float, condition: bool, *, given: Floats | None = None, kept: Floats | None = None
) -> LikelihoodSums:  # fmt: skip
    run, work_of = _entry(build_key())
    n, ny, nd, nm = model.n, model.y.shape[1], 1 + model.ns, 1 + model.X0.shape[1]
    m = np.zeros((nd, n, nm))
    m[:, :, 0] = model.x0
    m[0, :, 1:] = model.X0
    sizes = [n, ny, nd, nm, len(model.F_of), int(condition), len(model.F), len(model.H)]
    size = np.array(sizes, dtype=np.int64)
    matrices = [
        size, model.F, model.F_of, model.c, model.Q, model.Q_of, model.H, model.H_of, model.d, model.R, model.R_of,
        model.y, model.sample_at,
    ]  # fmt: skip
    arrays = [np.ascontiguousarray(a, dtype=np.int64 if a.dtype.kind == "i" else np.float64) for a in matrices]
    base, G = np.zeros(nd), np.zeros((nd, nm, nm))
    information, cross = np.zeros((nd - 1, nd - 1)), np.zeros((nd - 1, nm))
    innovations, variances = np.full(model.y.shape, np.nan), np.full(model.y.shape, np.nan)
    slopes = np.zeros((len(model.y), nd - 1, ny))
    P, work = np.array(model.P0, dtype=float, order="C"), np.zeros(int(work_of(n, ny, nd, nm)))
    results = [m, P, base, G, information, cross, innovations, variances, slopes, work]
    places = [a.ctypes.data for a in results] + [None if a is None else a.ctypes.data for a in (given, kept)]
    count = run(*(a.ctypes.data for a in arrays), float(robust), *places)
    failed = -1 - count if count < 0 else -1
    return LikelihoodSums(max(count, 0), base, G, information, cross, innovations, variances, slopes, failed)
