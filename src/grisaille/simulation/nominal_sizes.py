"""Sizes of states where none is declared: absolute tolerances scale with them, not with units.

A tolerance of 1e-3 · rtol · nominal with a nominal value of one says nothing to a state of 1e-9 (no step is made small
for it) and asks for more digits than there are of one near zero among others of 1e9. Both are seen in the run itself:

small   a state stayed below a hundred absolute tolerances, or below 1e-5 of a nominal value that nobody declared (its
        error may be a hundred times rtol), and above the rounding of what drives it: the run is made again with its
        largest value as nominal size. Elements of a vector of which one is larger only where others feel them.
        Implicit unknowns far below theirs alike, where states feel what Newton's iteration leaves of their tolerance:
        a rate of 1e-8 per second over years.
large   a run takes very many steps, and tolerances lie below the rounding of what drives their states, or those of
        implicit unknowns are so wide that states are lost in them: it is made again with the sizes of these.

Declared nominal values and given tolerances stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.task import Status, Task
from grisaille.experiment.piecewise_polynomials import SignalTable
from grisaille.simulation.integration import SLICE, IntegratorRun
from grisaille.structure.starts.initialization import Initializer
from grisaille.structure.system import System

if TYPE_CHECKING:
    from scipy.sparse import csc_array

Floats = NDArray[np.float64]
SMALL_STATE_RATIO = 100.0
"""Times its absolute tolerance, a state has at most two digits that steps are chosen by."""
LOSES_DIGITS = 1e-2
"""Divided by rtol: absolute tolerances in a state whose error may be a hundred times the relative tolerance."""
FAR_BELOW = 1e-4
"""Of a nominal value that nobody declared: quantities that do not reach it have another size."""
AT_REST = 1e-7
"""Times its absolute tolerance, what is not zero is taken for rounding of a state that rests."""
MANY_STEPS = SLICE
"""After so many, and at each multiple of it, tolerances are compared with rounding."""
RATE_ROUNDING = 64 * np.finfo(float).eps
"""Relative to the terms of a rate, over the time in which its state forgets."""
NEWTON_SHARE = 1e-2
"""Of a tolerance, what Newton's iteration may leave open."""
MAX_MOVED_TOLERANCES = 10.0
"""Tolerances of a state by which those of an implicit unknown may move it."""
ABOVE_ROUNDING = 1e3
"""Sizes, in units of rounding, that are not rounding themselves."""
MAX_STEPS_AGAIN = 200_000
"""Of a run that is made again, unless the first one took more than a fiftieth of it."""
MAX_AGAIN = 3
"""Times that a run is made again: sizes of states that were hardly looked at may be seen only then."""
ELEMENT_INDEX = re.compile(r"\[\d+\]")


class StalledRun(Exception):
    """A run whose tolerances lie below rounding."""

    def __init__(self, nominal: Floats) -> None:
        super().__init__()
        self.nominal = nominal


@dataclass(frozen=True, eq=False)
class NominalSizes:
    """Nominal sizes of (x, z), and which of them were not declared."""

    system: System
    nominal: Floats
    is_free: NDArray[np.bool_]
    is_found: NDArray[np.bool_]
    """Which of them were found in a run before."""

    @classmethod
    def of(cls, initializer: Initializer) -> NominalSizes:
        has = initializer.has_nominal
        return cls(initializer.system, initializer.nominal, ~has, np.zeros_like(has))

    def found(self, nominal: Floats) -> NominalSizes:
        """Return nominal sizes taken from a run."""
        return replace(self, nominal=nominal, is_found=nominal < self.nominal)

    def smaller(self, kernel: Kernel, task: Task) -> Floats | None:
        """Return nominal sizes after a completed run, where those of some states are far too large; None where none
        are.
        """
        if task.status != Status.DONE:
            return None
        largest, nx = self._largest(task), self.system.nx
        # a size that was taken from a run that was far off
        off = np.flatnonzero(self.is_found[:nx] & (largest[:nx] < 0.1 * self.nominal[:nx]) & (largest[:nx] > 0))
        few = small_states(
            task,
            self.system,
            max(SMALL_STATE_RATIO, LOSES_DIGITS / task.rtol),
            lambda: self._felt(kernel, task, largest[:nx]),
        )
        small = [k for k in sorted({*few, *off.tolist()}) if self.is_free[k]]
        nominal = self.nominal.copy()
        if small:
            noise = RATE_ROUNDING * self._driving(kernel, task, task.t1 - task.t0)
            small = [k for k in small if largest[k] > ABOVE_ROUNDING * noise[k]]
            nominal[small] = largest[small]
        implicit = nx + np.flatnonzero(self.is_free[nx:] & (largest[nx:] > 0) & (largest[nx:] < nominal[nx:]))
        if not small:
            implicit = implicit[largest[implicit] < FAR_BELOW * nominal[implicit]]
            if len(implicit):
                moved = NEWTON_SHARE * self._moved_by_implicit(kernel, task, largest[:nx])
                implicit = implicit[moved[implicit - nx] > MAX_MOVED_TOLERANCES]
        nominal[implicit] = largest[implicit]
        return nominal if small or len(implicit) else None

    def other(self, kernel: Kernel, task: Task) -> Floats | None:
        """Return nominal sizes during a run that takes very many steps: larger ones where tolerances of states lie
        below rounding, smaller ones where those of implicit unknowns move states by more than theirs; None where
        neither does.
        """
        nx, nz = self.system.nx, self.system.nz
        driving = self._driving(kernel, task, task.t1 - task.t0)[:nx]
        asked = task.atol[:nx] + task.rtol * np.abs(task.x[:nx])
        nominal = self.nominal.copy()
        below = self.is_free[:nx] & (asked < RATE_ROUNDING * driving) & np.isfinite(driving)
        nominal[:nx][below] = np.maximum(nominal[:nx][below], driving[below])
        if nz:
            most = self._moved_by_implicit(kernel, task, np.abs(task.x[:nx]))
            loud = self.is_free[nx:] & (most > MAX_MOVED_TOLERANCES)
            nominal[nx:][loud] /= most[loud]
        return None if np.array_equal(nominal, self.nominal) else nominal

    def _largest(self, task: Task) -> Floats:
        """Return the largest values of (x, z) at the requested instants and at the end."""
        names = {n: k for k, n in enumerate(self.system.observed_names)}
        ends = np.abs(np.concatenate([task.x[: self.system.nx], task.z[: self.system.nz]]))
        columns = [names.get(n, -1) for n in (*self.system.state_names, *self.system.implicit_names)]
        for state, column in self.system.observed_states:
            columns[state] = column
        seen = np.abs(task.y[: task.written]).max(axis=0, initial=0.0)
        rows = [seen[c] if c >= 0 and np.isfinite(seen[c]) else 0.0 for c in columns]
        return np.asarray(np.maximum(ends, np.array(rows)))

    def _driving(self, kernel: Kernel, task: Task, span: float) -> Floats:
        """Return what the terms of each rate amount to, over the run or the time in which a state forgets, (x, z); zero
        for z.
        """
        slopes, nx = self._slopes(kernel, task), self.system.nx
        terms = np.asarray(slopes @ np.abs(np.concatenate([task.x, task.z])))
        driving = np.zeros(len(self.nominal))
        driving[:nx] = terms[:nx] * self._memory(slopes, span)
        return driving

    def _moved_by_implicit(self, kernel: Kernel, task: Task, sizes: Floats) -> Floats:
        """Return by how many tolerances of a state, at these sizes, that of each implicit unknown moves it."""
        slopes, nx, n, nz = self._slopes(kernel, task), self.system.nx, len(task.x), self.system.nz
        asked = task.atol[:nx] + task.rtol * sizes
        effect = np.asarray(slopes[:nx, n : n + nz].toarray() * self._memory(slopes, task.t1 - task.t0)[:, None])
        most = np.nan_to_num(effect * task.atol[n : n + nz] / asked[:, None]).max(axis=0, initial=0.0)
        return np.asarray(most)

    def _felt(self, kernel: Kernel, task: Task, largest: Floats) -> NDArray[np.bool_]:
        """Return which states change others by more than the tolerance of these while they are within their own."""
        from scipy.sparse import csc_array

        slopes, nx = self._slopes(kernel, task), self.system.nx
        asked = task.atol[:nx] + task.rtol * largest
        effect = csc_array(slopes[:nx, :nx] * (self._memory(slopes, task.t1 - task.t0) / asked)[:, None])
        effect.setdiag(0.0)
        return np.asarray(np.nan_to_num(effect.max(axis=0).toarray()).ravel() * task.atol[:nx] > MAX_MOVED_TOLERANCES)

    def _slopes(self, kernel: Kernel, task: Task) -> csc_array:
        """Return sizes of the derivatives of rates and residuals by (x, z) at the present point of a run."""
        from scipy.sparse import csc_array

        u = SignalTable(task.breaks, task.coef, task.kink).at(task.t) if task.n_breaks else np.zeros(0)
        return csc_array(abs(kernel.jacobian(task.t, task.x, task.z, u, task.p)))

    def _memory(self, slopes: csc_array, span: float) -> Floats:
        """Return the time in which each state forgets, at most the whole run."""
        with np.errstate(divide="ignore"):
            return np.minimum(span, 1.0 / np.asarray(slopes.diagonal())[: self.system.nx])


def nominal_or_own(
    nominal: Floats, is_free: NDArray[np.bool_], names: Sequence[str], largest: Floats, rtol: float
) -> Floats:
    """Return nominal sizes of quantities with these largest values: those of the largest element of their vector where
    nothing is declared and that is far below; not below what rounding of the others leaves of their digits.
    """
    largest = np.where(np.isfinite(largest), largest, 0.0)
    if not (is_free & (largest < FAR_BELOW * nominal)).any() or not largest.any():
        return nominal
    of_vector: dict[str, float] = {}
    for name, value in zip(names, largest.tolist(), strict=True):
        of_vector[ELEMENT_INDEX.sub("", name)] = max(value, of_vector.get(ELEMENT_INDEX.sub("", name), 0.0))
    own = np.array([of_vector[ELEMENT_INDEX.sub("", name)] for name in names])
    least = 10 * np.finfo(float).eps * largest.max() / rtol
    return np.where(is_free & (own < FAR_BELOW * nominal), np.clip(own, least, nominal), nominal)


def small_states(
    task: Task, system: System, limit: float = SMALL_STATE_RATIO, felt: Callable[[], NDArray[np.bool_]] | None = None
) -> list[int]:
    """Return states below so many absolute tolerances that steps hardly looked at them; not where an element of a
    vector or a copy of a component is larger: heat that has not come so far yet.

    felt : which states are listed all the same
    """
    if not system.observed_states:
        return []
    states, columns = np.array(system.observed_states).T
    largest, atol = np.abs(task.y[: task.written, columns]).max(axis=0, initial=0.0), task.atol[states]
    small, moves = largest < limit * atol, largest > AT_REST * atol
    if not (small & moves).any():
        return []
    names = [ELEMENT_INDEX.sub("", system.state_names[k]) for k in states]
    seen = {n for n, is_small in zip(names, small, strict=True) if not is_small}
    excused = np.array([n in seen for n in names])
    if felt is not None and (small & moves & excused).any():
        excused &= ~felt()[states]
    return [int(k) for k in states[small & moves & ~excused]]


Watch = Callable[[Task], None]


def watch_both(first: Watch | None, second: Watch | None) -> Watch | None:
    """Return one after the other."""
    if first is None or second is None:
        return first or second

    def after_slice(task: Task) -> None:
        first(task)
        second(task)

    return after_slice


def run_in_own_sizes(
    sizes: NominalSizes,
    make: Callable[[Floats], Plan[Kernel]],
    run: Callable[[Plan[Kernel], Watch | None], IntegratorRun],
) -> tuple[IntegratorRun, Floats]:
    """Return a run with the sizes that its states turn out to have, and these nominal sizes.

    make : a plan with these nominal sizes; run : to its end, with what is to be called after every slice
    """

    def watch(task: Task) -> None:
        # at the same steps on every machine: slices in between have a length that is measured
        if task.tried % MANY_STEPS or task.steps < MANY_STEPS:
            return
        if not task.fixed_step and task.status == Status.MORE:
            other = sizes.other(kernel, task)
            if other is not None:
                raise StalledRun(other)

    nominal, plan = sizes.nominal, make(sizes.nominal)
    kernel = plan.kernel
    try:
        last = run(plan, watch)
    except StalledRun as found:
        nominal = found.nominal
        last = run(make(nominal), None)
    for _ in range(MAX_AGAIN):
        smaller = sizes.found(nominal).smaller(kernel, last.task)
        if smaller is None:
            break
        plan = make(smaller)
        most = min(int(plan.max_steps), max(MAX_STEPS_AGAIN, 50 * int(last.task.steps)))
        again = run(plan.replace(max_steps=most), None)
        if again.task.status != Status.DONE:
            break
        last, nominal = again, smaller
    return last, nominal
