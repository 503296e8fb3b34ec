"""The interface of all optimizers: they get a criterion in scaled unknowns ξ and give an outcome with its trace.

The search owns what changes on its way: the unknowns with the sizes that were learnt, the best point, how many
evaluations are left. The criterion is only asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np

from grisaille.bound_experiment.unknown import Unknown, describe_start
from grisaille.errors import EstimationError
from grisaille.numerics.quadratic import MIN_OBJECTIVE_CHANGE, SquaresQuadratic
from grisaille.optimization.criterion import Criterion, E
from grisaille.optimization.journal import SearchJournal
from grisaille.optimization.scaled import Scaled

GUESS_FACTORS = (0.5, 0.8, 1.25, 2.0)
"""Multiples of a guess at which a refusal is tried again."""
FAINT_SENSITIVITY = 1e-6
"""Of the clearest: unknowns that are fainter may be dead."""
NUMBER_PATTERN = re.compile(r"[-+]?[0-9.]+(?:e[-+]?[0-9]+)?")
LIMIT_STATUS = "the limit of evaluations was reached"
MIN_STEPS = 5_000_000
"""Of integrators, that a search may take however short its first simulation was."""
STALLED_STATUS = "the objective hardly falls any more, however many evaluations are made"
STALL_EVALUATIONS, STALL_PER_UNKNOWN = 100, 20
"""Evaluations, and further ones for each unknown, over which a search must gain something."""
STALL_GAIN = 0.01
"""What counts as something: of the objective, in units of the variance of its residuals, as of a log-likelihood."""


@dataclass(frozen=True)
class SearchOutcome(Generic[E]):
    """The point at which an optimizer stopped, and why."""

    evaluation: E
    stopped_well: bool
    """The optimizer's own criterion was met; ``convergence.py`` decides whether that is a minimum."""
    reason: str
    joins: bool = True
    """Whether the pieces of a record that was cut fit together."""
    settled: bool = True
    """Whether what is estimated in turn with the unknowns (noise levels) no longer moves."""
    edge: float | None = None
    """Standard errors from a minimum in an edge of the criterion, where the point lies in one."""
    way: str = ""
    """How it came there, where another search had to go on."""


def arrival_reason(outcome: SearchOutcome[E], offset: float) -> str:
    """Return why a point that is a minimum is one, whatever ended the search there."""
    way = f" ({outcome.way})" if outcome.way else ""
    if outcome.edge is not None:
        return f"in an edge of the criterion, {outcome.edge:.1g} standard errors from the minimum there{way}"
    near = f"{max(offset, 1e-16):.1g} standard errors from the minimum"
    return (outcome.reason if outcome.stopped_well else near) + way


@dataclass(frozen=True, eq=False)
class CurvatureAtPoint:
    """The Hessian at a point."""

    matrix: np.ndarray
    """∂²f/∂ξ²; zero for unknowns that were not free."""
    edges: tuple[np.ndarray, ...] = ()
    """Steps in ξ that led to where the criterion has no value."""


@dataclass
class Search(Scaled, Generic[E]):
    """A criterion in ξ with a memory of its best and its last evaluation.

    most : evaluations in all, those before this search included
    most_steps : of integrators, likewise; 0 where that is found at the first evaluation, so that simulations which
        become longer and longer end a search as many evaluations do
    may_stall : False where a search ends that gains next to nothing
    find_endless : says why the criterion falls without end from a point on, so that no further evaluation is made
    """

    criterion: Criterion[E]
    journal: SearchJournal = field(default_factory=SearchJournal)
    most: int = 10**9
    most_steps: int = 10**18
    may_stall: bool = True
    find_endless: Callable[[E], str] | None = None
    gains: list[tuple[int, float]] = field(default_factory=list)
    """Evaluations and objective at every better point since the search began."""
    best: E | None = None
    last: E | None = None
    endless: str = ""
    """What that said of the best point."""
    clearest: float = 0.0
    """How clearly the unknown was seen that was seen best, anywhere on the way."""
    curvatures: dict[object, CurvatureAtPoint] = field(default_factory=dict)
    """Formed before, by point and by what was free (``hessian``)."""

    def __post_init__(self) -> None:
        self.unknowns: tuple[Unknown, ...] = self.criterion.unknowns

    @property
    def evaluations(self) -> int:
        return self.journal.evaluations

    @property
    def left(self) -> int:
        """Evaluations that may still be made."""
        is_spent = 0 < self.most_steps <= self.journal.steps
        return 0 if is_spent or self.endless else max(self.most - self.journal.evaluations, 0)

    @property
    def has_stalled(self) -> bool:
        """Return whether many evaluations have gained next to nothing: a valley that falls towards infinity, rough
        ground.
        """
        if self.may_stall or self.best is None:
            return False
        n = len(self.unknowns)
        begin = self.journal.evaluations - STALL_EVALUATIONS - STALL_PER_UNKNOWN * n
        before = [objective for count, objective in self.gains if count <= begin]
        level = 2 * self.best.objective / max(len(self.best.residuals) - n, 1)
        return bool(before) and before[-1] - self.best.objective <= STALL_GAIN * level

    @property
    def lowest(self) -> E:
        """Return the best point of a search that has begun."""
        assert self.best is not None
        return self.best

    @property
    def start(self) -> np.ndarray:
        """ξ to start from."""
        return self.inner(self.guess)

    def where(self, evaluation: E) -> np.ndarray:
        """Return ξ of an evaluation."""
        return self.inner(evaluation.theta)

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True, quietly: bool = False) -> E:
        """Return the criterion at θ, counted; ``quietly``: a failure is expected."""
        found = self.criterion.evaluate(theta, sensitive=sensitive)
        self.journal.count(found, quietly=quietly)
        return found

    def slope_at(self, theta: np.ndarray) -> np.ndarray | None:
        """Return ∇f in ξ alone, counted; None where the criterion has no value."""
        self.journal.add()
        value, slope = self.criterion.gradient(theta)
        return slope * self.slopes(theta) if np.isfinite(value) and np.isfinite(slope).all() else None

    def restart(self, theta: np.ndarray, criterion: Criterion[E] | None = None) -> None:
        """Go on from a point, with another criterion where one is given."""
        self.criterion = criterion or self.criterion
        self.go_on_from(theta)
        self.best = self.last = None
        self.endless = ""
        self.gains.clear()
        self.curvatures.clear()

    def first(self) -> E:
        """Return the evaluation at the guess; a failure there leaves nothing to start from."""
        evaluation = self.at(self.start)
        if not evaluation.completed:
            failure = evaluation.failure.rstrip(".")
            raise EstimationError(
                f"The model cannot be simulated at {describe_start(self.unknowns)}: {failure}. {self._what_next()}"
            )
        if not self.most_steps:
            self.most_steps = self.journal.steps + max(MIN_STEPS, self.most * evaluation.steps)
        self.learn_sizes(evaluation)
        return evaluation

    def _what_next(self) -> str:
        """Advise another guess where the model can be simulated elsewhere, or fails in another way there."""
        if any(u.is_reached for u in self.unknowns):
            return "Give bounds= that keep the search away from there, or begin elsewhere, guess=."
        failed = self.last.failure if self.last is not None else ""
        for factor in GUESS_FACTORS:
            there = self.evaluate(self._elsewhere(factor), sensitive=False)
            if there.completed or NUMBER_PATTERN.sub("", there.failure) != NUMBER_PATTERN.sub("", failed):
                return "Give other values by guess=, or let gr.multistart find a start."
        tried = f"{len(GUESS_FACTORS)} other values of the unknowns, half to twice the guess,"
        return f"The same happens at {tried} so that another guess is not likely to help: look at what is said above."

    def _elsewhere(self, factor: float) -> np.ndarray:
        sizes, guess = np.array([u.size for u in self.unknowns]), self.guess
        return np.clip(np.where(guess != 0, factor * guess, np.log(factor) * sizes), *self.bounds)

    def learn_sizes(self, evaluation: E) -> None:
        """Set the sizes of unknowns to at least their standard errors: a guess of zero, or near it, gives no
        magnitude.
        """
        bend = np.diag(evaluation.information)
        if len(bend) != len(self.unknowns):
            return
        self.unknowns = tuple(
            u if u.reach or u.logarithmic or u.logit or not (np.isfinite(b) and b > 0)
            else replace(u, reach=min(float(1 / np.sqrt(b)), u.upper - u.lower))
            for u, b in zip(self.unknowns, bend, strict=True)
        )  # fmt: skip

    def at(self, xi: np.ndarray, *, sensitive: bool = True) -> E:
        """Return the evaluation at ξ, remembered."""
        if self.last is not None and self.belongs_to(self.last, xi) and (self.last.jacobian.size or not sensitive):
            return self.last
        return self._kept(self._at(xi, sensitive))

    def _at(self, xi: np.ndarray, sensitive: bool) -> E:
        return self.evaluate(self.outer(xi), sensitive=sensitive)

    def _kept(self, evaluation: E) -> E:
        self.last = evaluation
        if evaluation.completed and (self.best is None or evaluation.objective < self.best.objective):
            self.best = evaluation
            self.endless = "" if self.find_endless is None else self.find_endless(evaluation)
            self.gains.append((self.journal.evaluations, evaluation.objective))
            self.journal.accept(self.unknowns, evaluation.theta, evaluation.objective)
        return evaluation

    def belongs_to(self, evaluation: E, xi: np.ndarray) -> bool:
        """Return whether an evaluation belongs to ξ."""
        return np.array_equal(evaluation.theta, self.outer(xi))

    def settle(self, xi: np.ndarray) -> None:
        """Make ξ the answer (a robust loss may prefer a point that has not the smallest sum of squares)."""
        if self.best is None or not self.belongs_to(self.best, xi):
            final = self.at(xi)
            self.best = final if final.completed else self.best

    def jacobian(self, evaluation: E) -> np.ndarray:
        """Return ∂r/∂ξ."""
        return np.asarray(evaluation.jacobian * self.slopes(evaluation.theta))

    def alive(self, seen: np.ndarray) -> np.ndarray:
        """Return unknowns on which the criterion depends by more than its scatter, here or at earlier points.

        Far from a minimum all may be faint: then none is dead.

        seen : how clearly each is (``Quadratic.seen``)
        """
        self.clearest = max(self.clearest, float(seen.max(initial=0.0)))
        return np.asarray(seen > min(MIN_OBJECTIVE_CHANGE, FAINT_SENSITIVITY * self.clearest))

    def moving(self, evaluation: E) -> np.ndarray:
        """Return unknowns that the residuals of an evaluation move with."""
        J = self.jacobian(evaluation)
        return self.alive(SquaresQuadratic(J, evaluation.residuals, np.ones(J.shape[1])).seen)

    def model(self, evaluation: E) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and information in ξ."""
        slopes = self.slopes(evaluation.theta)
        return evaluation.gradient * slopes, evaluation.information * np.outer(slopes, slopes)

    def finish(self, stopped_well: bool, reason: str) -> SearchOutcome[E]:
        evaluation = self.lowest
        if not evaluation.jacobian.size:
            evaluation = self.evaluate(evaluation.theta)
        if self.endless:
            reason = self.endless
        elif reason == LIMIT_STATUS and 0 < self.most_steps <= self.journal.steps:
            reason = f"simulations became far longer than at the guess, {self.journal.steps:.2g} steps in all"
        return SearchOutcome(evaluation, stopped_well, reason)
