"""Profile likelihood: how the best deviance grows along one unknown while the others follow.

    D(v) = min over the others of −2 log L, above its minimum;      interval = { v : D(v) ≤ threshold }

The steps aim at a fixed change of D, so a curved or one-sided profile is resolved where it bends. For known noise the
threshold is the χ² quantile of one degree of freedom; for unknown noise the one that makes the interval of a linear
model Student's (``law``). Reference: D. Bates, D. Watts, Nonlinear Regression Analysis (1988), chapter 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.deviances import Deviances, Threshold, check_level, deviances_of, index_of
from grisaille.assessment.profile_points import ProfilePoint
from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.fitted import Fitted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

DRAWN_BEYOND_THRESHOLD = 1.5
"""How far above the threshold a profile is followed, for the picture."""
REACH, LOG_REACH = 1e3, 30.0
"""How far it is followed at all, in scaled unknowns or logarithms."""
NEAR_ZERO = 1e-3
"""Of an estimate that is followed by its logarithm: below, the lower bound itself is looked at."""
MAX_POINTS = 1000
"""On a side: each is a fit, and a picture shows no more."""
MIN_STEP_SHARE = 0.2
"""Of the first step: over less the deviance does not grow beyond the limit without a jump."""


@dataclass(frozen=True)
@checked_methods
class Profile:
    """The deviance along one unknown."""

    name: str
    unit: str
    estimate: float
    std_error: float
    level: float
    threshold: float
    shape: str
    """``"bounded"``, ``"one-sided lower"`` (a lower limit, none above), ``"one-sided upper"`` or ``"flat"``."""
    interval: tuple[float | None, float | None]
    """Where the deviance crosses the threshold; None on an open side."""
    table: pd.DataFrame
    """value, deviance, root (signed square root of it) and the other unknowns, along the profile."""
    notes: tuple[str, ...]

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot the deviance along the unknown, its threshold, and the parabola of the standard error.

        ax : axes to draw on instead of a new figure
        """
        from grisaille.assessment.plotting import draw_profile

        return draw_profile(self, ax)

    def __str__(self) -> str:
        low, high = (
            ("−∞" if self.interval[0] is None else f"{self.interval[0]:.6g}"),
            ("∞" if self.interval[1] is None else f"{self.interval[1]:.6g}"),
        )
        unit = f" {self.unit}" if self.unit else ""
        lines = [
            f"profile of {self.name}: {self.shape}",
            f"  estimate {self.estimate:.6g}{unit}, {100 * self.level:g} % interval [{low}, {high}], from "
            f"{len(self.table)} points up to a deviance of {self.table['deviance'].max():.3g} "
            f"(threshold {self.threshold:.4g})",
        ]
        return "\n".join([*lines, *(f"• {note}" for note in self.notes)])

    __repr__ = __str__


def profile(fit: Fitted, name: str, level: float = 0.95, points: int = 12, *, threshold: Threshold = "t") -> Profile:
    """Return the profile likelihood of one unknown; arguments as in ``Fit.profile``."""
    check_level(level)
    k = index_of(fit, name)
    if points < 2:
        raise EstimationError(f"points is {points!r}; a profile needs at least 2 on each side.")
    if points > MAX_POINTS:
        raise EstimationError(f"points is {points!r}; each is a fit, so give at most {MAX_POINTS} on each side.")
    deviances = deviances_of(fit, name)
    limit = deviances.threshold(level, threshold, (k,))
    error = float(fit.std_errors[k]) if fit.estimate.free[k] else 0.0
    walks = [ProfileSide(deviances, k, error, limit, points, side) for side in (-1, 1)]
    for walk in walks:
        walk.run()
    lower, upper = (walk.crossing for walk in walks)
    unknown = fit.estimate.unknowns[k]
    return Profile(
        name=name, unit=unknown.unit, estimate=float(fit.estimate.theta[k]), std_error=float(fit.std_errors[k]),
        level=level, threshold=limit, shape=_shape(lower, upper), interval=(lower, upper),
        table=_table(fit, k, [*reversed(walks[0].points), ProfilePoint(deviances.theta, 0.0), *walks[1].points]),
        notes=tuple(_notes(fit, unknown, walks)),
    )  # fmt: skip


class ProfileSide:
    """One side of a profile."""

    def __init__(
        self,
        deviances: Deviances,
        k: int,
        std_error: float,
        limit: float,
        points: int,
        side: int,
    ) -> None:
        self.deviances, self.k, self.limit, self.side = deviances, k, limit, side
        self.unknown: Unknown = deviances.unknowns[k]
        self.centre = self.unknown.inner(float(deviances.theta[k]))
        self.aim = DRAWN_BEYOND_THRESHOLD * limit / points
        self.most = 4 * points
        scaled = std_error / self.unknown.slope(float(deviances.theta[k]))
        usual = 1.0 if self.unknown.logarithmic else max(abs(self.centre), 1.0)
        self.step = float(np.sqrt(self.aim)) * (min(scaled, usual) if 0 < scaled < np.inf else 0.01 * usual)
        self.reach = LOG_REACH if self.unknown.logarithmic else REACH * usual
        self.points: list[ProfilePoint] = []
        self.crossing: float | None = None
        self.jump: tuple[float, float] | None = None
        """Where the deviance grows beyond the limit at once, as far as steps were shortened, and by how much."""
        self.ended = ""
        self.asks_bound = self.unknown.logarithmic and side < 0 and self.unknown.lower >= 0
        """Whether the deviance at the bound is still to be looked at, which a logarithm may never reach."""

    def run(self) -> None:
        """Step outwards until the deviance is well above the limit, or nothing more can be had."""
        last, failures = ProfilePoint(self.deviances.theta, 0.0), 0
        rejected: ProfilePoint | None = None
        longest = self.step
        for _ in range(self.most):
            value, at_bound = self._next(last)
            if value == last.theta[self.k]:
                self.ended = "bound"
                return
            if self.asks_bound and value < NEAR_ZERO * self.deviances.theta[self.k]:
                self.asks_bound = False
                if self._ends_at_bound():
                    return
            point = self.deviances.minimize({self.k: value}, self._start(value))
            change = point.deviance - last.deviance
            if point.failure or change > 4 * self.aim:
                failures, self.ended = failures + bool(point.failure), point.failure
                rejected = rejected if point.failure else point
                if failures > 8:
                    return
                self.step *= 0.25 if point.failure else max(0.1, min(0.5, 1.5 * self.aim / change))
                continue
            self.ended = ""
            if rejected is not None and self.side * (value - rejected.theta[self.k]) >= 0:
                rejected = None
            self.points.append(point)
            if self.crossing is None and last.deviance < self.limit <= point.deviance:
                self.crossing = self._cross(last, point)
            if point.deviance >= DRAWN_BEYOND_THRESHOLD * self.limit:
                return
            if at_bound or abs(self.unknown.inner(value) - self.centre) >= self.reach:
                self.ended = "bound" if at_bound else "reach"
                return
            self._adapt(last.deviance, point.deviance)
            last = point
        self.ended = self.ended or "steps"
        if rejected is None or self.crossing is not None or rejected.deviance < self.limit:
            return
        at, here = (self.unknown.inner(float(p.theta[self.k])) for p in (rejected, last))
        if abs(at - here) < MIN_STEP_SHARE * longest:
            self.crossing = float(rejected.theta[self.k])
            self.jump = self.crossing, rejected.deviance - last.deviance

    def _ends_at_bound(self) -> bool:
        """Return whether the deviance has not reached the limit at the lower bound; the point there is the last
        then.
        """
        start = [ProfilePoint(self.deviances.theta, 0.0), *self.points][-1].theta
        point = self.deviances.minimize({self.k: self.unknown.lower}, start)
        if point.failure or not point.deviance < self.limit:
            return False
        self.points.append(point)
        self.ended = "bound"
        return True

    def _adapt(self, before: float, now: float) -> None:
        """Choose the step to a deviance higher by ``aim``, if its root continues as a straight line."""
        a, b = np.sqrt(max(before, 0.0)), np.sqrt(max(now, 0.0))
        wanted = np.sqrt(max(now, 0.0) + self.aim) - b
        self.step *= float(np.clip(wanted / max(b - a, 1e-12), 0.25, 2.0))

    def held_by_bounds(self) -> list[str]:
        """Return unknowns that sit on a bound at the end of the walk and did not at the estimate."""
        if not self.points:
            return []
        end = self.points[-1].theta
        lower, upper = self.deviances.bounds
        near = [np.isclose(t, lower, rtol=1e-4) | np.isclose(t, upper, rtol=1e-4) for t in (self.deviances.theta, end)]
        return [u.name for u, before, after in zip(self.deviances.unknowns, *near, strict=True) if after and not before]

    def _next(self, last: ProfilePoint) -> tuple[float, bool]:
        xi = self.unknown.inner(float(last.theta[self.k])) + self.side * self.step
        value = self.unknown.outer(xi)
        bound = self.unknown.lower if self.side < 0 else self.unknown.upper
        return (bound, True) if self.side * (value - bound) >= 0 else (value, False)

    def _start(self, value: float) -> np.ndarray:
        """Return the others on a line through the last two points."""
        before = [ProfilePoint(self.deviances.theta, 0.0), *self.points][-2:]
        if len(before) < 2:
            return before[-1].theta
        a, b = before
        along = (value - b.theta[self.k]) / (b.theta[self.k] - a.theta[self.k])
        lower, upper = self.deviances.bounds
        guess = b.theta + along * (b.theta - a.theta)
        keeps_sign = [not u.logarithmic or g > 0 for u, g in zip(self.deviances.unknowns, guess, strict=True)]
        return np.asarray(np.clip(np.where(keeps_sign, guess, b.theta), lower, upper))

    def _cross(self, inside: ProfilePoint, outside: ProfilePoint) -> float:
        """Return where the root of the deviance, which is nearly a straight line, reaches the root of the limit."""
        from scipy.optimize import brentq

        ends = {float(p.theta[self.k]): p.deviance for p in (inside, outside)}

        def above(value: float) -> float:
            deviance = ends.get(value)
            if deviance is None:
                deviance = self.deviances.minimize({self.k: value}, outside.theta).deviance
            return float(np.sqrt(max(deviance, 0.0)) - np.sqrt(self.limit))

        a, b = ends
        return float(brentq(above, a, b, xtol=1e-7 * abs(b - a), rtol=1e-12, maxiter=50))


def _shape(lower: float | None, upper: float | None) -> str:
    if lower is None:
        return "flat" if upper is None else "one-sided upper"
    return "one-sided lower" if upper is None else "bounded"


def _table(fit: Fitted, k: int, points: list[ProfilePoint]) -> pd.DataFrame:
    import pandas as pd

    theta = np.array([p.theta for p in points])
    deviance = np.array([p.deviance for p in points])
    root = np.sign(theta[:, k] - fit.estimate.theta[k]) * np.sqrt(np.clip(deviance, 0.0, None))
    others = {name: theta[:, j] for j, name in enumerate(fit.names) if j != k}
    return pd.DataFrame({"value": theta[:, k], "deviance": deviance, "root": root, **others})


def _notes(fit: Fitted, unknown: Unknown, walks: list[ProfileSide]) -> Iterator[str]:
    for walk, side in zip(walks, ("below", "above"), strict=True):
        if walk.crossing is not None:
            held = [n for n in walk.held_by_bounds() if n != unknown.name]
            if held:
                yield f"the limit {side} is due to the bound of {', '.join(held)}, not to the data."
            continue
        far = walk.points[-1] if walk.points else ProfilePoint(fit.estimate.theta, 0.0)
        at, growth = float(far.theta[walk.k]), f"the deviance has grown by only {max(far.deviance, 0.0):.3g}"
        if walk.ended == "bound":
            yield f"open {side}: at the bound {at:g} {growth}; the bound, not the data, ends the interval there."
        elif walk.ended in ("reach", "steps"):
            yield f"open {side}: at {at:.4g} {growth}; the data do not limit {unknown.name} on this side."
        else:
            why = walk.ended.rstrip(".")
            yield f"open {side}: nothing can be computed much beyond {at:.4g}, where {growth} ({why})."
    if not fit.estimate.is_likelihood:
        yield (
            "the criterion is not a likelihood: the interval is where it has grown as much as the standard error says, "
            "and shares the bias of the estimate."
        )
    for walk in walks:
        if walk.jump is not None:
            at, change = walk.jump
            yield f"the limit {at:.4g} is where the deviance jumps, by {change:.2g} at once: it is approximate."
    best = min((p for w in walks for p in w.points), key=lambda p: p.deviance, default=None)
    if best is not None and best.deviance < -1e-3:
        values = ", ".join(f"'{n}': {v:.6g}" for n, v in zip(fit.names, best.theta, strict=True))
        yield f"a better point was found on the way (deviance {best.deviance:.3g}): fit again with guess={{{values}}}."
