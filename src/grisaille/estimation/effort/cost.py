"""What a search will cost, as its estimator expects it: for the sentence that a long fit begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grisaille.estimation.problem import EstimationProblem

MANY_SAMPLES = 1000
"""Samples of a record from which on it is worth trying fewer."""
FEWER_SAMPLES = 300
"""How many are tried then."""


LONG_SEARCH_SECONDS = 60.0
"""Seconds of a search from which on a fit says what they were spent on."""


@dataclass(frozen=True)
class Cost:
    """How many evaluations a search usually takes, why one of them takes long, and what would be faster, in words."""

    evaluations: int
    causes: tuple[str, ...] = ()
    faster: tuple[str, ...] = ()


def usual_cost(
    problem: EstimationProblem, evaluations: int, causes: Sequence[str] = (), faster: Sequence[str] = ()
) -> Cost:
    """Return the cost with what every search depends on: the number of samples and the number of unknowns."""
    samples = [len(c.trial.times) for c in problem.cases]
    count, n = len(samples), len(problem.unknowns)
    first = f"{sum(samples)} samples" + (f" in {count} experiments" if count > 1 else "")
    ways = list(faster)
    if max(samples, default=0) >= MANY_SAMPLES:
        longest = max(problem.cases, key=lambda c: len(c.trial.times))
        times = longest.trial.times
        step = float(times[-1] - times[0]) / FEWER_SAMPLES
        ways.append(f"fewer samples for a first look, experiment.resample({step:.2g})")
    return Cost(evaluations, (first, *causes, f"{n} unknown{'s' if n != 1 else ''}"), tuple(ways))


def explain_cost(cost: Cost) -> str:
    """Return why evaluations take long, and what would be faster, as the end of a sentence and another one."""
    causes = f" ({', '.join(cost.causes)})" if cost.causes else ""
    faster = f" Faster: {'; '.join(cost.faster)}." if cost.faster else ""
    return f"{causes}.{faster}"


def duration_note(cost: Cost, evaluations: int, seconds: float) -> str:
    """Return the note of a fit that took long; empty where it did not."""
    if seconds < LONG_SEARCH_SECONDS:
        return ""
    each = f": {evaluations} evaluations of {format_duration(seconds / evaluations)} each" if evaluations else ""
    return f"cost: the search took {format_duration(seconds)}{each}{explain_cost(cost)}"


def format_duration(seconds: float) -> str:
    """Return two digits, in the unit that people say."""
    if seconds >= 5400:
        return f"{seconds / 3600:.2g} h"
    if seconds >= 90:
        return f"{seconds / 60:.2g} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1g} s"
