"""Runs of models with a past: the method of steps.

A stretch not longer than the shortest dead time sees only what lies before it, so that delayed unknowns are known
signals there. Stretch by stretch the run is given their past as polynomials, through the values that the dense output
has at the points of Gauss's rule on pieces between kinks; pieces are halved until the last coefficients of their
Legendre series are below the tolerance. Ends of stretches and kinks of the past come back one dead time later, where
steps end again: the solution is smoother there each time, and after ``MAX_KINK_ORDER`` returns nothing is left to be
seen.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import comb
from typing import TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.compilation.kernel import Kernel
from grisaille.compilation.plan import Plan
from grisaille.compilation.schemes import Among, Scheme
from grisaille.compilation.task import Status, Task
from grisaille.errors import SimulationError
from grisaille.experiment.piecewise_polynomials import MOVING_KINK, SignalTable
from grisaille.memory import BYTES_PER_DOUBLE, require_memory
from grisaille.structure.delays.moving_breaks import HAT, RATE
from grisaille.structure.system import System

Floats = NDArray[np.float64]
Stretch: TypeAlias = tuple[Floats, Floats, NDArray[np.uint8], list[int]]
"""Breaks, polynomials and kinks of all signals on a stretch; and how often each kink has come back."""
COUNTED_FIELDS = (
    "steps", "rejected", "evaluations", "jacobians", "factorizations", "newton_iterations", "rescues", "snaps",
)  # fmt: skip
"""What stretches add up to."""
GAUSS_POINTS = 8
MAX_KINK_ORDER = 5
"""How often a kink comes back before it is too smooth to matter."""
MAX_HALVINGS = 8
MAX_STRETCHES = 200_000
MIN_DECAY = 0.5
"""Last coefficients must fall to this part by a halving of the pieces, or halving them is given up."""
ROUGH_OPERATIONS = {
    ca.OP_FMIN, ca.OP_FMAX, ca.OP_FABS, ca.OP_SIGN, ca.OP_COPYSIGN, ca.OP_FLOOR, ca.OP_CEIL, ca.OP_FMOD, ca.OP_LT,
    ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO,
}  # fmt: skip
"""Operations that bend or jump."""
NOISE_RATIO = 0.3
"""Both halves of a piece are rougher than this part of the whole: noise."""
LOCATING_HALVINGS = 5
"""Halvings from which on the place of a bend is known well enough to end steps there when it comes back."""
MIN_PIECE_SHARE = 1e-10
"""Part of the run: pieces that short hold a jump."""
COARSENING_TOLERANCE = 1e-3
"""Part of the tolerance below which pieces become longer again."""

_x, _w = np.polynomial.legendre.leggauss(GAUSS_POINTS)
_AT = 0.5 * (_x + 1)
"""Points of Gauss's rule on [0, 1]."""
_SERIES = (2 * np.arange(GAUSS_POINTS)[:, None] + 1) / 2 * _w * np.polynomial.legendre.legvander(_x, GAUSS_POINTS - 1).T
"""Values at the points → coefficients of the Legendre series."""
_POWERS = np.linalg.inv(np.vander(_AT, GAUSS_POINTS, increasing=True))
"""Values at the points → coefficients of powers of s on [0, 1]."""


@dataclass(frozen=True, eq=False)
class Past:
    """The past of the delayed unknowns of a run."""

    places: tuple[int, ...]
    """In u."""
    orders: tuple[int, ...]
    which: tuple[int, ...]
    """Which of the sources each repeats."""
    taus: Floats
    """Dead time of each."""
    rates: tuple[int, ...]
    """Places of their rates in u; −1 where the dead time does not move."""
    moves: tuple[int, ...]
    """Places of their derivatives in u, by direction; −1 where there are none."""
    sources: tuple[int, ...]
    """Columns of what is observed."""
    hats: tuple[int, ...]
    """Places in u of the hats of moving clocks, and how dead times move with each direction: (hats, ns)."""
    dtaus: Floats
    first: Floats
    """Values of the sources at the start, and their derivatives: (sources, 1 + ns)."""
    is_rough: bool = False
    """Whether sources may bend or jump between breaks: with relations in the equations."""
    slopes: tuple[int, ...] = ()
    """Places in u of signals whose derivatives are the last entries of u: those in relations that are held."""


def past_of(point: ExperimentPoint, system: System, ns: int) -> Past:
    """Return the past of a point whose system was prepared by ``with_moving_past``."""
    places = point.structure.system.has.pasts
    plain, delays = point.structure.system, {d.name: d for d in point.structure.system.delays}
    names = [delays[plain.signals[k].name].source for k in places]
    sources = list(dict.fromkeys(names))
    values = dict(zip(delays, point.form.taus(point.p).tolist(), strict=True))
    found = {(s.name, s.order): k for k, s in enumerate(system.signals) if s.kind == RATE}
    moving = plain.moving.taus if plain.moving is not None else ()
    hats = [next(k for k, s in enumerate(system.signals) if (s.name, s.order, s.kind) == (t, 0, HAT)) for t in moving]
    slopes = np.zeros((len(hats), ns))
    if ns and len(point.dq):
        by_name = {d.text: i for i, d in enumerate(delays.values())}
        h = point.form.tau_slopes(point.p).reshape(len(point.p), len(delays)).T
        slopes = np.array([point.dp @ h[by_name[t]] for t in moving]).reshape(len(hats), ns)
    return Past(
        places,
        tuple(plain.signals[k].order for k in places),
        tuple(sources.index(n) for n in names),
        np.array([values[plain.signals[k].name] for k in places]),
        tuple(found.get((plain.signals[k].name, plain.signals[k].order), -1) for k in places),
        tuple(plain.nu + i * ns if ns else -1 for i in range(len(places))),
        tuple(plain.observed_names.index(n) for n in sources),
        tuple(hats),
        slopes,
        _first(point, sources, ns),
        _is_rough(plain, sources),
    )


def _is_rough(system: System, sources: Sequence[str]) -> bool:
    rows = [system.observed[system.observed_names.index(n)] for n in sources]
    f = ca.Function("f", [system.t, system.x, system.z, system.u, system.p], [system.rhs, system.residual, *rows])
    return any(f.instruction_id(k) in ROUGH_OPERATIONS for k in range(f.n_instructions()))


def _first(point: ExperimentPoint, sources: Sequence[str], ns: int) -> Floats:
    """Return values of the sources at the start with their derivatives: (sources, 1 + ns)."""
    system = point.structure.system
    rows = [system.observed_names.index(n) for n in sources]
    w = np.concatenate([point.start.x, point.start.z])
    value, by_w, by_p = point.structure.start_functions.linearized("observed", point.t0, w, point.u, point.p)
    found = np.zeros((len(rows), 1 + ns))
    found[:, 0] = value[rows]
    if ns and len(point.dq):
        moved = np.concatenate([point.dstart.sx, point.dstart.sz], axis=1)
        found[:, 1:] = by_w[rows] @ moved.T + by_p[rows] @ point.dp.T
    return found


@dataclass
class _DelayHistory:
    """Polynomials of the sources between breaks, with their derivatives by every direction."""

    breaks: list[float]
    corners: list[int]
    """How often the kink at each break has come back; −1 where there is none."""
    pieces: list[Floats] = field(default_factory=list)
    """(sources, 1 + ns, NODES) in powers of t − break."""


MAX_OTHER_ENDS, OTHER_END = 4, 0.618
"""Ends of a stretch that are tried where relations switch at it, each at this share of the one before."""
_BINOMIAL = np.array([[comb(j, k) for k in range(32)] for j in range(32)], dtype=float)
Integrate = Callable[[Kernel, Task, Among], Scheme]


def integrate_with_past(kernel: Kernel, task: Task, among: Among, integrate: Integrate) -> Scheme:
    """Run the task stretch by stretch; return the scheme that finished it."""
    past = task.plan.past
    assert isinstance(past, Past)
    return _DelayedRun(kernel, task, past, integrate).go(among)


def require_points(t: float, end: float, points: int, values: int) -> None:
    """Refuse pieces of the past that do not fit into memory: what never becomes smooth asks for ever more."""
    require_memory(
        BYTES_PER_DOUBLE * points * values,
        f"The past of delayed unknowns from t = {t:.6g} to {end:.6g} (at {points} points, {values} values each)",
        "They are not smooth there, however short the pieces: use a larger rtol, method='frozen', or end before.",
    )


class _DelayedRun:
    def __init__(self, kernel: Kernel, task: Task, past: Past, integrate: Integrate) -> None:
        self.kernel, self.task, self.past, self.integrate = kernel, task, past, integrate
        self.parts = 1
        self.history = _DelayHistory([-np.inf], [-1])

    def go(self, among: Among) -> Scheme:
        task, shortest = self.task, float(self.past.taus.min())
        if (task.t1 - task.t0) / shortest > MAX_STRETCHES:
            raise SimulationError(
                f"A dead time of {shortest:.3g} is repeated {(task.t1 - task.t0) / shortest:.3g} times in the run, "
                f"which is followed one dead time after the other: leave the delay out, or simulate a shorter time."
            )
        self.used = among[0]
        t = task.t0
        self._begin()
        while t < task.t1:
            end = self._end(t, shortest)
            for others in reversed(range(MAX_OTHER_ENDS + 1)):
                done = self._stretch(t, end, among, may_end_elsewhere=others > 0)
                if done is not None:
                    break
                end = t + OTHER_END * (end - t)
            if not done:
                return self.used
            t = end
            among = (self.used,)
        if task.t1 == task.t0:
            self._stretch(t, t, among)
        return self.used

    def _begin(self) -> None:
        """Set the past before the start to the value at the start."""
        first = np.zeros((len(self.past.sources), 1 + self.task.ns, GAUSS_POINTS))
        first[..., 0] = self.past.first[:, : 1 + self.task.ns]
        self.history.pieces.append(first)
        self.history.breaks.append(self.task.t0)
        self.history.corners.append(0)

    def _end(self, t: float, shortest: float) -> float:
        """Return where a stretch ends: one shortest dead time later, at a return of the start if that is nearer."""
        end = min(t + shortest, self.task.t1)
        return self.task.t1 if self.task.t1 - end < 1e-9 * shortest else end

    def _ends_on_switch(self, end: float, sub: Task) -> bool:
        """Return whether relations switch where a stretch ends: the next one would begin behind the switch, and the
        share of its instant would be in no derivative.
        """
        if not self.task.ns or not self.kernel.ne or end >= self.task.t1:
            return False
        there = [np.array(a) for a in (sub.p, sub.x, sub.z, sub.sx, sub.sz)]
        at_end = self._sub(end, end, self._table(end, end), np.zeros(0), there)
        self.integrate(self.kernel, at_end, (self.used,))
        return at_end.status == Status.DONE and at_end.n_events > 0

    def _stretch(self, t: float, end: float, among: Among, may_end_elsewhere: bool = False) -> bool | None:
        """Return whether a stretch was followed; None where it had better have another end."""
        task = self.task
        kept = [np.array(a) for a in (task.p, task.x, task.z, task.sx, task.sz)]
        table = self._table(t, end)
        last = np.inf
        for _ in range(MAX_HALVINGS):
            nodes, edges, corners = self._nodes(table, t, end)
            sub = self._sub(t, end, table, nodes, kept)
            self.used = self.integrate(self.kernel, sub, among)
            if sub.status != Status.DONE:
                self._take(sub, t, end)
                return False
            pieces, tails = self._pieces(sub, nodes, edges, table)
            tail = float(tails.max(initial=0.0))
            # what does not fall is the noise of the dense output, or a bend
            if task.fixed_step > 0 or tail <= 1.0 or end == t or tail > MIN_DECAY * last:
                break
            self.parts, last = 2 * self.parts, tail
        # with given steps, too: on pieces of their length a bend would cost more than they do (4e-4 for 5e-9), and the
        # derivative by a dead time is that of the pieces
        if tail > 1.0 and self.past.is_rough and end > t:
            found = self._split(t, end, table, edges, corners, tails, among, kept)
            if found is None:
                return False
            sub, edges, corners, pieces = found
        if may_end_elsewhere and self._ends_on_switch(end, sub):
            return None
        if tail < COARSENING_TOLERANCE and self.parts > 1:
            self.parts //= 2
        self._take(sub, t, end)
        self.history.breaks += edges[1:]
        self.history.corners += corners[1:]
        self.history.pieces += pieces
        return True

    def _split(
        self, t: float, end: float, table: Stretch, edges: list[float], corners: list[int], tails: Floats, among: Among,
        kept: list[Floats],
    ) -> tuple[Task, list[float], list[int], list[Floats]] | None:  # fmt: skip
        """Return pieces halved where sources bend or jump, until nothing is left of it; None where the run stops.

        Around a bend one half is smooth; where both halves are as rough as the whole, it is noise.
        """
        rough = [(a, b, x) for a, b, x in zip(edges[:-1], edges[1:], tails.tolist(), strict=True) if x > 1.0]
        level, depth = dict(zip(edges, corners, strict=True)), 0
        shortest = MIN_PIECE_SHARE * (self.task.t1 - self.task.t0) + 64 * np.spacing(max(abs(t), abs(end)))
        while True:
            rough = [(a, b, x) for a, b, x in rough if b - a > shortest]
            level |= {0.5 * (a + b): -1 for a, b, _ in rough}
            edges = sorted(level)
            nodes = _gauss_points(edges)
            sub = self._sub(t, end, table, nodes, kept)
            self.used = self.integrate(self.kernel, sub, among)
            if sub.status != Status.DONE:
                self._take(sub, t, end)
                return None
            pieces, tails = self._pieces(sub, nodes, edges, table)
            if not rough:
                break
            now, depth = dict(zip(edges, tails.tolist(), strict=False)), depth + 1
            halves = [(a, 0.5 * (a + b), b, x) for a, b, x in rough]
            bent = [(a, m, b) for a, m, b, x in halves if min(now[a], now[m]) <= NOISE_RATIO * x]
            for a, m, b in bent:
                if max(now[a], now[m]) <= 1.0:  # it was in the middle, or no longer matters
                    level[m] = max(level[m], 0)
                elif depth >= LOCATING_HALVINGS:
                    level |= {e: max(level[e], 0) for e in (a, m, b)}
            rough = [(*h, now[h[0]]) for a, m, b in bent for h in ((a, m), (m, b)) if now[h[0]] > 1.0]
        # over a jump the piece before it goes on; the first has none, and is too short to be felt
        gone = {k for k, length in enumerate(np.diff(edges)) if k and length <= shortest and tails[k] > 1.0}
        edges = [e for k, e in enumerate(edges) if k not in gone]
        return sub, edges, [level[e] for e in edges], [p for k, p in enumerate(pieces) if k not in gone]

    def _table(self, t: float, end: float) -> Stretch:
        """Return breaks, polynomials and kinks of all signals on a stretch; and how often each kink has come back."""
        task, past, history = self.task, self.past, self.history
        moved = past.hats != ()
        gap = 1e-12 * (task.t1 - task.t0) + 64 * np.spacing(max(abs(t), abs(end)))
        known: dict[float, tuple[int, int]] = {t: (1, 0)}
        inside = np.flatnonzero((task.breaks > t) & (task.breaks < end))
        for b, k in zip(task.breaks[inside].tolist(), task.kink[inside].tolist(), strict=True):
            known[b] = (k, 0 if k else -1)
        for tau in np.unique(past.taus).tolist():
            first, last = bisect_right(history.breaks, t - tau + gap), bisect_left(history.breaks, end - tau - gap)
            for b, level in zip(history.breaks[first:last], history.corners[first:last], strict=True):
                is_corner = 0 <= level < MAX_KINK_ORDER
                flag, returned = (MOVING_KINK if moved else 1) if is_corner else 0, level + 1 if is_corner else -1
                at = b + tau
                if at in known:
                    returned = known[at][1] if known[at][1] >= 0 else returned
                    flag = known[at][0] or flag
                known[at] = (flag, returned)
        marks: dict[float, tuple[int, int]] = {}
        for b in sorted(known):
            near = next(reversed(marks), -np.inf)
            if b - near > gap:
                marks[b] = known[b]
            elif marks[near][1] < 0 <= known[b][1]:
                marks[near] = known[b]
        inner = list(marks)
        breaks = np.array([*inner, end if end > t else t + 1.0])
        middle = 0.5 * (breaks[:-1] + breaks[1:])
        coef = self._signals(breaks[:-1], middle)
        kink = np.array([*(marks[b][0] for b in inner), 1], dtype=np.uint8)
        return breaks, coef, kink, [marks[b][1] for b in inner]

    def _signals(self, left: Floats, middle: Floats) -> Floats:
        task, past, ns = self.task, self.past, self.task.ns
        segment = np.clip(np.searchsorted(task.breaks, middle, side="right") - 1, 0, max(task.n_breaks - 2, 0))
        degree = max(task.degree + 1, GAUSS_POINTS)
        coef = np.zeros((len(left), self.kernel.nu, degree))
        coef[:, :, : task.degree + 1] = _shifted(task.coef[segment], left - task.breaks[segment])
        starts = np.array(self.history.breaks)
        for place, order, which, tau, rate, moves in zip(
            past.places, past.orders, past.which, past.taus, past.rates, past.moves, strict=True
        ):
            piece = np.clip(np.searchsorted(starts, middle - tau, side="right") - 1, 0, len(self.history.pieces) - 1)
            c = np.stack([self.history.pieces[k][which] for k in piece.tolist()])
            by = np.where(piece > 0, left - tau - np.where(piece > 0, starts[piece], 0.0), 0.0)
            c = _derived(_shifted(c, by), order)
            coef[:, place, :GAUSS_POINTS] = c[:, 0]
            if rate >= 0:
                coef[:, rate, :GAUSS_POINTS] = _derived(c, 1)[:, 0]
            if moves >= 0 and ns:
                coef[:, moves : moves + ns, :GAUSS_POINTS] = c[:, 1:]
        for i, place in enumerate(past.slopes):
            coef[:, self.kernel.nu - len(past.slopes) + i] = _derived(coef[:, place], 1)
        return coef

    def _nodes(self, table: Stretch, t: float, end: float) -> tuple[Floats, list[float], list[int]]:
        """Return Gauss points of all pieces, the pieces' ends, and how often the kinks there have come back."""
        breaks, _, _, levels = table
        marks = [(float(b), level) for b, level in zip(breaks[:-1], levels, strict=True) if level >= 0]
        edges, corners = list[float](), list[int]()
        ends = [*(b for b, _ in marks), end]
        if t not in ends[:1]:
            ends, marks = [t, *ends], [(t, 0), *marks]
        for (a, b), (_, level) in zip(pairwise(ends), marks, strict=True):
            parts = self.parts
            if self.task.fixed_step > 0:
                parts = max(1, int(np.ceil((b - a) / (GAUSS_POINTS * self.task.fixed_step) - 1e-9)))
            inner = a + (b - a) * np.arange(parts) / parts
            edges += inner.tolist()
            corners += [level, *([-1] * (parts - 1))]
        edges.append(end)
        corners.append(0)
        return _gauss_points(edges), edges, corners

    def _sub(self, t: float, end: float, table: Stretch, nodes: Floats, kept: list[Floats]) -> Task:
        task = self.task
        rows = task.times[(task.times > t) & (task.times <= end)] if t > task.t0 else task.times[task.times <= end]
        require_points(t, end, rows.size + nodes.size, self.kernel.ny * (1 + task.ns))
        p, x, z, sx, sz = kept
        is_moved = task.ns > 0
        plan: Plan[Kernel] = task.plan
        return plan.replace(
            t0=t, t1=end, p=p, x=x, z=z, sx=sx if is_moved else None, sz=sz if is_moved else None, past=None,
            signals=SignalTable(*table[:3]), times=np.union1d(rows, nodes) if end > t else rows, h=task.h,
            fixed_step=task.fixed_step, max_steps=max(task.max_steps - task.steps, 1),
        ).task()  # fmt: skip

    def _take(self, sub: Task, t: float, end: float) -> None:
        """Add the results of a stretch to those of the whole run."""
        task = self.task
        done = task.times[task.written :]
        mine = done[done <= (end if sub.status == Status.DONE else sub.t)]
        at = np.searchsorted(sub.times, mine)
        at = at[at < sub.written]
        here = slice(task.written, task.written + len(at))
        task.y[here], task.sy[here] = sub.y[at], sub.sy[at]
        task.written += len(at)
        for name in ("p", "x", "z", "sx", "sz"):
            getattr(task, name)[...] = getattr(sub, name)
        for name in COUNTED_FIELDS:
            setattr(task, name, getattr(task, name) + getattr(sub, name))
        listed = min(sub.n_events, max(task.most_events - task.n_events, 0))
        task.events[task.n_events : task.n_events + listed] = sub.events[:listed]
        task.n_events += sub.n_events
        task.t, task.status, task.where, task.amount, task.h = sub.t, sub.status, sub.where, sub.amount, sub.h
        task.error_estimate = max(task.error_estimate, sub.error_estimate)
        task.worst_constraint = max(task.worst_constraint, sub.worst_constraint)

    def _pieces(self, sub: Task, nodes: Floats, edges: Sequence[float], table: Stretch) -> tuple[list[Floats], Floats]:
        """Return polynomials on all pieces, and the largest last coefficient of the series of each in tolerances."""
        past, ns = self.past, self.task.ns
        if edges[-1] == edges[0]:
            return [], np.zeros(0)
        rows = np.searchsorted(sub.times, nodes)
        lengths = np.diff(edges)
        y = sub.y[rows][:, past.sources].reshape(len(lengths), GAUSS_POINTS, -1)
        sizes = np.maximum(np.abs(y).max(axis=(0, 1)), 1e-300)
        series = np.abs(np.einsum("jn,knc->kjc", _SERIES, y))[:, -2:]
        tails = (series / (self.task.rtol * sizes + 1e-300)).max(axis=(1, 2), initial=0.0)
        values = np.zeros((len(lengths), GAUSS_POINTS, y.shape[2], 1 + ns))
        values[..., 0] = y
        scale = lengths[:, None] ** -np.arange(float(GAUSS_POINTS))
        if ns:
            sy = np.swapaxes(sub.sy[rows][:, :, past.sources], 1, 2).reshape(len(lengths), GAUSS_POINTS, -1, ns)
            slope = np.einsum("knc,pn->kpc", y, _POWERS)[:, 1:] * np.arange(1, GAUSS_POINTS)[:, None]
            rate = (
                np.einsum("kpc,np->knc", slope, np.vander(_AT, GAUSS_POINTS - 1, increasing=True))
                / lengths[:, None, None]
            )
            values[..., 1:] = sy - rate[..., None] * self._clock(nodes, table).reshape(
                len(lengths), GAUSS_POINTS, 1, ns
            )
        found = np.einsum("pn,kncs->kcsp", _POWERS, values) * scale[:, None, None, :]
        return list(found), np.asarray(tails)

    def _clock(self, t: Floats, table: Stretch) -> Floats:
        """Return how real time moves at instants of a moving clock: (len(t), ns)."""
        past, breaks, coef = self.past, table[0], table[1]
        if not past.hats:
            return np.zeros((len(t), self.task.ns))
        segment = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, len(coef) - 1)
        hat = coef[segment][:, list(past.hats), :2]
        w = hat[..., 0] + hat[..., 1] * (t - breaks[segment])[:, None]
        return np.asarray(w @ past.dtaus)


def _gauss_points(edges: Sequence[float]) -> Floats:
    """Return points of Gauss's rule on all pieces, one after the other."""
    return np.asarray((np.array(edges[:-1])[:, None] + np.diff(edges)[:, None] * _AT).ravel())


def _shifted(c: Floats, by: Floats) -> Floats:
    """Return polynomials (k, m, degree + 1) expanded at points further on."""
    n = c.shape[-1]
    powers = by[:, None, None] ** np.maximum(np.arange(n)[:, None] - np.arange(n), 0)
    return np.asarray(c @ (_BINOMIAL[:n, :n] * powers))


def _derived(c: Floats, order: int) -> Floats:
    for _ in range(order):
        shorter = c[..., 1:] * np.arange(1, c.shape[-1])
        c = np.concatenate([shorter, np.zeros((*c.shape[:-1], 1))], axis=-1)
    return c
