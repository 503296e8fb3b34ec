"""What was made last, kept until what it was made of changes.

An ensemble is simulated at one θ after another; most of what it needs depends on a few of the numbers, or on none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Same:
    """An object as a key: equal to itself only, and alive as long as the key is."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class Remembered:
    """The last answer to each question."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, tuple[object, Any]] = {}

    def get(self, what: Hashable, key: object, make: Callable[[], T]) -> T:
        """The answer to ``what``, made anew where the key is another one."""
        known = self._answers.get(what)
        if known is None or known[0] != key:
            known = self._answers[what] = (key, make())
        found: T = known[1]
        return found
