"""The generators of ``Modelica.Math.Random``: whole numbers of 64 bits, settled or as formulas of bits.

S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", ACM Trans. Math. Software 42
(2016). In the library's variant of the two small ones the state is what comes out, product or sum included. A state is
given as Integers of 32 bits with sign, the lower half of a word first; of xorshift1024* a last Integer says which of
its sixteen words was drawn last. A word w with sign becomes the number w/2⁶⁴ + ½.

During a run whole numbers are doubles, in which halves of 32 bits are exact: a half is taken apart into bits by floors,
the exclusive or of bits is (a − b)², and sums carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grisaille.modelica.builtins import floor
from grisaille.modelica.values import (
    Array,
    Unfit,
    Value,
    add,
    array,
    choose,
    is_number,
    multiply,
    relation,
    subtract,
    total,
)

WORD = 64
HALF = 2**32
_STAR = 2685821657736338717
_STAR_1024 = 1181783497276652981
_RING = 16
"""Words of the state of xorshift1024*, used one after the other."""
_WARM_UP = 10
"""Numbers that are thrown away after seeding."""
_PRIME = 126247697
"""Seeds the generator in place of two zeros."""

Bits = list[Any]
"""Of a word, the lowest first."""


def _bits(half: Value) -> Bits:
    """Return the 32 bits of an Integer, in two's complement."""
    if is_number(half):
        return [(int(half) >> k) & 1 for k in range(32)]
    rest = subtract(half, multiply(HALF, floor(multiply(half, 1 / HALF))))
    found = []
    for _ in range(32):
        above = floor(multiply(rest, 0.5))
        found.append(subtract(rest, multiply(2, above)))
        rest = above
    return found


def _words(state: Array) -> list[Bits]:
    if not isinstance(state, np.ndarray) or state.ndim != 1 or state.size % 2:
        raise Unfit("the state of a random number generator is an array of Integers, two for each word")
    return [[*_bits(state[k]), *_bits(state[k + 1])] for k in range(0, state.size, 2)]


def _xor(*words: Bits) -> Bits:
    first, *others = words
    for other in others:
        first = [_other(a, b) for a, b in zip(first, other, strict=True)]
    return first


def _other(a: Value, b: Value) -> Value:
    if is_number(a) and is_number(b):
        return int(a) ^ int(b)
    if is_number(a) or is_number(b):
        known, open_bit = (a, b) if is_number(a) else (b, a)
        return subtract(1, open_bit) if known else open_bit
    difference = subtract(a, b)
    return multiply(difference, difference)


def _left(word: Bits, by: int) -> Bits:
    return [*[0] * by, *word[: WORD - by]]


def _right(word: Bits, by: int) -> Bits:
    return [*word[by:], *[0] * by]


def _number(bits: Bits) -> Value:
    return total([multiply(bit, 2**k) for k, bit in enumerate(bits)])


def _sum(a: Bits, b: Bits) -> tuple[Value, Value]:
    """Lower and upper half of a + b mod 2⁶⁴."""
    low = add(_number(a[:32]), _number(b[:32]))
    carry = floor(multiply(low, 1 / HALF))
    high = add(add(_number(a[32:]), _number(b[32:])), carry)
    return subtract(low, multiply(HALF, carry)), subtract(high, multiply(HALF, floor(multiply(high, 1 / HALF))))


def _signed(half: Value) -> Value:
    """Return a half as an Integer with sign."""
    return subtract(half, multiply(HALF, floor(multiply(half, 2 / HALF))))


def _drawn(low: Value, high: Value) -> Value:
    """Return the number in (0, 1] that a word stands for."""
    return add(multiply(add(multiply(_signed(high), HALF), low), 2.0**-64), 0.5)


def _state(*halves: Value) -> Array:
    signed = [_signed(half) for half in halves]
    return array([int(half) if is_number(half) else half for half in signed])


def xorshift64star(state: Array) -> tuple[Value, Array]:
    """Return the next number and state (2 Integers)."""
    (x,) = _words(state)
    x = _xor(x, _right(x, 12))
    x = _xor(x, _left(x, 25))
    x = _xor(x, _right(x, 27))
    low, high = _product(x, _STAR)
    return _drawn(low, high), _state(low, high)


def _product(word: Bits, factor: int) -> tuple[Value, Value]:
    """Lower and upper half of a product mod 2⁶⁴, in digits of 16 bits: 2⁶⁴ is beyond what a double holds."""
    digits, factors = (
        [_number(word[k : k + 16]) for k in range(0, WORD, 16)],
        [factor >> k & 0xFFFF for k in (0, 16, 32, 48)],
    )
    carry: Any = 0
    found = []
    for k in range(4):
        here = total([carry, *(multiply(digits[i], factors[k - i]) for i in range(k + 1))])
        carry = floor(multiply(here, 2.0**-16))
        found.append(subtract(here, multiply(2**16, carry)))
    low, high = (add(found[k], multiply(2**16, found[k + 1])) for k in (0, 2))
    return low, high


def xorshift1024star(state: Any) -> tuple[Any, Any]:
    """Return the next number and state (32 Integers of sixteen words, and which one was drawn last)."""
    if not isinstance(state, np.ndarray) or state.shape != (2 * _RING + 1,):
        raise Unfit("the state of Xorshift1024star is an array of 33 Integers")
    last, following = (_folded(add(state[-1], k)) for k in (0, 1))
    older = [*_bits(_at(last, state[:-1:2])), *_bits(_at(last, state[1:-1:2]))]
    newer = [*_bits(_at(following, state[:-1:2])), *_bits(_at(following, state[1:-1:2]))]
    newer = _xor(newer, _left(newer, 31))
    word = _xor(_xor(newer, _right(newer, 11)), _xor(older, _right(older, 30)))
    halves = _state(_number(word[:32]), _number(word[32:]))
    kept = [choose(relation("==", following, k // 2), halves[k % 2], state[k]) for k in range(2 * _RING)]
    return _drawn(*_product(word, _STAR_1024)), array([*kept, following])


def _folded(place: Value) -> Value:
    """Return a position on the ring, whatever Integer it is given by."""
    return subtract(place, multiply(_RING, floor(multiply(place, 1 / _RING))))


def _at(place: Value, items: Sequence[Value] | Array) -> Value:
    """Return the item at a place, counted from zero."""
    chosen = items[-1]
    for k in reversed(range(len(items) - 1)):
        chosen = choose(relation("==", place, k), items[k], chosen)
    return chosen


def xorshift128plus(state: Array) -> tuple[Value, Value]:
    """Return the next number and state (4 Integers)."""
    first, second = _words(state)
    first = _xor(first, _left(first, 23))
    low, high = _sum(_xor(first, second, _right(first, 17), _right(second, 26)), second)
    return _drawn(low, high), _state(_number(second[:32]), _number(second[32:]), low, high)


def initial_state_64(local_seed: Value, global_seed: Value) -> Any:
    """Return a good state from any two seeds."""
    state = array([_PRIME if local_seed == 0 and global_seed == 0 else local_seed, global_seed])
    for _ in range(_WARM_UP):
        _, state = xorshift64star(state)
    return state


_GENERATORS = "Modelica.Math.Random.Generators."
NATIVE: dict[str, Callable[..., Any]] = {
    "ModelicaRandom_xorshift64star": xorshift64star,
    "ModelicaRandom_xorshift128plus": xorshift128plus,
    "ModelicaRandom_xorshift1024star": xorshift1024star,
    f"{_GENERATORS}Xorshift64star.random": xorshift64star,
    f"{_GENERATORS}Xorshift128plus.random": xorshift128plus,
    f"{_GENERATORS}Xorshift1024star.random": xorshift1024star,
    f"{_GENERATORS}Xorshift64star.initialState": initial_state_64,
    # seeds the functions that draw from a hidden state, which are refused
    "Modelica.Math.Random.Utilities.initializeImpureRandom.setInternalState": lambda _state, _id: (),
}
"""By the name of the external function, or of a function that exports do not bring."""
