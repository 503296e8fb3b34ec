"""What every optimizer is given and gives: a problem in scaled unknowns ξ, and an outcome with its trace."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.problem import Evaluation, Problem

Progress = Callable[[int, float], None]
ELSEWHERE = (0.5, 0.8, 1.25, 2.0)
"""Multiples of a guess at which a refusal is tried again."""
NUMBERS = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?")


@dataclass(frozen=True)
class Outcome:
    """Where an optimizer stopped and why."""

    evaluation: Evaluation
    stopped_well: bool
    """The optimizer's own criterion was met; ``convergence.py`` decides whether that is a minimum."""
    reason: str
    trace: tuple[dict[str, float], ...]
    joins: bool = True
    """Whether the pieces of a record that was cut fit together."""


def arrived(outcome: Outcome, offset: float) -> str:
    """Why a point that is a minimum is one, whatever ended the search there."""
    return outcome.reason if outcome.stopped_well else f"{max(offset, 1e-16):.1g} standard errors from the minimum"


@dataclass
class Search:
    """A problem in ξ with a memory of its last evaluation, a trace and a progress callback."""

    problem: Problem
    progress: Progress | None = None
    trace: list[dict[str, float]] = field(default_factory=list)
    best: Evaluation | None = None
    last: Evaluation | None = None

    def __post_init__(self) -> None:
        self.begin = time.perf_counter()

    @property
    def guess(self) -> np.ndarray:
        """ξ to start from."""
        return self.problem.inner(self.problem.guess)

    def where(self, evaluation: Evaluation) -> np.ndarray:
        """ξ of an evaluation."""
        return self.problem.inner(evaluation.theta)

    def first(self) -> Evaluation:
        """The evaluation at the guess; a failure there leaves nothing to start from."""
        evaluation = self.at(self.guess)
        if not evaluation.completed:
            values = ", ".join(f"{u.name} = {u.guess:g}" for u in self.problem.unknowns)
            raise EstimationError(
                f"The model cannot be simulated at the guess ({values}): {evaluation.failure} {self._what_next()}"
            )
        self._learn_sizes(evaluation)
        return evaluation

    def _what_next(self) -> str:
        """Another guess is worth trying where the model can be simulated elsewhere, or fails in another way there."""
        failed = self.last.failure if self.last is not None else ""
        for factor in ELSEWHERE:
            there = self.problem.evaluate(self._elsewhere(factor), sensitive=False)
            if there.completed or NUMBERS.sub("", there.failure) != NUMBERS.sub("", failed):
                return "Give other values by guess=, or let gr.multistart find a start."
        tried = f"{len(ELSEWHERE)} other values of the unknowns, half to twice the guess,"
        return f"The same happens at {tried} so that another guess is not likely to help: look at what is said above."

    def _elsewhere(self, factor: float) -> np.ndarray:
        lower, upper = self.problem.bounds
        sizes = np.array([u.size for u in self.problem.unknowns])
        guess = self.problem.guess
        moved = np.where(guess != 0, factor * guess, np.log(factor) * sizes)
        return np.clip(moved, lower, upper)

    def _learn_sizes(self, evaluation: Evaluation) -> None:
        """A guess of zero, or near it, tells no magnitude: unknowns are at least as large as their standard errors."""
        bend = np.diag(evaluation.information)
        if len(bend) != len(self.problem.unknowns):
            return
        self.problem.unknowns = tuple(
            u if u.reach or u.logarithmic or u.logit or not (np.isfinite(b) and b > 0)
            else replace(u, reach=min(float(1 / np.sqrt(b)), u.upper - u.lower))
            for u, b in zip(self.problem.unknowns, bend, strict=True)
        )  # fmt: skip

    def at(self, xi: np.ndarray, *, sensitive: bool = True) -> Evaluation:
        """The evaluation at ξ, remembered."""
        if self.last is not None and self.stands(self.last, xi) and (self.last.jacobian.size or not sensitive):
            return self.last
        self.last = self.problem.evaluate(self.problem.outer(xi), sensitive=sensitive)
        if self.last.completed and (self.best is None or self.last.objective < self.best.objective):
            self.best = self.last
            self.problem.reached = self.last.theta
            self._record(self.last)
        return self.last

    def stands(self, evaluation: Evaluation, xi: np.ndarray) -> bool:
        """Whether an evaluation belongs to ξ."""
        return np.array_equal(evaluation.theta, self.problem.outer(xi))

    def settle(self, xi: np.ndarray) -> None:
        """Make ξ the answer (a robust loss may prefer a point that has not the smallest sum of squares)."""
        if self.best is None or not self.stands(self.best, xi):
            final = self.at(xi)
            self.best = final if final.completed else self.best

    def jacobian(self, evaluation: Evaluation) -> np.ndarray:
        """∂r/∂ξ."""
        return np.asarray(evaluation.jacobian * self.problem.slopes(evaluation.theta))

    def inner_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self.problem.bounds
        inner = [
            (
                u.inner(a) if np.isfinite(a) and not (u.logarithmic and a <= 0) and not u.logit else -np.inf,
                u.inner(b) if np.isfinite(b) and not u.logit else np.inf,
            )
            for u, a, b in zip(self.problem.unknowns, lower, upper, strict=True)
        ]
        return np.array([i[0] for i in inner]), np.array([i[1] for i in inner])

    def finish(self, stopped_well: bool, reason: str) -> Outcome:
        assert self.best is not None
        evaluation = self.best
        if not evaluation.jacobian.size:
            evaluation = self.problem.evaluate(evaluation.theta)
        return Outcome(evaluation, stopped_well, reason, tuple(self.trace))

    def _record(self, evaluation: Evaluation) -> None:
        row = {"evaluation": float(self.problem.evaluations), "objective": evaluation.objective}
        row.update({u.name: float(v) for u, v in zip(self.problem.unknowns, evaluation.theta, strict=True)})
        row["seconds"] = time.perf_counter() - self.begin
        self.trace.append(row)
        if self.progress is not None:
            self.progress(self.problem.evaluations, evaluation.objective)
