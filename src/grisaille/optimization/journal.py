"""The journal of one estimation: what all its searches have done and reached; it outlives an interruption."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grisaille import interrupts
from grisaille.bound_experiment.unknown import Unknown
from grisaille.optimization.criterion import Evaluated

Progress = Callable[[int, float], None]


@dataclass
class SearchJournal:
    """Counts, failures and better points; called as a progress report it hands on."""

    report: Progress | None = None
    watch: Callable[[int], None] | None = None
    """Told after every evaluation how many there were."""
    evaluations: int = 0
    steps: int = 0
    """That integrators have taken, as far as they are counted."""
    failures: list[str] = field(default_factory=list)
    trace: list[dict[str, float]] = field(default_factory=list)
    reached: np.ndarray | None = None
    """θ of the best point so far."""
    kept: object = None
    """What else an estimator wants to have of it after an interruption."""
    begin: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, progress: Progress | None) -> SearchJournal:
        """Return the journal that was given as a report, or a new one."""
        return progress if isinstance(progress, SearchJournal) else cls(progress)

    def __call__(self, evaluations: int, objective: float) -> None:
        if self.report is not None:
            self.report(evaluations, objective)

    def count(self, evaluation: Evaluated, *, quietly: bool = False) -> None:
        """Count one more evaluation; ``quietly``: its failure is expected."""
        self.add(evaluation.cost)
        self.steps += evaluation.steps
        if not evaluation.completed and not quietly:
            self.failures.append(evaluation.failure)

    def add(self, evaluations: int = 1) -> None:
        """Count so many more evaluations; an interruption that was lost on the way is raised here."""
        interrupts.check()
        self.evaluations += evaluations
        if self.watch is not None:
            self.watch(self.evaluations)

    def reach(self, theta: np.ndarray) -> None:
        """Remember a point as the best so far."""
        self.reached = theta

    def step(self, theta: np.ndarray) -> None:
        """Record one more iteration, to a better point."""
        self.add()
        self.reached = theta

    def accept(self, unknowns: Sequence[Unknown], theta: np.ndarray, objective: float, **more: float) -> None:
        """Record a better point."""
        self.reached = theta
        row = {"evaluation": float(self.evaluations), "objective": objective, **more}
        row.update({u.name: float(v) for u, v in zip(unknowns, theta, strict=True)})
        row["seconds"] = self.seconds
        self.trace.append(row)
        if self.report is not None:
            self.report(self.evaluations, objective)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begin
