"""How much one text may make: entries of arrays, letters of texts, steps of loops and calls, counted together.

A few lines can ask for more than any computer has: a text that doubles sixty times, loops in loops, functions that call
each other in a tree. What is made while a text is read is counted, and refused beyond a limit, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Unfit(Exception):
    """An operation that its arguments do not allow; whoever evaluates knows the line."""


MAX_ARRAY = 200_000
"""Entries of the largest array that is written out."""
MAX_TEXT = 1_000_000
"""Letters of the longest text that is put together."""
MAX_WORK = 10_000_000
"""Entries, operations of formulas, statements and calls of one text, weighed: a minute of reading, half a gigabyte."""
OPERATION, STATEMENT, COMPONENT, CALL = 2, 3, 8, 40
"""Weights of an operation that is kept in a formula, a statement, a component of a model and a call of a function."""


class _Count:
    """What the text that is being read has made so far."""

    __slots__ = ("spent",)

    def __init__(self) -> None:
        self.spent = 0


_current: ContextVar[_Count | None] = ContextVar("work", default=None)


@contextmanager
def counted() -> Iterator[None]:
    """Count from zero; inside another count, that one goes on."""
    if _current.get() is not None:
        yield
        return
    token = _current.set(_Count())
    try:
        yield
    finally:
        _current.reset(token)


def spend(amount: int) -> None:
    """Count some more, and refuse what would be too much."""
    count = _current.get()
    if count is None:
        return
    count.spent += amount
    if count.spent > MAX_WORK:
        raise Unfit(
            "the text makes more entries of arrays, operations, statements and calls than are read: its loops, "
            "arrays or functions are too large"
        )


def check_entries(count: int, said: str = "") -> None:
    """Refuse an array of too many entries, before it is made."""
    if count > MAX_ARRAY:
        raise Unfit(f"an array of {said or count} entries is too large (at most {MAX_ARRAY})")
    spend(count)


def check_letters(count: int) -> None:
    """Refuse a text of too many letters, before it is made."""
    if count > MAX_TEXT:
        raise Unfit(f"a text of {count} letters is too long (at most {MAX_TEXT})")
    spend(count // 100)
