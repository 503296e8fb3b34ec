"""``z`` where plain Newton does not find it, or may have found another root; as in gr_rescue.h.

Stages, tried in turn: a search for pieces, where relations of z are entries of z; Newton afresh from the prediction;
across bends from the known root; along the way from there to where one is wanted, in strides so short that the root
stays the only one near; along the residual, where the equations themselves change at once; around folds; damped, from
the prediction and from where the way ended, if both lead to the same root. The header explains them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.numerics.sides import have_changed
from grisaille.simulation.roots.damping import damped
from grisaille.simulation.roots.folds import beyond_folds
from grisaille.simulation.roots.linear import Floats, StepFailure

if TYPE_CHECKING:
    from grisaille.simulation.roots.newton import Anchor, Newton

MIN_STRIDE = 1e-10
LEAP_BELOW = 1e-6
STRIDES = 1000
PIECE_TRIALS = 40
ALL_AT_ONCE = 6
MAX_ITERATIONS = 15
CONTRACTION = 0.5
ROUNDING = 1e-2
"""Corrections below this, in units of the tolerance, need not contract."""


def rescue(newton: Newton, start: Anchor, t: float, x: Floats, z: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return ``(z, F)`` at the root that continues ``start``; raises ``StepFailure`` where its branch ends on the
    way.
    """
    way = Way(newton, start, t, x, u)
    with suppress(StepFailure):
        return _afresh(way, z)
    with suppress(StepFailure):
        return across_bends(way)
    try:
        return along(way)
    except _Ended as end:
        ended = end
    with suppress(StepFailure):
        return along(way.faded())
    if newton.task.ns > 0 and t != start.t:
        raise ended  # the instant of the jump moves with what is differentiated by
    with suppress(StepFailure):
        found = beyond_folds(newton, t, x, start.z, u)
        if t != start.t:
            _count_jump(newton.task)
        return found
    try:
        return _damped(way, z, ended.z)
    except StepFailure:
        raise ended from None


def _count_jump(task: Task) -> None:
    """Count a jump to another solution once, although several stages of one step meet it."""
    if task.snaps == 0 or task.snapped_at != task.t:
        task.snaps += 1
    task.snapped_at = task.t


def search_pieces(newton: Newton, t: float, x: Floats, z: Floats, u: Floats) -> tuple[Floats, Floats]:
    """Return ``(z, F)`` with pieces that agree with their solution: those that do not change, at once, then one at a
    time.
    """
    nx, nm, z = newton.kernel.nx, newton.kernel.nm, z.copy()
    for trial in range(PIECE_TRIALS):
        z[-nm:] = np.floor(z[-nm:] + 0.5)
        newton.held, newton.factors = True, None
        try:
            z, _ = damped(newton, t, x, z, u)
        finally:
            newton.held = False
        f = newton.evaluate(t, x, z, u)
        differ = np.flatnonzero(np.abs(f[-nm:]) > 0.5)
        if not differ.size:
            return z, f
        chosen = z.size - nm + (differ if trial < ALL_AT_ONCE else differ[:1])
        z = z.copy()
        z[chosen] -= f[nx + chosen]
    raise StepFailure(Status.NEWTON, nx + int(np.argmax(np.abs(f[nx:]))), float(np.max(np.abs(f[nx:]))))


class _Ended(StepFailure):
    """The branch ends at ``z``, a share of the way before its goal."""

    def __init__(self, where: int, share: float, z: Floats) -> None:
        super().__init__(Status.BRANCH_ENDS, where, share)
        self.z = z


@dataclass
class Way:
    """From a known root to where one is wanted: t, x, u (and p) in a straight line, or the residual ``lift`` fading."""

    newton: Newton
    start: Anchor
    t: float
    x: Floats
    u: Floats
    lift: Floats | None = None

    def faded(self) -> Way:
        """Return the same way at its goal, where the residual of the known root fades."""
        nx, lift = self.newton.kernel.nx, self.values(1.0, self.start.z)
        if not np.all(np.isfinite(lift)):
            raise StepFailure(Status.NOT_FINITE, nx)
        return Way(self.newton, self.start, self.t, self.x, self.u, lift)

    def is_beyond(self, z: Floats) -> bool:
        """Return whether ``z`` at the goal lies on another side of a switch than the known root."""
        kernel = self.newton.kernel
        if kernel.sides == 0:
            return False
        known = kernel.S(self.start.t, self.start.x, self.start.z, self.start.u, self.point(0.0)[3])
        return have_changed(known, kernel.S(self.t, self.x, z, self.u, self.newton.task.p))

    def point(self, s: float) -> tuple[float, Floats, Floats, Floats]:
        """Return t, x, u, p at share ``s``."""
        p = self.newton.task.p
        kept = 0.0 if self.lift is not None else 1.0 - s
        if not kept > 0:
            return self.t, self.x, self.u, p
        start, taken = self.start, 1.0 - kept
        p = p if start.p is None else kept * start.p + taken * p
        return kept * start.t + taken * self.t, kept * start.x + taken * self.x, kept * self.start.u + taken * self.u, p

    def values(self, s: float, z: Floats) -> Floats:
        """Return the residual at share ``s``."""
        newton = self.newton
        t, x, u, p = self.point(s)
        newton.task.evaluations += 1
        residual: Floats = newton.kernel.F(t, x, z, u, p)[newton.kernel.nx :]
        return residual if self.lift is None else residual - (1.0 - s) * self.lift

    def correction(self, s: float, z: Floats) -> Floats | None:
        """Return Newton's correction with the factors that are there; ``None`` where the residual is not finite."""
        residual = self.values(s, z)
        if not np.all(np.isfinite(residual)):
            return None
        return self.newton.correction(np.concatenate([np.zeros(self.newton.kernel.nx), residual]))

    def linearise(self, s: float, z: Floats) -> bool:
        t, x, u, p = self.point(s)
        try:
            self.newton.linearise(t, x, z, u, p)
        except StepFailure:
            return False
        return True

    def stride(self, s: float, goal: float, z: Floats) -> tuple[Floats, float] | None:
        """Return the root at ``goal`` with the factors of the stride's start, and the largest quotient of two
        corrections.

        ``None`` unless all contract and the root moves as its slope at the start says, within a half.
        """
        after, first, before, contraction = z, 0.0, 0.0, 0.0
        slope = self.correction(s + (goal - s) / 64.0, z)
        if slope is None:
            return None
        for iteration in range(MAX_ITERATIONS):
            dz = self.correction(goal, after)
            if dz is None:
                return None
            length = self.newton.size(dz, z)
            if iteration == 0:
                first = length
            elif length > ROUNDING and not length <= CONTRACTION * before:
                return None
            elif before > ROUNDING:
                contraction = max(contraction, length / before)
            after = after + dz
            stalls = iteration > 1 and CONTRACTION * before < length <= ROUNDING
            if length <= 1e-2 or length <= 1e-3 * first or stalls:
                break
            before = length
        else:
            return None
        size, ahead, moved = self.newton.size, 64.0 * slope, after - z
        is_straight = size(ahead - moved, z) <= 0.5 * max(size(ahead, z), size(moved, z)) + 2.0
        return (after, contraction) if is_straight else None

    def leap(self, s: float, goal: float, z: Floats) -> Floats | None:
        """Return a stride across a bend, with factors of every point; the root lies where the slopes of both ends let
        it.
        """
        after, ahead, size = z, 0.0, np.inf
        for iteration in range(MAX_ITERATIONS):
            residual = self.values(goal, after)
            if not np.all(np.isfinite(residual)) or not self.linearise(goal, after):
                return None
            dz = self.newton.correction(np.concatenate([np.zeros(self.newton.kernel.nx), residual]))
            size = self.newton.size(dz, z)
            ahead = size if iteration == 0 else ahead
            after = after + dz
            if size <= 1e-2 or not np.isfinite(size):
                break
        if not size <= 1e-2 or not self.linearise(goal, after):
            return None
        back = self.correction(s, after)
        if back is None or not self.newton.size(after - z, z) <= 4.0 * max(ahead, self.newton.size(back, z), 1.0):
            return None
        return after


def _afresh(way: Way, z: Floats) -> tuple[Floats, Floats]:
    newton = way.newton
    newton.linearise(*way.point(0.0)[:2], way.start.z, *way.point(0.0)[2:])
    orientation = newton.orientation
    newton.linearise(way.t, way.x, z, way.u)
    if newton.orientation == orientation:
        z, f = newton.iterate(way.t, way.x, z, way.u)
        if newton.orientation == orientation and not way.is_beyond(z):
            return z, f
    raise StepFailure(Status.NEWTON)


def across_bends(way: Way) -> tuple[Floats, Floats]:
    """Follow the known root over pieces in all of which det dF/dz has the same sign."""
    newton = way.newton
    if newton.kernel.sides > 0 and way.linearise(0.0, way.start.z):
        orientation = newton.orientation
        found = damped(newton, way.t, way.x, way.start.z, way.u, orientation)
        if newton.orientation == orientation:
            return found
    raise StepFailure(Status.NEWTON)


def along(way: Way) -> tuple[Floats, Floats]:
    """Return ``(z, F)`` at the end of the way; raises ``StepFailure`` where the root ends before."""
    z, share = _follow(way)
    if share < 1.0:
        raise _Ended(_moving(way, share, z), share, z)
    try:
        return way.newton.iterate(way.t, way.x, z, way.u)
    except StepFailure:
        raise _Ended(0, share, z) from None


def _follow(way: Way) -> tuple[Floats, float]:
    """Return the root followed along the way, to its goal or to where it ends; the factors are those of the end."""
    newton, z, share, length, strides = way.newton, way.start.z, 0.0, 0.5, STRIDES
    if not way.linearise(0.0, z):
        return z, share
    orientation = newton.orientation
    while share < 1.0:
        goal = min(share + length, 1.0)
        if strides == 0 or length < MIN_STRIDE:
            return z, share
        strides -= 1
        kept, taken = True, way.stride(share, goal, z)
        if taken is None and length <= LEAP_BELOW:
            kept, after = False, way.leap(share, goal, z)
            taken = None if after is None else (after, 0.0)
        if taken is not None:
            kept = False
            if not way.linearise(goal, taken[0]) or newton.orientation != orientation:
                taken = None
        if taken is None:
            length *= 0.5
            if not kept and not way.linearise(share, z):
                return z, share
            continue
        (z, contraction), share = taken, goal
        length *= 4.0 if contraction <= 0.05 else 2.0 if contraction <= 0.2 else 1.0
    return z, share


def _moving(way: Way, share: float, z: Floats) -> int:
    """Return the index of the entry of z that would change most beyond the end."""
    if way.newton.factors is None:
        return 0
    dz = way.correction(min(1.0, share + 1e-6), z)
    if dz is None:
        return 0
    task, nx = way.newton.task, way.newton.kernel.nx
    return int(np.argmax(np.abs(dz) / (task.atol[nx:] + task.rtol * np.abs(z))))


def _damped(way: Way, z: Floats, ended: Floats) -> tuple[Floats, Floats]:
    """Search with damping; another root is taken only where two starts lead to it and none to a further one."""
    newton, found = way.newton, 0
    for start in (z, *(ended + beyond * (ended - way.start.z) for beyond in (0.0, 1.0, 4.0, 16.0))):
        try:
            trial, _ = damped(newton, way.t, way.x, start, way.u)
        except StepFailure:
            continue
        if found and newton.size(trial - z, trial) > 10.0:
            raise StepFailure(Status.NEWTON)
        z, found = trial, found + 1
    if found < 2:
        raise StepFailure(Status.NEWTON)
    return newton.iterate(way.t, way.x, z, way.u)
