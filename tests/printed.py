"""Printed results of the documentation are compared as numbers, everything else as text.

A page shows the digits that were printed, and another machine may print slightly different ones. The tolerance of a
number follows from what it is:

    estimate ± error, estimate and its [interval]         a fifth of a standard error
    all others in the lines of such intervals, errors     5 %
    other numbers with a decimal point or an exponent     0.1 %
    whole numbers                                         none

each with one unit of the last digit in addition, and whole numbers outside of estimates without it. A block after
``<!-- numbers within 10 % -->`` has this tolerance for all of its numbers instead. Whitespace and the lengths of rules
are not compared, and ``...`` stands for any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NUMBER = r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
WHOLE_NUMBER = rf"(?<![\w.])(?:{NUMBER})(?!\w)(?!\.\d)(?!\.\.\.)"
"""In what a page says: not a part of a name, and not the beginning of ``2.48...``."""
RULE = r"[-─═=]{4,}"
TOKEN = re.compile(
    rf"(?P<rule>{RULE})|(?P<any>\.\.\.)|(?P<space>\s+)|(?P<number>{WHOLE_NUMBER})|(?P<text>.)", re.DOTALL
)
WITH_ERROR = re.compile(rf"(?<![\w.])({NUMBER}) ?± ?({NUMBER})|\(({NUMBER}) ?± ?({NUMBER})\)")
INTERVAL = re.compile(rf"(?<![\w.])({NUMBER})\s+\S+\s+\[({NUMBER}), ({NUMBER})\]")
STANDARD_ERRORS = 0.2
BESIDE_ESTIMATES = 0.05
OTHERWISE = 1e-3


def difference(expected: str, printed: str, within: float | None = None) -> str | None:
    """What differs, in words, or None where nothing does."""
    expected = expected.strip()
    found = re.fullmatch(pattern(expected), printed.strip(), re.DOTALL)
    if found is None:
        return "the texts differ"
    for (text, allowed), other in zip(tolerances(expected, within), found.groups(), strict=True):
        if not abs(value(other) - value(text)) <= allowed:
            return f"{other} is printed for {text}, of which it may be {allowed:.2g} away"
    return None


def pattern(expected: str) -> str:
    """A regular expression for what may be printed, with a group for each number."""
    forms = {"rule": RULE, "any": ".*?", "space": r"\s+", "number": rf"({NUMBER})(?!\w)"}
    return "".join(forms.get(token.lastgroup or "", re.escape(token[0])) for token in TOKEN.finditer(expected))


def tolerances(expected: str, within: float | None) -> Iterator[tuple[str, float]]:
    """Each number of a text, and how far another one may be from it."""
    special = dict(estimates(expected))
    for token in TOKEN.finditer(expected):
        if token.lastgroup != "number":
            continue
        text, size = token[0], abs(value(token[0]))
        if within is not None:
            yield text, within * size + last_digit(text)
        elif token.start() in special:
            yield text, special[token.start()] + last_digit(text)
        else:
            yield text, OTHERWISE * size + last_digit(text) if is_decimal(text) else 0.0


def estimates(expected: str) -> Iterator[tuple[int, float]]:
    """(position, tolerance) of estimates, of their errors and intervals, and of all else in the lines of intervals."""
    for line in re.finditer(r".+", expected):
        found = INTERVAL.search(line[0])
        if found is None:
            continue
        for number in re.finditer(WHOLE_NUMBER, line[0]):
            yield line.start() + number.start(), BESIDE_ESTIMATES * abs(value(number[0]))
        error = (value(found[3]) - value(found[2])) / 4
        for group in (1, 2, 3):
            yield line.start() + found.start(group), STANDARD_ERRORS * error
    for found in WITH_ERROR.finditer(expected):
        first, second = (1, 2) if found[1] else (3, 4)
        error = value(found[second])
        yield found.start(first), STANDARD_ERRORS * error
        yield found.start(second), BESIDE_ESTIMATES * error


def value(text: str) -> float:
    return float(text.replace("−", "-"))


def is_decimal(text: str) -> bool:
    return "." in text or "e" in text


def last_digit(text: str) -> float:
    """One unit of it, a little more for the rounding of this number."""
    digits, _, exponent = text.partition("e")
    return 1.001 * 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
