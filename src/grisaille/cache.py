"""The one way to keep what is costly to make: by key, made once, bounded, safe in threads.

A key says by content what a value depends on (texts, numbers, a digest), or names an object that does not change
(``IdentityKey``). While one thread makes a value, others that ask for the same key wait for it; other keys are not
held up.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
T = TypeVar("T")


class IdentityKey:
    """An object as a key: equal to itself only, and alive as long as the key is."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class Cache(Generic[Value]):
    """Values by key; the least recently used are forgotten.

    limit : values that are kept, as many as there are keys where it is None
    """

    def __init__(self, limit: int | None = 64) -> None:
        self.limit = limit
        self.made = 0
        """How many values were made so far."""
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now where there is none; an error of ``make`` is raised and not kept."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
            else:
                self._entries.move_to_end(key)
        if not entry.is_made:
            self._fill(key, entry, make)
        found: Value = entry.value
        return found

    def peek(self, key: Hashable) -> Value | None:
        """Return the value of a key if it is there."""
        with self._lock:
            entry = self._entries.get(key)
        return entry.value if entry is not None and entry.is_made else None

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._entries.clear()

    def _fill(self, key: Hashable, entry: _Entry, make: Callable[[], Value]) -> None:
        with entry.lock:
            if entry.is_made:
                return
            try:
                entry.value = make()
            except BaseException:
                with self._lock:
                    if self._entries.get(key) is entry:
                        del self._entries[key]
                raise
            entry.is_made = True
        with self._lock:
            self.made += 1
            self._forget()

    def _forget(self) -> None:
        """Drop the oldest values beyond the limit; what is being made stays."""
        if self.limit is None or len(self._entries) <= self.limit:
            return
        oldest = [key for key, entry in self._entries.items() if entry.is_made]
        for key in oldest[: len(self._entries) - self.limit]:
            del self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.limit,)


class LastValues:
    """Of each kind of value the last one, kept until it is asked for with another key."""

    def __init__(self) -> None:
        self._kinds: Cache[Cache[Any]] = Cache(256)

    def get(self, kind: Hashable, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of this kind, made anew where the key is another one."""
        found: T = self._kinds.get(kind, lambda: Cache(1)).get(key, make)
        return found


class _Entry:
    """One value, and who may make it."""

    __slots__ = ("is_made", "lock", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.is_made = False
        self.lock = threading.RLock()
