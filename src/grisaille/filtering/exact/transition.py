"""Exact transitions of a linear stochastic equation over an interval, with derivatives.

Over an interval of length h, in its own time s ∈ [0, 1], with forcing and intensity polynomials in s,

    dX = (A X + Σ_k b_k s^k) dt + dβ,   E dβ dβᵀ = Σ_k W_k s^k dt:        X(1) = Φ X(0) + h Σ_k Ψ_k b_k + N(0, Q)

    Φ = e^{Ah}        Ψ_j = ∫₀¹ e^{Ah(1−s)} s^j ds
    Q = h Σ_j M_j[W_j],    M_j[W] = ∫₀¹ s^j e^{Ah(1−s)} W e^{Aᵀh(1−s)} ds

Held and linearly joined inputs are such polynomials, so their transitions are exact. Both integrals are Taylor series
over 2⁻ˢ of the interval,

    Ψ_j = Σ_m (Ahη)^m η^{j+1} j!/(m+j+1)!,  η = 2⁻ˢ        M_j[W] likewise with X ↦ AhX + XAᵀh in place of Ah,

and then s doublings, (s+η)^j expanded by the binomial theorem; nothing is inverted, so a singular A is no special case.
Compare ``disturbance.discretization``, whose method this extends. Where coefficients vary inside a cell (``varying``)
both are power series in s,

    (m + 1) Φ_{m+1} = h Σ_j A_j Φ_{m−j}        (m + 1) Q_{m+1} = h (Σ_j A_j Q_{m−j} + transpose + W_m)

All matrices are duals (``duals``). The sums run in compiled C (``transition.c``), which depends on no model.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from grisaille.compilation.shared_library import build_library
from grisaille.disturbance.discretization import TAYLOR_DEGREE, balanced_norm, doublings
from grisaille.disturbance.duals import Floats
from grisaille.filtering.compiled_sums import build_key

MIN_TERMS = 40
"""Of a series of coefficients that vary, beside two for each state, at most."""


def state_transition(A: Floats, h: float, degree: int) -> tuple[Floats, Floats]:
    """Return Φ, (1 + ns, n, n), and h Ψ_j for j = 0 … degree, (degree + 1, 1 + ns, n, n)."""
    entry = _entry(build_key())
    return _transition(entry, np.ascontiguousarray(A), h, degree, doublings(A[0], h))


def noise_covariance(A: Floats, h: float, W: Floats) -> Floats:
    """Return Q, (…, 1 + ns, n, n), of intensities W, (…, degree + 1, 1 + ns, n, n)."""
    entry = _entry(build_key())
    return _noise(entry, np.ascontiguousarray(A), h, W, doublings(A[0], h))


def both(A: Floats, h: float, degree: int, W: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Φ, hΨ and Q of one interval; A is balanced once for both."""
    entry = _entry(build_key())
    A, s = np.ascontiguousarray(A), doublings(A[0], h)
    return *_transition(entry, A, h, degree, s), _noise(entry, A, h, W, s)


def many(A: Floats, h: Floats, degree: int, W: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Φ, hΨ and Q of many intervals with the same A and W: (G, …) each."""
    entry = _entry(build_key())
    A, W = np.ascontiguousarray(A), np.ascontiguousarray(W)
    G, nd, n, noise = len(h), *A.shape[:2], len(W) - 1
    F, Psi, Q = np.empty((G, *A.shape)), np.empty((G, degree + 1, *A.shape)), np.empty((G, *A.shape))
    work = np.empty((2 + max(degree + 5, 3 * (noise + 1) ** 2 + 3)) * A.size)
    size = np.array([G, n, nd, degree, TAYLOR_DEGREE + 2 * n + 1, noise], dtype=np.int64)
    with np.errstate(divide="ignore"):
        s = np.maximum(np.ceil(np.log2(2 * balanced_norm(A[0]) * h)), 0.0).astype(np.int64)
    places = (size, s, np.ascontiguousarray(h), A, W, F, Psi, Q, work)
    entry[2](*(x.ctypes.data for x in places))
    return F, Psi, Q


def varying_transitions(A: Floats, W: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Return Φ and Q, (K, 1 + ns, n, n) each, of K pieces of lengths h.

    A, W : (K, degree + 1, 1 + ns, n, n) coefficients of polynomials in s
    """
    entry = _entry(build_key())
    K, degree, nd, n = len(A), A.shape[1] - 1, *A.shape[2:4]
    F, Q = np.empty((K, nd, n, n)), np.empty((K, nd, n, n))
    size = np.array([K, n, nd, degree, W.shape[1] - 1, MIN_TERMS + 2 * n], dtype=np.int64)
    work = np.empty((2 * degree + 6) * nd * n * n)
    places = (size, *(np.ascontiguousarray(x) for x in (h, A, W)), F, Q, work)
    entry[3](*(x.ctypes.data for x in places))
    return F, Q


def polynomial_nodes(degree: int) -> tuple[Floats, Floats]:
    """Return points in [0, 1] and the matrix that takes values there to coefficients."""
    if degree == 0:
        return np.array([0.5]), np.ones((1, 1))
    nodes = 0.5 - 0.5 * np.cos(np.pi * np.arange(degree + 1) / degree)
    return nodes, np.asarray(np.linalg.inv(np.vander(nodes, degree + 1, increasing=True)), dtype=np.float64)


def _transition(entry: Any, A: Floats, h: float, degree: int, s: int) -> tuple[Floats, Floats]:
    F, Psi = np.empty(A.shape), np.empty((degree + 1, *A.shape))
    work = np.empty((degree + 5) * A.size)
    terms, nd, n = TAYLOR_DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    entry[0](n, nd, degree, terms, s, h, A.ctypes.data, F.ctypes.data, Psi.ctypes.data, work.ctypes.data)
    return F, Psi


def _noise(entry: Any, A: Floats, h: float, W: Floats, s: int) -> Floats:
    degree = W.shape[-4] - 1
    many = np.ascontiguousarray(W).reshape(-1, *W.shape[-4:])
    # over the first 2⁻ˢ of the interval, where nothing is left to double
    over = _transition(entry, A, h * 2.0**-s, 0, 0)[0]
    Q = np.empty((len(many), *A.shape))
    work = np.empty((3 * (degree + 1) ** 2 + 3) * A.size)
    terms, nd, n = TAYLOR_DEGREE + 2 * A.shape[-1] + 1, *A.shape[:2]
    for given, found in zip(many, Q, strict=True):
        F = over.copy()
        places = (A.ctypes.data, given.ctypes.data, F.ctypes.data, found.ctypes.data, work.ctypes.data)
        entry[1](n, nd, degree, terms, s, h, *places)
    return Q.reshape(*W.shape[:-4], *A.shape)


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
