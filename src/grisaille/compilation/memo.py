"""What was built before in this process: the most recently used, shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Built = TypeVar("Built")


class Memo(Generic[Built]):
    """Builds each key once; a thread that asks for a key under construction waits for it."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._known: OrderedDict[Hashable, Built] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, build: Callable[[], Built]) -> Built:
        with self._lock:
            if key not in self._known:
                self._known[key] = build()
            self._known.move_to_end(key)
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
            return self._known[key]

    def peek(self, key: Hashable) -> Built | None:
        """What was built for the key, if it was."""
        with self._lock:
            return self._known.get(key)

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
