"""Random bits as a function: Philox4x32-10, four 32-bit words from a 128-bit counter and a 64-bit key.

The seed, the purpose and the name of a disturbance are folded into the key of its *stream*; what varies inside a stream
is the counter::

    key     = first two words of Philox(counter=(name hash, low; name hash, high; purpose; "GRIS"), key=seed)
    counter = (step, node, realization, block)

seed         64 bits, low word first
name hash    64-bit FNV-1a of the UTF-8 name
purpose      the position in :class:`Purpose`
step         0 for the start of a path, k for what leads to grid point k; for a node inside a cell, the cell
node         0 on the grid; inside cell k, between points k and k + 1, the nodes of the bridge: 1 is the cell's middle,
             2j and 2j + 1 the middles of the halves left and right of node j
realization  the number of the path
block        components 2·block and 2·block + 1 of the vector drawn there

So any number of any path is had in any order, and data and estimators never share paths although they share a seed.
Twin of kernels/gr_philox.h, bit for bit. Reference: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel
random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from enum import StrEnum
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grisaille.errors import DataError

Words = NDArray[np.uint64]
"""32-bit words, kept in 64 bits so that products fit."""

Key = tuple[int, int]

_LOW, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_TAG = 0x47524953


class Purpose(StrEnum):
    """What numbers are drawn for; the order is part of the layout, so new ones go last."""

    DATA = "data"
    MODEL = "model"
    BOOTSTRAP = "bootstrap"
    NOISE = "noise"
    LAW = "law"
    PARTICLES = "particles"


def stream_key(seed: int, purpose: Purpose | str, name: str) -> Key:
    """Return the key of the numbers drawn under a seed, for a purpose, under the name of a disturbance."""
    low, high = _split(_name_hash(name))
    counter = (low, high, _position(purpose), _TAG)
    words = philox(counter, _split(_checked(seed)))
    return int(words[0]), int(words[1])


def philox(counter: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike], key: Key) -> tuple[Words, Words, Words, Words]:
    """Return the random words of counters; the four counter words are broadcast against each other.

    Not checked: that counter and key words lie below 2³².
    """
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in counter)
    k0, k1 = key
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _32) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _INCREMENTS[0]) & 0xFFFFFFFF, (k1 + _INCREMENTS[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def _name_hash(name: str) -> int:
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def _position(purpose: Purpose | str) -> int:
    try:
        return list(Purpose).index(Purpose(purpose))
    except ValueError:
        raise DataError(
            f"purpose={purpose!r}: random numbers are drawn for {', '.join(map(repr, map(str, Purpose)))}."
        ) from None


def _checked(seed: int) -> int:
    try:
        number = index(seed)
    except TypeError:
        raise DataError(f"seed={seed!r}: a seed is a whole number.") from None
    if isinstance(seed, bool) or not 0 <= number < 2**64:
        raise DataError(f"seed={seed!r}: a seed is a whole number from 0 to 2**64 - 1.")
    return number


def _split(number: int) -> Key:
    return number & 0xFFFFFFFF, number >> 32
