"""Time of a call: the best of several rounds, because everything that disturbs a run makes it longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def best_of(
    function: Callable[[], Answer],
    seconds: float,
    at_least: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, Answer]:
    """Smallest time of one call over rounds that fill about ``seconds``, and what the last call gave."""
    best, spent, rounds = float("inf"), 0.0, 0
    while spent < seconds or rounds < at_least:
        begin = clock()
        answer = function()
        took = clock() - begin
        best, spent, rounds = min(best, took), spent + took, rounds + 1
    return best, answer
