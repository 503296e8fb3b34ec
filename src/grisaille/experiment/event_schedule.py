"""Discrete variables that events of time set, as signals: what happens at every instant, computed before a run.

An instant is a tick of a clock, or one at which a relation of time in a condition switches: the root of a gap that is
affine in time, or a change that is bracketed on a grid and bisected. There, as in compiled runs (gr_when.h), events are
iterated: what is remembered stays as it is while clauses are decided in the order of what they need, those whose
condition is true and was not fire, of one ``when`` the first, until nothing changes. Relations are decided as they hold
just after the instant, straight ones by whether their root has passed: computed, a gap may be zero on both sides of it.
At the start of a run they are what they say there, so that what becomes true at once fires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.casadi_evaluation import numpy_vector
from grisaille.errors import ModelError
from grisaille.experiment.piecewise_polynomials import PiecewisePolynomial, rounding
from grisaille.structure.switching_pieces import Relation, is_affine, separate_relations, written_out
from grisaille.structure.system import Schedule, System, Tick

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
"""Of clauses."""
Looks = Callable[[float], Floats]
"""Conditions, then what is remembered, at an instant."""
Near = Callable[[Any], Any]
"""Of an instant: how close to it others are the same."""
SCAN_CELLS = 20_000
FIRST_CHUNK, CHUNK = 8, 512
"""Points of the grid that are looked at together."""
MAX_PASSES = 100
MAX_EVENTS = 500_000


def follow_schedule(
    system: System, schedule: Schedule, p: Floats, times: Floats, clocks: Mapping[str, PiecewisePolynomial]
) -> dict[str, PiecewisePolynomial]:
    """Return the discrete variables between the first and the last of ``times``, p holding their starts.

    clocks : how often each has ticked, by the name of its signal
    """
    span = float(times[0]), float(times[-1])
    near: Near = partial(rounding, span=span)
    automaton = _Automaton(system, schedule, p, clocks, near)
    instants, rows = [span[0]], [automaton.begin(span[0])]
    search = _EventSearch(automaton, times)
    ticks = np.unique(np.concatenate([np.zeros(0), *(c.kinks for c in clocks.values())]))
    ticks = ticks[(ticks > span[0] + near(span[0])) & (ticks <= span[1])]
    apart = np.diff(ticks, prepend=-np.inf) > near(ticks)
    upcoming = np.concatenate([ticks[apart], [np.inf]])
    t, next_tick = span[0], 0
    while True:
        after = search.next_change(t, min(float(upcoming[next_tick]), span[1]))
        tick = float(upcoming[next_tick])
        is_tick = tick <= span[1] and tick <= after + near(tick)
        t = tick if is_tick else after
        if not t <= span[1]:
            break
        next_tick += int(is_tick)
        row = automaton.apply_events(t, is_tick)
        if (row != rows[-1]).any():
            instants.append(t)
            rows.append(row)
    levels = np.array(rows)
    found = {}
    for k, name in enumerate(schedule.names):
        changed = np.concatenate([[True], levels[1:, k] != levels[:-1, k]])
        own = np.array(instants)[changed]
        breaks = np.concatenate([own, [span[1] + max(span[1] - span[0], 1.0)]])
        found[name] = PiecewisePolynomial(breaks, levels[changed, k][:, None], own[1:])
    return found


class _Automaton:
    """Where the discrete variables stand."""

    def __init__(
        self, system: System, schedule: Schedule, p: Floats, clocks: Mapping[str, PiecewisePolynomial], near: Near
    ) -> None:
        r, self.near = schedule.reactions, near
        self.texts, self.group, self.clocks, self.ticks = r.texts, r.group, clocks, r.ticks
        self.p, self.places = np.array(p), list(schedule.places)
        self.count, self.ranks = len(r.texts), np.array(r.ranks, dtype=int)
        self.begins, self.any = np.array(r.begins, dtype=bool), np.ones(len(r.texts), dtype=bool)
        pulses = ca.vertcat(ca.SX(0, 1), *(t.pulse for t in r.ticks))
        self.arguments = [system.t, system.p, r.was, pulses]
        self.formula = ca.densify(ca.vertcat(r.conditions, r.memory))
        looked_at = [*self.arguments, r.fired]
        self.straight = _Straight(self.formula, self.arguments)
        self._now = numpy_vector(ca.Function("conditions", [*looked_at, self.straight.held], [self.straight.formula]))
        self._values = numpy_vector(ca.Function("values", looked_at, [ca.densify(r.values)]))
        self.was, self.pulse = np.zeros(r.was.numel()), np.zeros(len(r.ticks))
        self.seen, self.fired = np.zeros(self.count, dtype=bool), np.zeros(self.count)
        self.fires = 0

    def now(self, t: float) -> Floats:
        """Return conditions, then what is remembered, just after t."""
        held = self.straight.decide(t + self.near(t), self.p, self.was, self.pulse)
        return self._now(np.array([t + self.near(t)]), self.p, self.was, self.pulse, self.fired, held)

    def at(self, t: float) -> Floats:
        """Return the same at t itself."""
        held = self.straight.decide(t, self.p, self.was, self.pulse, self.near(t))
        return self._now(np.array([t]), self.p, self.was, self.pulse, self.fired, held)

    def begin(self, t: float) -> Floats:
        """Return what holds at the start fires nothing but what asks for it; then what ticks there fires, and what
        begins to hold just after it.
        """
        self._remember(self.at, t)
        self.pulse = np.array([float(not tick.signal) for tick in self.ticks])
        if self.begins.any():
            self._react(t, self.at, self.begins)
        self._remember(self.at, t)
        for k, tick in enumerate(self.ticks):
            self.pulse[k] = float(bool(tick.signal) and (self._ticks(tick, t) or self._stands(tick, t)))
        return self._react(t, self.now, self.any)

    def apply_events(self, t: float, is_tick: bool) -> Floats:
        """Return the discrete variables after the events of an instant."""
        for k, tick in enumerate(self.ticks if is_tick else ()):
            self.pulse[k] = float(bool(tick.signal) and self._ticks(tick, t))
        return self._react(t, self.now, self.any)

    def _ticks(self, tick: Tick, t: float) -> bool:
        """Return whether a clock ticks at t or within rounding of it."""
        kinks = self.clocks[tick.signal].kinks
        low = np.searchsorted(kinks, t - self.near(t), side="left")
        return bool(np.searchsorted(kinks, t + self.near(t), side="right") > low)

    def _stands(self, tick: Tick, t: float) -> bool:
        """Return whether the last tick of a clock, before a run, is at t."""
        count = float(self.clocks[tick.signal].coefficients[0, 0])
        numbers = ca.Function("clock", [self.arguments[1]], [ca.vertcat(tick.start, tick.period)])(self.p).full()
        start, period = (float(v) for v in numbers.ravel())
        return count >= 0 and abs(start + count * period - t) <= 4 * self.near(max(abs(t), abs(start)))

    def _react(self, t: float, looks: Looks, may: Marks) -> Floats:
        """Iterations until nothing changes, of the clauses that may fire."""
        for iteration in range(MAX_PASSES + 1):
            fires = self._iterate(t, looks, may, iteration)
            now = looks(t)
            moved = bool((now[self.count :] != self.was).any())
            self.was = np.array(now[self.count :])
            if not fires and not moved:
                break
        if self.pulse.any():
            self.pulse = np.zeros_like(self.pulse)
            self._remember(looks, t)
        return self.p[self.places]

    def _iterate(self, t: float, looks: Looks, may: Marks, iteration: int) -> bool:
        """Do one iteration: each clause is decided once, after those that set what it needs. Return whether one has
        fired.
        """
        done, decided = np.zeros(self.count, dtype=bool), np.zeros(self.count, dtype=bool)
        seen = self.seen.copy()
        while True:
            true = looks(t)[: self.count] != 0
            firing = true & ~self.seen & ~decided & may
            for k in range(self.count):
                earlier = [j for j in range(k) if self.group[j] == self.group[k]]
                firing[k] = firing[k] and not (firing | done)[earlier].any()
            ready = self.ranks <= self.ranks[firing].min(initial=self.ranks.max(initial=0))
            firing &= ready
            seen[ready & ~decided] = true[ready & ~decided]
            decided |= ready
            if not firing.any():
                self.seen = seen
                return bool(done.any())
            done |= firing
            self._fire(t, firing, iteration)

    def _fire(self, t: float, firing: Marks, iteration: int) -> None:
        if iteration == MAX_PASSES:
            raise ModelError(
                f"gr.when({self.texts[int(np.argmax(firing))]}) fires again and again at t = {t:g} and the events "
                f"of this instant do not settle: each pass makes its condition false and true once more. Let a "
                f"gr.Discrete remember that it has fired, and ask for it in the condition."
            )
        self._count(t, int(np.argmax(firing)))
        self.fired = firing.astype(float)
        self.p[self.places] = self._values(np.array([t]), self.p, self.was, self.pulse, self.fired)

    def _count(self, t: float, clause: int) -> None:
        self.fires += 1
        if self.fires > MAX_EVENTS:
            raise ModelError(
                f"gr.when({self.texts[clause]}) and others have fired {MAX_EVENTS} times until t = {t:g}, and more "
                f"are not followed: is the time between events in the unit of time of the model?"
            )

    def _remember(self, looks: Looks, t: float) -> None:
        self.was = np.array(looks(t)[self.count :])
        self.seen = looks(t)[: self.count] != 0


class _Straight:
    """The relations of a formula whose gaps are affine in time, as symbols; their roots decide them."""

    def __init__(self, formula: ca.SX, arguments: list[ca.SX]) -> None:
        t = arguments[0]
        (formula,), pieces = separate_relations([formula], t)
        found: list[tuple[ca.SX, Relation]] = []
        back: list[tuple[ca.SX, Relation]] = []
        for piece, full in zip(pieces, written_out(pieces), strict=True):
            is_line = full.relation.kind not in ("floor", "ceil") and is_affine(full.relation.gap, t)
            (found if is_line else back).append((piece.symbol, full.relation if is_line else piece.relation))
        for symbol, relation in reversed(back):
            formula = ca.substitute(formula, symbol, relation.value)
        self.formula = formula
        self.held = ca.vertcat(ca.SX(0, 1), *(symbol for symbol, _ in found))
        self.kinds = [relation.kind for _, relation in found]
        self.is_whole = not back
        gaps = ca.vertcat(ca.SX(0, 1), *(relation.gap for _, relation in found))
        lines = ca.vertcat(ca.substitute(gaps, t, ca.SX(0)), ca.jacobian(gaps, t)) if found else ca.SX(0, 1)
        self._lines = numpy_vector(ca.Function("lines", arguments, [ca.densify(lines)]))

    def lines(self, p: Floats, was: Floats, pulse: Floats) -> tuple[Floats, Floats]:
        """Return (level, slope): gap = level + slope t."""
        level, slope = np.reshape(self._lines(np.zeros(1), p, was, pulse), (2, -1))
        return level, slope

    def decide(self, t: float, p: Floats, was: Floats, pulse: Floats, near: float = -1.0) -> Floats:
        """Return the relations at a time that is no root but for rounding; roots closer than ``near`` are at it."""
        level, slope = self.lines(p, was, pulse)
        with np.errstate(divide="ignore", invalid="ignore"):
            root = -level / slope
            side = np.where(slope == 0.0, np.sign(level), np.where(t >= root, 1.0, -1.0) * np.sign(slope))
            side = np.where((slope != 0.0) & (np.abs(t - root) <= near), 0.0, side)
        return np.array([_DECIDED[kind](s) for kind, s in zip(self.kinds, side.tolist(), strict=True)])


_DECIDED: dict[str, Callable[[float], float]] = {
    "lt": lambda side: float(side < 0), "le": lambda side: float(side <= 0), "eq": lambda side: float(side == 0),
    "ne": lambda side: float(side != 0), "sign": float,
}  # fmt: skip


class _EventSearch:
    """The next instant at which a condition may change by itself."""

    def __init__(self, automaton: _Automaton, times: Floats) -> None:
        self.automaton, self.times, self.near = automaton, times, automaton.near
        self.is_crooked = not automaton.straight.is_whole
        self.function = ca.Function("conditions", automaton.arguments, [automaton.formula])
        if self.is_crooked:
            self.grid = np.unique(np.concatenate([np.linspace(times[0], times[-1], SCAN_CELLS + 1), times]))

    def next_change(self, t: float, end: float) -> float:
        """After t, and not after ``end``; infinite where there is none."""
        a = self.automaton
        level, slope = a.straight.lines(a.p, a.was, a.pulse)
        roots = -level[slope != 0] / slope[slope != 0]
        later = roots[(roots > t + self.near(t)) & (roots <= end + self.near(end))]
        first = float(later.min(initial=np.inf))
        return self._bracketed(t, min(first, end), first) if self.is_crooked else first

    def _bracketed(self, t: float, end: float, otherwise: float) -> float:
        before, low = self._at(np.array([t + self.near(t)]))[:, 0], t
        first, last = np.searchsorted(self.grid, t, side="right"), np.searchsorted(self.grid, end, side="left")
        points, size = np.append(self.grid[first:last], end), FIRST_CHUNK
        while points.size:
            chunk, points = points[:size], points[size:]
            size = min(2 * size, CHUNK)  # so that many changes cost no more than few do
            changed = (self._at(chunk) != before[:, None]).any(axis=0)
            if changed.any():
                k = int(np.argmax(changed))
                return self._bisected(low if k == 0 else float(chunk[k - 1]), float(chunk[k]), before)
            low = float(chunk[-1])
        return otherwise

    def _bisected(self, low: float, high: float, before: Floats) -> float:
        while low < (middle := 0.5 * (low + high)) < high:
            if (self._at(np.array([middle]))[:, 0] == before).all():
                low = middle
            else:
                high = middle
        return high

    def _at(self, t: Floats) -> Floats:
        a = self.automaton
        rows = [np.repeat(v[:, None], t.size, axis=1) for v in (a.p, a.was, a.pulse)]
        return np.array(self.function(t[None, :], *rows).full())
