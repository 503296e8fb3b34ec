"""Built once, kept while used."""

from __future__ import annotations

import threading
import time

from grisaille.cache import Cache


def test_the_least_recently_used_is_forgotten():
    memo: Cache[str] = Cache(limit=2)
    built: list[str] = []

    def get(key: str) -> str:
        return memo.get(key, lambda: built.append(key) or key)

    for key in "abacab":
        assert get(key) == key
    assert built == ["a", "b", "c", "b"]


def test_two_threads_build_once():
    memo: Cache[int] = Cache()
    built: list[int] = []

    def build() -> int:
        time.sleep(0.02)
        built.append(1)
        return len(built)

    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(memo.get("key", build))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [1] and answers == [1, 1, 1]
