"""Shows the progress of a fit while it runs, and says so where it will take long.

The time that is left is evaluations still to come, as many as the estimator takes usually (``Effort.cost``), times
the seconds of one, which grow when derivatives come in: the mean of all so far or of the last few, whichever is longer.
A fit that is over soon says nothing at all.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

from grisaille.estimation.effort.cost import Cost, explain_cost, format_duration

FIRST_LINE_SECONDS = 2.0
"""Seconds before anything is shown."""
LONG_FIT_SECONDS = 30.0
"""Seconds from which on a fit is told to be long."""
EARLY_SECONDS = 8.0
"""Seconds after which a fit says what is known of its cost where not even the first evaluation has ended."""
FEW, SLOW = 3, 1.0
"""Evaluations that tell how long one takes, and seconds of one from which on it tells alone."""
OFTEN, SELDOM = 0.2, 10.0
"""Seconds between lines, on a terminal and elsewhere."""


class ProgressLine:
    """Listens to a search.

    live : whether a line is written over and over, as on a terminal; otherwise lines come one below the other
    lines : whether there are any; without them only a long fit is told
    long : seconds from which on a fit is told to be long
    """

    def __init__(
        self,
        cost: Callable[[], Cost],
        stream: TextIO,
        *,
        live: bool,
        lines: bool = True,
        long: float = LONG_FIT_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.stream, self.live, self.lines, self.long, self.clock = stream, live, lines, long, clock
        self._ask = cost
        self._cost: Cost | None = None
        self.begin = self.last = clock()
        self.marks: deque[tuple[int, float]] = deque(maxlen=FEW + 1)
        self.first: tuple[int, float] | None = None
        self.objective: float | None = None
        self.is_told, self.width = False, 0
        self._early: threading.Timer | None = None

    def speak_early(self, cost: Callable[[], Cost], seconds: float = EARLY_SECONDS) -> None:
        """Say what a search costs after so many seconds, if its first evaluation has not ended by then.

        cost : asked while the search runs, so it must compute nothing
        """
        self._early = threading.Timer(seconds, self._say_early, (cost, seconds))
        self._early.daemon = True
        self._early.start()

    def _say_early(self, cost: Callable[[], Cost], seconds: float) -> None:
        if self.first is not None:
            return
        expected = cost()
        self._write(
            f"The first evaluation has taken more than {format_duration(seconds)}, with all that precedes it, and this "
            f"search takes about {expected.evaluations} of them{explain_cost(expected)} Ctrl-C ends it.",
            stays=True,
        )

    def __call__(self, evaluations: int, objective: float) -> None:
        """A better point."""
        self.objective = objective
        self.counted(evaluations)

    def counted(self, evaluations: int) -> None:
        """So many evaluations are done."""
        now = self.clock()
        if self.first is None:
            self.first = evaluations, now
        if not self.marks or evaluations > self.marks[-1][0]:
            self.marks.append((evaluations, now))
        total = self._total(evaluations, now)
        if not self.is_told and total is not None and total > self.long:
            self.is_told = True
            self._write(self._sentence(total), stays=True)
        if self.lines and now - self.begin > FIRST_LINE_SECONDS and now - self.last >= (OFTEN if self.live else SELDOM):
            self.last = now
            self._write(self._line(evaluations, total, now), stays=not self.live)

    def finish(self) -> None:
        """Leave nothing behind."""
        if self._early is not None:
            self._early.cancel()
        if self.live and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0

    @property
    def cost(self) -> Cost:
        """Return the expected cost, asked for once, when the search has begun."""
        if self._cost is None:
            self._cost = self._ask()
        return self._cost

    def _rate(self) -> float | None:
        """Return seconds of an evaluation; what came before the first is preparation.

        One evaluation after it tells where it takes seconds, several where they are short.
        """
        if self.first is None or len(self.marks) < 2:
            return None
        done, now = self.marks[-1]
        rate = max((now - at) / (done - k) for k, at in (self.first, self.marks[0]) if done > k)
        return rate if len(self.marks) > FEW or rate >= SLOW else None

    def _total(self, evaluations: int, now: float) -> float | None:
        """Seconds from begin to end."""
        rate = self._rate()
        return None if rate is None else now - self.begin + rate * max(self.cost.evaluations - evaluations, 0)

    def _sentence(self, total: float) -> str:
        c, rate = self.cost, self._rate()
        each = "" if rate is None else f": about {c.evaluations} evaluations of {format_duration(rate)} each"
        return (
            f"This fit will take about {format_duration(total)}{each}{explain_cost(c)} Ctrl-C keeps what it has "
            "reached."
        )

    def _line(self, evaluations: int, total: float | None, now: float) -> str:
        usual, spent = self.cost.evaluations, now - self.begin
        of = f" of about {usual}" if evaluations < usual else ""
        reached = "" if self.objective is None else f", objective {self.objective:.8g}"
        left = f", about {format_duration(total - spent)} left" if total is not None and evaluations < usual else ""
        return f"evaluation {evaluations}{of}{reached}, {format_duration(spent)}{left}"

    def _write(self, text: str, *, stays: bool) -> None:
        over = "\r" if self.live else ""
        self.stream.write(over + text.ljust(self.width if self.live else 0) + ("\n" if stays else ""))
        self.stream.flush()
        self.width = 0 if stays else max(len(text), self.width)


def progress_reporter(cost: Callable[[], Cost], wanted: bool | None) -> ProgressLine:
    """As ``progress`` says: lines and a sentence on what they will cost, or (None) lines on a terminal and a long fit's
    sentence there and in a notebook."""
    long = FIRST_LINE_SECONDS if wanted else LONG_FIT_SECONDS
    return ProgressLine(cost, sys.stderr, live=_is_terminal(), lines=bool(wanted) or _is_terminal(), long=long)


def say_beforehand(text: str) -> None:
    """Print what is known to make a fit long before it begins."""
    if text:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def is_read(wanted: bool | None) -> bool:
    """Return whether anything is shown at all."""
    return wanted is not False and (bool(wanted) or _is_terminal() or _in_notebook())


def _is_terminal() -> bool:
    return bool(getattr(sys.stderr, "isatty", lambda: False)())


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
