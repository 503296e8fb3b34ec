"""Uniform random numbers as a function of (seed, name; index), from which laws draw by their quantiles."""

from __future__ import annotations

import numpy as np

from grisaille.numerics.philox import Purpose, philox, stream_key


def uniforms(count: int, seed: int, name: str, first: int = 0) -> np.ndarray:
    """Return numbers ``first`` to ``first + count − 1`` of a stream, (2n + 1)·2⁻⁵³ with 52 random bits n."""
    index = np.arange(first, first + count, dtype=np.uint64)
    low, high, _, _ = philox((index, 0, 0, 0), stream_key(seed, Purpose.LAW, name))
    bits = (high << np.uint64(20)) | (low >> np.uint64(12))
    return np.asarray(((bits << np.uint64(1)) | np.uint64(1)).astype(float) * 2.0**-53)
