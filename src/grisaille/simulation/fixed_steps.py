"""The frozen discretisation: steps fixed once, so that results are smooth in parameters and repeat bit by bit.

Steps end on output times and kinks; between them they are equal and at most ``step`` long. Without a given step, the
largest one whose error estimate stays within the tolerance is found by halving. The estimate does not see algebraic
unknowns that nothing feeds back, nor all that lies between the stages of a step (tables, switches): where there are
any, rows must also agree with those of a run under error control, as far as that run is itself accurate: quantities
much smaller than their tolerances never agree closer than that. And a run that fails is tried with shorter steps only
if that one gets through.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.schemes import AUTO
from grisaille.compilation.task import Status, Task
from grisaille.simulation.integration import IntegratorRun, first_choice, run

MAX_HALVINGS = 20
AT_ANY_STEP = (Status.ORDER,)
"""What shorter steps do not change: switches at one instant."""
MIN_TOLD_DIFFERENCE = 1e-4
"""Of what a quantity covers: differences from a run under error control that are said, if they are also as many times
the relative tolerance as the next number."""
MANY_TOLERANCES = 100.0
WITH_JUMPS = 1e-3
"""Steps, of the run, that are short enough where a solution jumps inside one."""
MIN_DISAGREEMENTS = 2
"""Of steps whose error is within the tolerance, after which it is asked how accurate the run under error control is."""
MAX_DISAGREEMENTS = 10
"""After which shorter steps will not change it."""
SHARPER_TOLERANCE = 0.1
"""Factor on the tolerances of a second run under error control, which shows how accurate the first is."""


def choose_step(
    plan: Plan[Kernel], step: float | None, on_slice: Callable[[Task], None] | None = None
) -> IntegratorRun:
    """Run a plan with fixed steps, whose length ``task.fixed_step`` holds then.

    A run whose error is above the tolerance with the shortest steps that ``max_steps`` allows ends with
    ``Status.TOO_MANY_STEPS``; one that differs from the run under error control says by how much in ``task.differs``.
    """
    chosen, times = first_choice(plan), np.asarray(plan.times)
    plan = plan.replace(among=(chosen,))
    if step is not None or times.size < 2:
        return run(plan.replace(fixed_step=step or max(plan.t1 - plan.t0, 1.0)), on_slice)
    length, reference = float(np.diff(times).max()), _Reference(plan)
    for left in reversed(range(MAX_HALVINGS)):
        task = run(plan.replace(fixed_step=length), on_slice).task
        done = task.status == Status.DONE
        if done and task.error_estimate <= 1.0 and (not _is_compared(plan) or reference.agrees_with(task)):
            if _has_hidden(plan) and reference.is_complete:
                task.differs = reference.differs(task)
            break
        if not done and (task.status in AT_ANY_STEP or not reference.is_complete):
            break
        if done and task.snaps and length <= WITH_JUMPS * (task.t1 - task.t0):
            break  # no equal step ends at a jump of the solution, however short it is
        # the estimate is of fourth order or higher: jump close to the step that is needed
        large = done and task.error_estimate > 1.0
        factor = float(np.clip(0.9 * task.error_estimate**-0.25, 0.1, 0.5)) if large else 0.5
        if left == 0 or task.t1 - task.t0 > task.max_steps * length * factor:
            _refuse_unless_accurate(task, reference)
            break
        length *= factor
    return IntegratorRun(task, chosen)


def _is_compared(plan: Plan[Kernel]) -> bool:
    """Return whether an error estimate does not see everything: unknowns that nothing feeds back, what lies between the
    stages of a step (knots, switches). What is remembered of the past belongs to one run.
    """
    return plan.kernel.nz != plan.kernel.ne or _has_hidden(plan)


def _has_hidden(plan: Plan[Kernel]) -> bool:
    return plan.past is None and (plan.kernel.ne > 0 or plan.kernel.bends > 0)


def _refuse_unless_accurate(task: Task, reference: _Reference) -> None:
    """Mark a run with the shortest allowed steps as failed where its error estimate is too large; compare others with
    the reference.
    """
    if task.status != Status.DONE:
        return
    if task.error_estimate > 1.0:
        task.status = Status.TOO_MANY_STEPS
    elif reference.is_complete:
        task.differs = reference.differs(task)


class _Reference:
    """The same run under error control, made when it is first asked for."""

    def __init__(self, plan: Plan[Kernel]) -> None:
        self.plan = plan.without_derivatives().replace(among=AUTO, fixed_step=0.0, hmax=0.0)
        self.disagreements = 0

    @cached_property
    def usual(self) -> Task:
        return self._integrated(1.0)

    @cached_property
    def sharper(self) -> Task:
        """With smaller tolerances."""
        return self._integrated(SHARPER_TOLERANCE)

    @property
    def is_complete(self) -> bool:
        return bool(self.usual.status == Status.DONE)

    def agrees_with(self, task: Task) -> bool:
        """Return whether every row is that of this run, within a thousandth of what its quantity covers and, where that
        is asked again and again, within what this run itself is off; true where this run failed.
        """
        if not self.is_complete or _agree(task.y, self.usual.y):
            return True
        self.disagreements += 1
        if self.disagreements >= MAX_DISAGREEMENTS:
            task.differs = self.differs(task)
            return True
        if self.disagreements <= MIN_DISAGREEMENTS or self.sharper.status != Status.DONE:
            return False
        return _agree(task.y, self.sharper.y, _apart(self.usual.y, self.sharper.y))

    def differs(self, task: Task) -> tuple[int, float] | None:
        """Return the quantity that differs most from the reference, and by how much; None where that is within the
        error of this run.
        """
        covered = _covered(self.usual.y) + 1e-3 * np.abs(_finite(self.usual.y)).max(axis=0)
        apart, least = _apart(task.y, self.usual.y), max(MIN_TOLD_DIFFERENCE, MANY_TOLERANCES * task.rtol)
        if not np.any(apart > least * covered):
            return None
        if self.sharper.status == Status.DONE:
            apart = apart - _apart(self.usual.y, self.sharper.y)
        share = np.divide(apart, covered, out=np.zeros_like(covered), where=covered > 0)
        worst = int(np.argmax(share))
        return (worst, float(share[worst])) if share[worst] > least else None

    def _integrated(self, share: float) -> Task:
        """Integrate at a share of the tolerances."""
        return run(self.plan.replace(rtol=share * self.plan.rtol, atol=share * np.asarray(self.plan.atol))).task


def _agree(here: np.ndarray, there: np.ndarray, uncertain: np.ndarray | float = 0.0) -> bool:
    largest = np.abs(_finite(there)).max(axis=0)
    return bool(np.all(_apart(here, there) <= 1e-3 * _covered(there) + 1e-6 * largest + uncertain))


def _finite(rows: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(rows), rows, 0.0)


def _covered(rows: np.ndarray) -> np.ndarray:
    """Return how far each quantity goes."""
    return np.asarray(_finite(rows).max(axis=0) - _finite(rows).min(axis=0))


def _apart(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return largest difference of each quantity, where both are finite."""
    usable = np.isfinite(there) & np.isfinite(here)
    apart = np.abs(np.where(usable, here, 0.0) - np.where(usable, there, 0.0))
    return np.asarray(apart.max(axis=0))
