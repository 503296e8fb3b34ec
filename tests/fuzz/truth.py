"""The reference: DOP853 of SciPy at 1e-11 on smooth pieces, which end where a relation or a known signal switches.

Independent of the package under test. Each step is searched for a relation that switches and switches back within it:
signs at the ends of steps, which is what SciPy's own events look at, do not tell. Besides the trajectory it tells
whether the problem is well posed: no sliding along a relation, no grazing contact, no growth of small errors beyond a
factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import DOP853
from scipy.optimize import brentq, minimize_scalar

from fuzz.algebra import Numbers
from fuzz.hidden import Hidden, breaks_of

EPS = float(np.finfo(float).eps)
MOST_PIECES = 200
BEYOND = 1e-12
"""By how much a margin is passed where a piece ends, so that the next one begins with all margins above zero: a bump
may begin and end within one step."""
ONE_INSTANT = 1e-10
"""Margins used up within this time are so at once: those of two tables of one state, say."""
LONGEST_STEP = 0.1
SAMPLES = 12
"""Parts of a step at whose ends all margins are looked at; between them where one comes close to zero."""
GRAZING = 1e-6
"""How close to its end the margin of a relation may come and turn back, for the relation not to be touched."""


class IllPosed(Exception):
    """Why no reference is given."""


@dataclass
class Truth:
    theta: np.ndarray
    y: np.ndarray
    q: np.ndarray
    multiplier: np.ndarray
    a: np.ndarray
    switches: np.ndarray
    """Instants at which a relation or a known signal switches."""


@dataclass
class Point:
    y: list[float]
    q: list[float]
    multiplier: list[float]
    a: list[float]
    rates: list[float]


class Reference:
    def __init__(self, hidden: Hidden, end: float) -> None:
        self.hidden, self.end = hidden, end
        self.at, self.u, self.held = breaks_of(hidden, end)
        self.ops = Numbers()

    def signal(self, theta: float, piece: int) -> float:
        if self.hidden.features.signal == "none":
            return 0.0
        if self.hidden.features.signal == "zoh":
            return float(self.u[piece])
        return float(np.interp(theta, self.at, self.u))

    def point(self, theta: float, y: Any, piece: int) -> Point:
        """Everything that follows from the states."""
        hidden, ops = self.hidden, self.ops
        y = [float(v) for v in y]
        u = self.signal(theta, piece)
        m = hidden.features.chain
        q = [hidden.path(ops, theta, k) for k in range(m)]
        if hidden.k:
            q[0] -= hidden.k * np.sin(y[0])
        a: list[float] = []
        for k, layer in enumerate(hidden.layers):
            g = hidden.right_sides(ops, k, y, q, theta, u, float(self.held[k][piece]))
            a += [float(v) for v in layer.solve(ops, g)]
        rates = hidden.rates(ops, y, q, a, theta, u)
        multiplier = []
        if m:
            force = hidden.force_on_chain(ops, y, q, u)
            wanted = hidden.path(ops, theta, m) - force
            share = 1.0
            if hidden.k:
                wanted -= hidden.k * np.cos(y[0]) * rates[0]
                share += hidden.k * np.cos(y[0]) * float(hidden.b[0])
            multiplier = [float(wanted / share)]
            rates = [r + float(b) * multiplier[0] for r, b in zip(rates, hidden.b, strict=True)]
        return Point(y, q, multiplier, a, rates)

    def solve(self, theta: np.ndarray, y0: np.ndarray) -> Truth:
        self.ops.modes.clear()
        points: list[Point | None] = [None] * theta.size
        switches: list[float] = []
        y = np.array(y0, dtype=float)
        for piece in range(self.at.size - 1):
            t, stop = float(self.at[piece]), float(self.at[piece + 1])
            switches.append(t)
            self._settle(t, y, piece)
            while t < stop:
                t_next, y_next, dense, turned = self._advance(t, stop, y, piece)
                last = piece == self.at.size - 2 and t_next >= stop
                for k in np.flatnonzero((theta >= t) & ((theta < t_next) | (last & (theta <= t_next)))):
                    points[k] = self.point(float(theta[k]), dense(float(theta[k])) if y.size else [], piece)
                if turned:
                    self.point(t_next, y_next, piece)  # modes turn where the reference stands
                for name in turned:
                    self.ops.turn(name)
                if turned:
                    switches.append(t_next)
                    if len(switches) > MOST_PIECES:
                        raise IllPosed("very many switches")
                    self._check_leaving(t_next, y_next, piece, turned)
                t, y = t_next, y_next
        found = [p for p in points if p is not None]
        if len(found) != theta.size:
            raise IllPosed("no reference")
        columns = [
            np.array([getattr(p, f) for p in found]).reshape(theta.size, -1) for f in ("y", "q", "multiplier", "a")
        ]
        return Truth(theta, *columns, np.unique(switches))

    def _settle(self, t: float, y: np.ndarray, piece: int) -> None:
        """Modes anew after a known signal has jumped."""
        self.ops.modes.clear()
        for _ in range(3):
            self.point(t, y, piece)
        if any(abs(v) < 1e-6 for v in self.ops.margins.values()):
            raise IllPosed("starts on a switch")

    def _advance(self, t: float, stop: float, y: np.ndarray, piece: int) -> Any:
        """To the next switch or ``stop``: where that is, the states there, the trajectory up to it, what has turned."""
        names = sorted(self.ops.margins)

        def rates(theta: float, state: np.ndarray) -> list[float]:
            return self.point(theta, state, piece).rates if y.size else [0.0]

        solver = DOP853(rates, t, y if y.size else np.zeros(1), stop, rtol=1e-11, atol=1e-12, max_step=LONGEST_STEP)
        steps: list[tuple[float, Any]] = []
        turned: list[str] = []
        end = t
        while solver.status == "running" and not turned:
            solver.step()
            if solver.status == "failed" or not np.isfinite(solver.y).all() or np.abs(solver.y).max() > 1e4:
                raise IllPosed("the hidden equation blows up")
            dense, end = solver.dense_output(), float(solver.t)
            found = self._first_exit(names, float(solver.t_old), end, lambda at, d=dense: d(at)[: y.size], piece)
            if found:
                end, turned = found
            steps.append((end, dense))

        def trajectory(theta: float) -> np.ndarray:
            return next((d for upto, d in steps if theta <= upto), steps[-1][1])(theta)

        last = np.asarray(steps[-1][1](end) if turned else solver.y, dtype=float)[: y.size]
        self.point(end, last, piece)
        groups = {_group(name) for name in turned}
        turned = [n for n in names if n in turned or (_group(n) in groups and abs(self.ops.margins[n]) < 1e-9)]
        return end, last, trajectory, turned

    def _first_exit(
        self, names: list[str], begin: float, end: float, state: Callable[[float], Any], piece: int
    ) -> tuple[float, list[str]] | None:
        """The first instant of a step at which margins are used up, and whose they are."""

        def left(theta: float) -> np.ndarray:
            self.point(theta, state(theta), piece)
            return np.array([self.ops.margins[name] + BEYOND for name in names])

        if not names:
            return None
        at = np.linspace(begin, end, SAMPLES + 1)
        seen = np.array([left(theta) for theta in at])
        exits = []
        for k, name in enumerate(names):
            bracket = _first_bracket(at, seen[:, k], lambda theta, k=k: float(left(theta)[k]))
            if bracket:
                root = brentq(lambda theta, k=k: float(left(theta)[k]), *bracket, xtol=1e-15, rtol=4 * EPS)
                exits.append((float(root), name))
        first = min(exits)[0] if exits else end
        return (first, [name for root, name in exits if root - first < ONE_INSTANT]) if exits else None

    def _check_leaving(self, t: float, y: np.ndarray, piece: int, turned: list[str]) -> None:
        """Past the switch the new mode has to hold: its margin grows, and not too slowly."""
        before = self.point(t, y, piece)
        start = {n: self.ops.margins[n] for n in turned}
        dt = 1e-5
        ahead = np.array(before.y) + dt * np.array(before.rates)
        self.point(t + dt, ahead, piece)
        for name in turned:
            speed = (self.ops.margins[name] - start[name]) / dt
            if speed < 0:
                raise IllPosed("sliding along a relation")
            if speed < 0.02:
                raise IllPosed("grazing a relation")


def _first_bracket(
    at: np.ndarray, values: np.ndarray, function: Callable[[float], float]
) -> tuple[float, float] | None:
    """Two instants between which a function that is known at some falls below zero for the first time.

    Where it is small and turns back between three of them, its minimum is looked for.
    """
    small = 2.0 * float(np.abs(np.diff(values)).max())
    for k in range(at.size):
        before, after = max(k - 1, 0), min(k + 1, at.size - 1)
        if k and values[k] < 0 < values[before]:
            return float(at[before]), float(at[k])
        if values[before] <= 0 or not values[k] <= min(values[before], values[after], small):
            continue
        turn = minimize_scalar(function, bounds=(at[before], at[after]), method="bounded", options={"xatol": 1e-9})
        if turn.fun < 0:
            return float(at[before]), float(turn.x)
        if turn.fun < GRAZING and min(values[before], values[after]) > 10 * GRAZING:
            raise IllPosed("grazing a relation")
    return None


def _group(name: str) -> str:
    """Relations whose names agree before ``~`` switch at one instant, though rounding may find one of them only."""
    return name.partition("~")[0]


def growth(reference: Reference, theta: np.ndarray, y0: np.ndarray, truth: Truth) -> float:
    """By how much a small error of the start is magnified at most, in the states."""
    if not y0.size:
        return 1.0
    other = reference.solve(theta, y0 + 1e-6)
    return max(1.0, float(np.abs(other.y - truth.y).max() / 1e-6))
