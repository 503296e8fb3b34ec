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
    clocks: tuple[Callable[[], float], ...] = (time.perf_counter,),
) -> tuple[float, Answer]:
    """Smallest time of one call, by any of the clocks, over rounds that fill about ``seconds``; and the last answer."""
    best, spent, rounds = float("inf"), 0.0, 0
    while spent < seconds or rounds < at_least:
        begin = [clock() for clock in clocks]
        answer = function()
        took = min(clock() - then for clock, then in zip(clocks, begin, strict=True))
        best, spent, rounds = min(best, took), spent + took, rounds + 1
    return best, answer
