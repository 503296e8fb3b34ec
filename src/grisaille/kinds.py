"""Kinds of things that arguments take: each is a test and the words for what passes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

MAX_COUNT = 2**53
"""Whole numbers above it are no counts."""


@dataclass(frozen=True)
class Kind:
    """What an argument takes.

    words : after "give", as in "a number between 0 and 1"
    accepts : whether a value is of this kind
    """

    words: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(f"{self.words} or {other.words}", lambda value: self.accepts(value) or other.accepts(value))


def number(words: str, holds: Callable[[float], bool]) -> Kind:
    """Return real numbers for which something holds; NaN and truth values are none."""
    return Kind(words, lambda value: is_number(value) and holds(float(value)))


def whole(least: int, words: str = "") -> Kind:
    """Return whole numbers from a least one."""
    said = words or ("a whole number above zero" if least == 1 else f"a whole number from {least}")
    return Kind(said, lambda value: is_whole(value) and least <= value <= MAX_COUNT)


def one_of(*choices: str) -> Kind:
    """Return one of a few texts."""
    said = " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))
    return Kind(said, lambda value: isinstance(value, str) and value in choices)


def of_ours(words: str, *classes: str) -> Kind:
    """Return instances of classes of the package, by name: nothing has to be imported to know that a value is none."""
    return Kind(words, lambda value: is_ours(value, *classes))


def listed(words: str, item: Callable[[Any], bool], *, generated: bool = True) -> Kind:
    """Return lists, arrays and other collections of one kind of item; texts and dicts are none.

    generated : whether a generator will do, which cannot be looked into
    """

    def accepts(value: object) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or is_table(value):
            return False
        if is_ours(value, "Fitted", "ExperimentContent", "Expression", "Model"):
            return False
        if hasattr(value, "__len__"):
            return getattr(value, "ndim", 1) == 1 and all(item(one) for one in value)
        return generated

    return Kind(words, accepts)


def by_name(words: str, item: Callable[[Any], bool] = lambda value: True) -> Kind:
    """Return dicts from names to one kind of item; a Series, too."""

    def accepts(value: Any) -> bool:
        if not (isinstance(value, Mapping) or type(value).__name__ == "Series"):
            return False
        return all(is_name(name) and item(one) for name, one in value.items())

    return Kind(words, accepts)


def is_number(value: object) -> bool:
    """Return whether a value is one real number."""
    if isinstance(value, bool | np.bool_ | str | bytes) or not hasattr(value, "__float__"):
        return False
    if getattr(value, "ndim", 0) != 0 or type(value).__name__ in ("Series", "DataFrame"):
        return False
    try:
        return float(value) == float(value)
    except (TypeError, ValueError, OverflowError):
        return False


def is_whole(value: object) -> bool:
    """Return whether a value is one whole number, not a truth value or a float that happens to be one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_ours(value: object, *classes: str) -> bool:
    """Return whether a value is an instance of one of these classes of the package."""
    return any(c.__name__ in classes and c.__module__.startswith("grisaille.") for c in type(value).__mro__)


def is_table(value: object) -> bool:
    """Return whether a value is a frame or a dataset."""
    return type(value).__name__ in ("DataFrame", "Dataset")


def is_name(value: object) -> bool:
    """Return whether a value can stand for a member of a model: a text, or the member itself."""
    return isinstance(value, str) or is_ours(value, "Expression", "SymbolArray", "Labelled")


def is_text(value: object) -> bool:
    """Return whether a value is a text."""
    return isinstance(value, str)


def is_path(value: object) -> bool:
    """Return whether a value can name a file."""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and bool(value) and "\0" not in value)


def is_values(value: object) -> bool:
    """Return a number, or an array of them for a vector."""
    if is_number(value):
        return True
    if not isinstance(value, list | tuple | np.ndarray):
        return False
    return all(map(is_values, value)) and len(value) > 0


NOTHING = Kind("None", lambda value: value is None)
ANYTHING = Kind("anything", lambda value: True)
"""For arguments that what reads them refuses in words of its own."""
YES_NO = Kind("True or False", lambda value: isinstance(value, bool | np.bool_))
TEXT = Kind("a text", is_text)
PATH = Kind("the name of a file or folder", is_path)
FRACTION = number("a number between 0 and 1", lambda value: 0 < value < 1)
POSITIVE = number("a number above zero", lambda value: 0 < value and isfinite(value))
COUNT = whole(1)
SEED = Kind("a whole number from 0", lambda value: is_whole(value) and 0 <= value < 2**64)
NAMES = listed("a list of names", is_name) | Kind("one name", is_text)
VALUES = by_name("a dict of numbers by name", is_values)
DICT = by_name("a dict by name")
MODEL = of_ours("an instance of a gr.Model subclass", "Model")
FIT = of_ours("a fit, as gr.fit gives it", "Fitted")
EXPERIMENT = of_ours("a gr.Experiment", "ExperimentContent")


def shown(value: object) -> str:
    """Return a value in a sentence: as it is where that is short, otherwise what it is."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, str | bytes | bool | int | float | complex | np.generic):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}…"
    if isinstance(value, list | tuple | set | dict):
        text = repr(value)
        if len(text) <= 60 and "object at 0x" not in text:
            return text
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
