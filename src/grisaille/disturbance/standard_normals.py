"""Standard normals as a function of (seed, purpose, name; realization, step, component), the same bits everywhere.

Box and Muller on two 52-bit uniforms of one Philox block::

    a, b = (2n + 1)·2⁻⁵³       z₀ = √(−2 log a) cos 2πb       z₁ = √(−2 log a) sin 2πb

Logarithm and sine are our own and use only + − × ÷ √, which IEEE 754 rounds in one way; those of C libraries differ in
the last bits. Both are accurate to 1e-15 of their value. |z| stays below 8.58. Twin of kernels/gr_normal.h, operation
for operation. Reference: G. E. P. Box, M. E. Muller, Ann. Math. Stat. 29 (1958) 610; polynomials are the Taylor series
of sin, cos on an eighth turn and of atanh on |s| ≤ 0.172.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import DataError
from grisaille.numerics.philox import Key, Purpose, Words, philox, stream_key

Floats = NDArray[np.float64]
Counts = NDArray[np.uint64]

BLOCKS_PER_CHUNK = 1 << 14
"""Blocks worked on at a time: their words stay in the processor's cache."""

_LN2_HIGH = 0.6931471803691238
"""The first 32 bits of log 2, so that its product with an exponent is exact."""
_LN2_LOW = 1.9082149292705877e-10
_ONE, _ROOT_HALF = np.uint64(0x3FF0000000000000), np.uint64(0x3FE6A09E667F3BCD)
"""The bits of 1 and of √½."""
_ATANH = (
    0.6666666666666666, 0.4, 0.2857142857142857, 0.2222222222222222, 0.18181818181818182, 0.15384615384615385,
    0.13333333333333333, 0.11764705882352941, 0.10526315789473684,
)  # fmt: skip
_SIN = (
    1.5707963267948966, -0.6459640975062463, 0.07969262624616705, -0.004681754135318688, 0.00016044118478735983,
    -3.598843235212085e-06, 5.692172921967927e-08, -6.688035109811468e-10, 6.0669357311061955e-12,
)  # fmt: skip
_COS = (
    1.0, -1.2337005501361697, 0.25366950790104803, -0.02086348076335296, 0.0009192602748394266,
    -2.5202042373060607e-05, 4.710874778818172e-07, -6.386603083791852e-09, 6.565963114979473e-11,
)  # fmt: skip


@dataclass(frozen=True)
class Stream:
    """The normals under one key; ``antithetic`` makes realization 2m + 1 minus realization 2m."""

    key: Key
    antithetic: bool = False

    @classmethod
    def of(cls, seed: int, purpose: Purpose | str, name: str, antithetic: bool = False) -> Stream:
        return cls(stream_key(seed, purpose, name), antithetic)

    def normals(self, realization: ArrayLike, step: ArrayLike, components: int, node: ArrayLike = 0) -> Floats:
        """Return vectors of standard normals: the shape of the broadcast indices, then ``components``."""
        places = np.broadcast_arrays(
            _indices("realization", realization), _indices("step", step), _indices("node", node)
        )
        size = places[0].size
        out = np.empty((size, components))
        for first, last in _chunks(size):
            # indices are copied chunk by chunk: all of them would take three times as much memory as the normals
            m, k, j = (p.flat[first:last] for p in places)
            for block in range(-(-components // 2)):
                pairs = self._pairs(m, k, j, block)
                out[first:last, 2 * block : 2 * block + 2] = pairs[:, : components - 2 * block]
        return out.reshape(*places[0].shape, components)

    def _pairs(self, realization: Counts, step: Counts, node: Counts, block: int) -> Floats:
        even = realization & ~np.uint64(1) if self.antithetic else realization
        w0, w1, w2, w3 = philox((step, node, even, block), self.key)
        radius = np.sqrt(-2.0 * log_unit(odd_number(w0, w1)))
        if self.antithetic:
            radius = np.where(realization & np.uint64(1), -radius, radius)
        sine, cosine = sine_cosine_turn(odd_number(w2, w3))
        return np.stack([radius * cosine, radius * sine], axis=-1)


def normals(
    seed: int, purpose: Purpose | str, name: str, realizations: ArrayLike, steps: ArrayLike, components: int = 1, *,
    antithetic: bool = False,
) -> Floats:  # fmt: skip
    """Return standard normals, (realizations, steps, components).

    realizations, steps : which ones; a number n stands for 0, …, n − 1
    antithetic          : realization 2m + 1 is minus realization 2m

    Each number depends on its own indices only, not on which others are asked for.
    """
    m, k = index_list(realizations), index_list(steps)
    return Stream.of(seed, purpose, name, antithetic).normals(m[:, None], k[None, :], components)


def index_list(indices: ArrayLike) -> NDArray[np.int64]:
    """Return the indices as a list; a number n stands for 0, …, n − 1."""
    given = np.asarray(indices)
    return np.arange(int(given)) if given.ndim == 0 else given.ravel()


def odd_number(low: Words, high: Words) -> Counts:
    """Return 2n + 1 with the upper 52 bits n of two words."""
    n = (high << np.uint64(20)) | (low >> np.uint64(12))
    return (n << np.uint64(1)) | np.uint64(1)


def log_unit(odd: Counts) -> Floats:
    """Return log(odd·2⁻⁵³) = e log 2 + 2 atanh s, s = (m − 1)/(m + 1), for odd in [1, 2⁵³) and m in [√½, √2)."""
    # adding the distance of √½ from 1 carries into the exponent exactly when m would exceed √2
    shifted = odd.astype(np.float64).view(np.uint64) + (_ONE - _ROOT_HALF)
    e = ((shifted >> np.uint64(52)).astype(np.int64) - 1076).astype(np.float64)
    m = ((shifted & np.uint64(0x000FFFFFFFFFFFFF)) + _ROOT_HALF).view(np.float64)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    r = _polynomial(_ATANH, z) * z * s
    return e * _LN2_HIGH + (s + s + (r + e * _LN2_LOW))


def sine_cosine_turn(odd: Counts) -> tuple[Floats, Floats]:
    """Return sine and cosine of 2π·odd·2⁻⁵³; the nearest quarter turn is split off in integers, exactly."""
    quarter = (odd + np.uint64(1 << 50)) >> np.uint64(51)
    f = (odd.astype(np.int64) - (quarter << np.uint64(51)).astype(np.int64)).astype(np.float64) * 2.0**-51
    z = f * f
    s, c = f * _polynomial(_SIN, z), _polynomial(_COS, z)
    swapped = (quarter & np.uint64(1)).astype(bool)
    s, c = np.where(swapped, c, s), np.where(swapped, s, c)
    return _negated(s, quarter), _negated(c, quarter + np.uint64(1))


def _negated(value: Floats, quarter: Counts) -> Floats:
    return np.where(quarter & np.uint64(2), -value, value)


def _polynomial(p: tuple[float, ...], z: Floats) -> Floats:
    """Return p₀ + p₁z + … + p₈z⁸ in pairs (Estrin), in the order of the C twin."""
    z2 = z * z
    z4 = z2 * z2
    low = (p[0] + p[1] * z) + (p[2] + p[3] * z) * z2
    high = (p[4] + p[5] * z) + (p[6] + p[7] * z) * z2
    return low + (high + p[8] * z4) * z4


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + BLOCKS_PER_CHUNK, size)) for first in range(0, size, BLOCKS_PER_CHUNK))


def _indices(name: str, values: ArrayLike) -> Counts:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iu" or (numbers.size and not (numbers.min() >= 0 and numbers.max() < 2**32)):
        raise DataError(f"{name}: indices of random numbers are whole numbers from 0 to 2**32 - 1, got {values!r}.")
    return numbers.astype(np.uint64)
