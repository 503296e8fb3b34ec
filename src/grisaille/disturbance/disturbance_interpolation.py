"""Values of a disturbance between grid points by interpolation: approximations, cheap and smooth.

``"linear"``   lines between grid values; slopes jump at grid points, the variance between them is too small
``"spline"``   the cubic spline through all grid values (not-a-knot ends); two derivatives are continuous

Both tend to the process as the grid is refined; what has the spectrum and the correlations of the process also in
between is its bridge. Polynomials are in powers of t − τ_k from the constant up, as integrators read signals.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import DataError

Floats = NDArray[np.float64]
Kind = Literal["linear", "spline"]


def piece_coefficients(times: ArrayLike, values: ArrayLike, kind: Kind) -> Floats:
    """Return polynomials of each cell, (…, cells, m, degree + 1), through values (…, times, m)."""
    t, v = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if t.ndim != 1 or t.size < 2 or not np.all(np.diff(t) > 0):
        raise DataError("Interpolation needs at least two increasing times.")
    if v.ndim < 2 or v.shape[-2] != t.size:
        raise DataError(f"Values to interpolate have shape {v.shape}; expected (…, {t.size}, components).")
    if kind == "linear":
        return np.stack([v[..., :-1, :], np.diff(v, axis=-2) / np.diff(t)[:, None]], axis=-1)
    if kind == "spline":
        return _spline(t, v)
    raise DataError(f'interpolation={kind!r}: "linear", "spline" or "exact" is possible between grid points.')


def interpolate(times: ArrayLike, values: ArrayLike, instants: ArrayLike, kind: Kind) -> Floats:
    """Return values at instants inside the grid's span, (…, instants, m)."""
    t, at = np.asarray(times, dtype=float), np.asarray(instants, dtype=float)
    pieces = piece_coefficients(t, values, kind)
    if at.size and not (at.min() >= t[0] and at.max() <= t[-1]):
        raise DataError(f"Values were asked for at {at.min():g} … {at.max():g}, the grid spans {t[0]:g} … {t[-1]:g}.")
    cell = np.clip(np.searchsorted(t, at, side="right") - 1, 0, t.size - 2)
    offset = (at - t[cell])[:, None]
    chosen = pieces[..., cell, :, :]
    value = chosen[..., -1]
    for k in range(chosen.shape[-1] - 2, -1, -1):
        value = value * offset + chosen[..., k]
    return value


def _spline(t: Floats, v: Floats) -> Floats:
    from scipy.interpolate import CubicSpline  # loaded only when a spline is asked for

    # (4, cells, …, m), highest power first
    coefficients = CubicSpline(t, v, axis=-2).c
    return np.moveaxis(np.moveaxis(coefficients[::-1], 0, -1), 0, -3)
