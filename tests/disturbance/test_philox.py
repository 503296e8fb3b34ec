"""Random words: the published vectors, the layout of streams, and the C twin."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from grisaille.disturbance import philox
from grisaille.errors import DataError
from grisaille.numerics import Purpose, stream_key

PUBLISHED = [
    # Random123, kat_vectors: counter, key, answer of philox4x32 with 10 rounds
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def hexadecimal(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "answer"), PUBLISHED)
def test_published_vectors(counter: str, key: str, answer: str) -> None:
    assert tuple(int(w) for w in philox(hexadecimal(counter), hexadecimal(key))) == hexadecimal(answer)


def test_c_gives_the_same_words(native: ctypes.CDLL) -> None:
    counters = np.random.default_rng(1).integers(0, 2**32, (2000, 4), dtype=np.uint64)
    counters[:3] = [hexadecimal(row[0]) for row in PUBLISHED]
    for key in (hexadecimal(row[1]) for row in PUBLISHED):
        ours = np.stack(philox(tuple(counters.T), key), axis=1)
        theirs = counters.astype(np.uint32)
        native.words(ctypes.c_long(len(theirs)), ctypes.c_void_p(theirs.ctypes.data), *map(ctypes.c_uint32, key))
        assert np.array_equal(ours, theirs)


def test_layout_of_streams_is_kept() -> None:
    """Stored results of users depend on these keys."""
    assert stream_key(1, "data", "w") == KEPT


KEPT = (0x7DE07061, 0x9BE842B5)


def test_streams_differ_in_seed_purpose_and_name() -> None:
    names = ["w", "w[0]", "w[1]", "body.w", "ω"]
    keys = {stream_key(s, p, n) for s in (0, 1, 2**32, 2**64 - 1) for p in Purpose for n in names}
    assert len(keys) == 4 * len(Purpose) * len(names)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, None])
def test_other_seeds_are_refused(seed: object) -> None:
    with pytest.raises(DataError, match="a seed is a whole number"):
        stream_key(seed, "data", "w")  # type: ignore[arg-type]


def test_other_purposes_are_refused() -> None:
    with pytest.raises(DataError, match="'data', 'model', 'bootstrap', 'noise'"):
        stream_key(1, "fun", "w")
