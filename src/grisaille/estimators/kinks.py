"""Unknowns whose prior has a kink, as Laplace's has at its mean: searched on either side, held where it is the minimum.

No search for smooth criteria converges at a kink. So the range of such an unknown ends there as at a bound: where a
search stops at that end, the other side is searched from it, and where that leads back the kink is the estimate. Like
an unknown at a bound it is not free and has no standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.problem import EstimationProblem
from grisaille.laws import Law
from grisaille.optimization.journal import SearchJournal

AT, BESIDE = 1e-9, 1e-12
"""Of the size of an unknown: how near to a kink it is at the kink, and how far beside it a search ends."""


@dataclass(frozen=True)
class KinkedRange:
    """The piece of an unknown's range between kinks that is searched."""

    ends: tuple[float, ...]
    """Of all pieces."""
    piece: int

    @classmethod
    def around(cls, unknown: Unknown) -> KinkedRange | None:
        """Return the piece in which the guess lies; None for an unknown without kinks."""
        kinks = unknown.prior.kinks if isinstance(unknown.prior, Law) else ()
        inside = [k for k in kinks if unknown.lower < k < unknown.upper]
        if not inside:
            return None
        ends = (unknown.lower, *inside, unknown.upper)
        return cls(ends, int(np.clip(np.searchsorted(ends, unknown.guess, side="right") - 1, 0, len(inside))))

    def other_side(self, value: float, size: float) -> KinkedRange | None:
        """Return the piece beyond the kink that a value lies on; None where it lies on none."""
        for step, end in ((-1, self.ends[self.piece]), (1, self.ends[self.piece + 1])):
            is_kink = 0 <= self.piece + step < len(self.ends) - 1
            if is_kink and abs(value - end) <= AT * size:
                return replace(self, piece=self.piece + step)
        return None

    def of(self, unknown: Unknown, value: float) -> Unknown:
        """Return the unknown with this range, searched from a value."""
        # a little beside the kink, where the slope is that of this side
        beside = BESIDE * unknown.size
        low = self.ends[self.piece] + beside * (self.piece > 0)
        high = self.ends[self.piece + 1] - beside * (self.piece < len(self.ends) - 2)
        return replace(unknown, lower=low, upper=high, guess=float(np.clip(value, low, high)))


def estimate_between_kinks(problem: EstimationProblem, method: Estimator, journal: SearchJournal) -> Estimate:
    """Return the estimate of a method, with kinks of priors as ends of ranges."""
    ranges = {k: r for k, u in enumerate(problem.unknowns) if (r := KinkedRange.around(u)) is not None}
    if not ranges:
        return method.estimate(problem, journal)
    sizes = [u.size for u in problem.unknowns]
    found, settled = _within(problem, method, journal, ranges, problem.guess), set[int]()
    while True:
        sides = {
            k: other for k, r in ranges.items()
            if k not in settled and (other := r.other_side(found.theta[k], sizes[k])) is not None
        }  # fmt: skip
        if not sides:
            break
        k, other = next(iter(sides.items()))
        tried = {**ranges, k: other}
        again = _within(problem, method, journal, tried, found.theta)
        if other.other_side(again.theta[k], sizes[k]) is None:
            found, ranges, settled = again, tried, set()
        else:
            settled.add(k)
    theta = found.theta.copy()
    for k in settled:
        ends = np.array(ranges[k].ends)
        theta[k] = ends[np.argmin(np.abs(ends - theta[k]))]
    notes = [n for n in found.notes if not any(n.startswith(f"at bound: {found.unknowns[k].name} ") for k in settled)]
    notes += [
        f"at kink: {u.name} is where its prior {u.prior!r} has a kink, which the data do not move it from; it has no "
        f"standard error."
        for k, u in enumerate(problem.unknowns) if k in settled
    ]  # fmt: skip
    return replace(found, theta=theta, unknowns=problem.unknowns, notes=tuple(notes))


def _within(
    problem: EstimationProblem,
    method: Estimator,
    journal: SearchJournal,
    ranges: Mapping[int, KinkedRange],
    start: np.ndarray,
) -> Estimate:
    """Return the estimate in given pieces."""
    unknowns = tuple(
        ranges[k].of(u, start[k]) if k in ranges else replace(u, guess=float(start[k]))
        for k, u in enumerate(problem.unknowns)
    )
    return method.estimate(problem.replace(unknowns=unknowns), journal)
