"""Units as a size and powers of base units: ``"kJ/K"`` is 1000 kg m² s⁻² K⁻¹.

Only what comparisons need: words that are not known stand for themselves, and offsets (degC against K) do not matter to
differences and rates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

SECONDS_PER_UNIT = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Units of time in seconds."""

_BASE: dict[str, tuple[float, dict[str, int]]] = {
    "m": (1.0, {"m": 1}), "g": (1e-3, {"kg": 1}), "s": (1.0, {"s": 1}), "A": (1.0, {"A": 1}), "K": (1.0, {"K": 1}),
    "mol": (1.0, {"mol": 1}), "cd": (1.0, {"cd": 1}), "rad": (1.0, {}), "sr": (1.0, {}), "1": (1.0, {}),
    "N": (1.0, {"kg": 1, "m": 1, "s": -2}), "Pa": (1.0, {"kg": 1, "m": -1, "s": -2}),
    "J": (1.0, {"kg": 1, "m": 2, "s": -2}), "W": (1.0, {"kg": 1, "m": 2, "s": -3}), "C": (1.0, {"A": 1, "s": 1}),
    "V": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -1}), "Ohm": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -2}),
    "S": (1.0, {"kg": -1, "m": -2, "s": 3, "A": 2}), "F": (1.0, {"kg": -1, "m": -2, "s": 4, "A": 2}),
    "H": (1.0, {"kg": 1, "m": 2, "s": -2, "A": -2}), "Wb": (1.0, {"kg": 1, "m": 2, "s": -2, "A": -1}),
    "T": (1.0, {"kg": 1, "s": -2, "A": -1}), "Hz": (1.0, {"s": -1}), "L": (1e-3, {"m": 3}), "l": (1e-3, {"m": 3}),
    "bar": (1e5, {"kg": 1, "m": -1, "s": -2}), "Wh": (3600.0, {"kg": 1, "m": 2, "s": -2}),
    "Ah": (3600.0, {"A": 1, "s": 1}), "M": (1e3, {"mol": 1, "m": -3}),
}  # fmt: skip
_WHOLE: dict[str, tuple[float, dict[str, int]]] = {
    **{name: (size, {"s": 1}) for name, size in SECONDS_PER_UNIT.items()},
    "hr": (3600.0, {"s": 1}), "hour": (3600.0, {"s": 1}), "hours": (3600.0, {"s": 1}), "day": (86400.0, {"s": 1}),
    "days": (86400.0, {"s": 1}), "sec": (1.0, {"s": 1}), "minutes": (60.0, {"s": 1}), "rpm": (1 / 60.0, {"s": -1}),
    "degC": (1.0, {"K": 1}), "°C": (1.0, {"K": 1}), "deg": (1.0, {}), "°": (1.0, {}), "%": (0.01, {}),
    "Ω": (1.0, {"kg": 1, "m": 2, "s": -3, "A": -2}), "t": (1e3, {"kg": 1}),
}  # fmt: skip
"""Words that take no prefix."""
_PREFIXES = {
    "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "da": 10.0, "d": 0.1, "c": 1e-2, "m": 1e-3, "u": 1e-6,
    "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12,
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(r"\s*(?:([^\W\d_]+|°C?|%|1(?!\d))(?:\^|\*\*)?(-?\d+)?|([./*·()]))")


Token = tuple[str | None, str | None, str | None]
"""A word, its power, or a symbol."""


@dataclass(frozen=True)
class Unit:
    """A size in base units, and powers of them."""

    size: float
    powers: Mapping[str, float]

    def __mul__(self, other: Unit) -> Unit:
        return self._joined(other, 1.0)

    def __truediv__(self, other: Unit) -> Unit:
        return self._joined(other, -1.0)

    def __pow__(self, power: float) -> Unit:
        return Unit(self.size**power, {n: p * power for n, p in self.powers.items() if p * power})

    def _joined(self, other: Unit, sign: float) -> Unit:
        powers = dict(self.powers)
        for name, power in other.powers.items():
            powers[name] = powers.get(name, 0.0) + sign * power
        return Unit(self.size * other.size**sign, {n: p for n, p in powers.items() if p})

    def is_alike(self, other: Unit) -> bool:
        """Return whether both measure the same quantity."""
        return dict(self.powers) == dict(other.powers)


DIMENSIONLESS = Unit(1.0, {})


@lru_cache(maxsize=1024)
def read_unit(text: str) -> Unit | None:
    """Return the unit that a text names; None where there is none, or it cannot be read."""
    words = text.translate(_SUPERSCRIPTS).strip()
    if not words:
        return None
    tokens: list[Token] = []
    at = 0
    while at < len(words):
        found = _TOKEN.match(words, at)
        if found is None:
            return None
        tokens.append((found[1], found[2], found[3]))
        at = found.end()
    unit, rest = _product(tokens)
    return None if unit is None or rest else unit


def _product(tokens: list[Token]) -> tuple[Unit | None, list[Token]]:
    """Return a product or quotient up to a closing parenthesis, and what follows."""
    result, sign = DIMENSIONLESS, 1.0
    while tokens:
        (word, power, symbol), tokens = tokens[0], tokens[1:]
        if symbol == ")":
            return result, tokens
        if symbol == "(":
            inner, tokens = _product(tokens)
            if inner is None:
                return None, []
            result, sign = result * inner**sign, 1.0
        elif symbol is not None:
            sign = -1.0 if symbol == "/" else 1.0
        elif word is not None:
            result, sign = result * _word(word) ** (sign * int(power or 1)), 1.0
    return result, []


def _word(word: str) -> Unit:
    if word in _WHOLE:
        return Unit(*_WHOLE[word])
    if word in _BASE:
        return Unit(*_BASE[word])
    for prefix, factor in _PREFIXES.items():
        if word.startswith(prefix) and word[len(prefix) :] in _BASE and len(word) > len(prefix):
            size, powers = _BASE[word[len(prefix) :]]
            return Unit(factor * size, powers)
    return Unit(1.0, {word: 1})
