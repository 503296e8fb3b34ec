"""Standard normals: accuracy of logarithm and sine, bits, statistics, independence of order."""

from __future__ import annotations

import ctypes
import hashlib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from disturbance.headers import pointer
from scipy import stats

from grisaille.disturbance import Stream, log_unit, normals, sine_cosine_turn
from grisaille.errors import DataError
from grisaille.numerics import stream_key

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
MILLION = "0b133934d1fe2dd30681e7b453b17eb8c45ea6633f6de3a9c016fc1b0844d740"


@pytest.fixture(scope="module")
def million() -> np.ndarray:
    return normals(1, "data", "w", 1000, 500, 2)


@pytest.fixture(scope="module")
def odd() -> np.ndarray:
    """Ends, neighbours of every power of two and of the quarter turns, and random ones."""
    near = [2**k + d for k in range(53) for d in (-3, -1, 1, 3)] + [k * 2**50 + d for k in range(1, 8) for d in (-1, 1)]
    edges = [int(2**k * 2**0.5) | 1 for k in range(1, 52)]
    random = np.random.default_rng(2).integers(0, 2**52, 1000) * 2 + 1
    numbers = np.unique(np.array([*near, *edges, 1, 2**53 - 1, *random]))
    return numbers[(numbers > 0) & (numbers % 2 == 1) & (numbers < 2**53)].astype(np.uint64)


def relative_error(value: float, exact: Decimal) -> float:
    return float(abs((Decimal(value) - exact) / exact))


def test_logarithm_is_accurate(odd: np.ndarray) -> None:
    with localcontext(prec=50):
        exact = [(Decimal(int(n)) / 2**53).ln() for n in odd]
        worst = max(relative_error(float(v), e) for v, e in zip(log_unit(odd), exact, strict=True))
    assert worst < 5e-16


def test_logarithm_is_monotone() -> None:
    """Also across the joints of the argument reduction, where m passes √2 and powers of two."""
    for centre in (2**52, int(2**52.5) | 1, int(2**30.5) | 1, 2**40):
        n = np.arange(centre - 4001, centre + 4001, 2, dtype=np.uint64) | np.uint64(1)
        assert np.all(np.diff(log_unit(n)) >= 0)


def test_sine_and_cosine_are_accurate(odd: np.ndarray) -> None:
    sine, cosine = sine_cosine_turn(odd)
    with localcontext(prec=50):
        for n, s, c in zip(odd, sine, cosine, strict=True):
            exact_sine, exact_cosine = decimal_sine_cosine(2 * PI * int(n) / 2**53)
            assert relative_error(float(s), exact_sine) < 5e-16
            assert relative_error(float(c), exact_cosine) < 5e-16


def decimal_sine_cosine(x: Decimal) -> tuple[Decimal, Decimal]:
    """Taylor series of e^{ix}."""
    total, term = [Decimal(0), Decimal(0)], Decimal(1)
    for k in range(1, 70):
        total[(k - 1) % 2] += term if (k - 1) % 4 < 2 else -term
        term = term * x / k
    return total[1], total[0]


def test_bits_are_kept(million: np.ndarray) -> None:
    assert hashlib.sha256(million.astype("<f8").tobytes()).hexdigest() == MILLION


def test_c_gives_the_same_million(native: ctypes.CDLL) -> None:
    out = np.empty((1000, 500, 2))
    key = [ctypes.c_uint32(k) for k in stream_key(1, "data", "w")]
    native.normals(*key, ctypes.c_uint32(0), *map(ctypes.c_long, out.shape), pointer(out))
    assert hashlib.sha256(out.astype("<f8").tobytes()).hexdigest() == MILLION


def test_c_gives_the_same_logarithms(native: ctypes.CDLL, odd: np.ndarray) -> None:
    out = np.empty(odd.size)
    native.logarithms(ctypes.c_long(odd.size), pointer(odd), pointer(out))
    assert np.array_equal(out, log_unit(odd))


@pytest.mark.parametrize("antithetic", [False, True])
def test_c_gives_the_same_vectors_of_odd_length(native: ctypes.CDLL, antithetic: bool) -> None:
    out = np.empty((5, 7, 3))
    key = [ctypes.c_uint32(k) for k in stream_key(3, "model", "body.w")]
    native.normals(*key, ctypes.c_uint32(antithetic), *map(ctypes.c_long, out.shape), pointer(out))
    assert np.array_equal(out, normals(3, "model", "body.w", 5, 7, 3, antithetic=antithetic))


def test_moments(million: np.ndarray) -> None:
    """Within 4.5 standard deviations of the moments of a million normals."""
    z = million.ravel()
    deviation = 4.5 / np.sqrt(z.size)
    assert abs(z.mean()) < deviation
    assert abs(z.var() - 1) < deviation * np.sqrt(2)
    assert abs((z**3).mean()) < deviation * np.sqrt(15)
    assert abs((z**4).mean() - 3) < deviation * np.sqrt(96)


def test_distribution(million: np.ndarray) -> None:
    """Kolmogorov–Smirnov, both components, at 1e-4."""
    for component in range(2):
        assert stats.kstest(million[..., component].ravel(), "norm").pvalue > 1e-4


def test_tails(million: np.ndarray) -> None:
    """Counts beyond 3 and 4 within 4.5 deviations of the binomial."""
    for limit in (3.0, 4.0):
        p = 2 * stats.norm.sf(limit)
        count = np.sum(np.abs(million) > limit)
        assert abs(count - million.size * p) < 4.5 * np.sqrt(million.size * p)


def test_neighbours_and_streams_are_uncorrelated(million: np.ndarray) -> None:
    other = [normals(s, p, n, 1000, 500, 2) for s, p, n in ((2, "data", "w"), (1, "model", "w"), (1, "data", "v"))]
    pairs = [(million[..., 0], million[..., 1]), (million[1:], million[:-1]), (million[:, 1:], million[:, :-1])]
    for a, b in [*pairs, *((million, o) for o in other)]:
        assert abs(np.mean(a * b)) < 4.5 / np.sqrt(a.size)
        assert abs(np.mean((a**2 - 1) * (b**2 - 1))) < 2 * 4.5 / np.sqrt(a.size)


def test_order_and_number_do_not_matter(million: np.ndarray) -> None:
    assert np.array_equal(normals(1, "data", "w", [999, 3], [7, 400, 0], 2), million[[999, 3]][:, [7, 400, 0]])
    assert np.array_equal(normals(1, "data", "w", 10, 20, 1), million[:10, :20, :1])


def test_antithetic_pairs() -> None:
    plain, paired = normals(1, "data", "w", 6, 10, 3), normals(1, "data", "w", 6, 10, 3, antithetic=True)
    assert np.array_equal(paired[1::2], -paired[::2])
    assert np.array_equal(paired[::2], plain[::2])


def test_nodes_are_other_numbers() -> None:
    stream = Stream.of(1, "data", "w")
    drawn = [stream.normals(0, 3, 2, node) for node in range(4)]
    assert np.unique(drawn).size == 8


@pytest.mark.parametrize("index", [-1, 2**32, 0.5])
def test_other_indices_are_refused(index: float) -> None:
    with pytest.raises(DataError, match="realization: indices of random numbers"):
        Stream.of(1, "data", "w").normals(index, 0, 1)
