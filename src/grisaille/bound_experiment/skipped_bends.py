"""Bumps of tables and short conditions of states that the steps along a given path pass without meeting them.

Steps are compared with steps of half their length, which sees nothing of a bump that neither meets. So the path itself
is asked: where, inside a step, do the rates bend with the states and bend again? There the rates are integrated from
bend to bend and compared with the quadrature that the steps stand for,

    missed = h | ∫ f(t + s h, x(s)) ds − ∑_j b_j f(t + c_j h, x(c_j)) | / allowed.

A step that passes fewer than two bends has its ends on both sides of it and is not looked at. Algebraic unknowns are
solved for along the way. Bends that turn more often than the points between which a path is given are not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import Cache
from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_over_points
from grisaille.structure.bends import bends_of

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
MAX_SECANTS = 8
FOUND = 1e-10
"""Part of a step by which secants move a bend that is found."""
MAX_TURNS = 4
MAX_DEPTH = 2
"""How often bends are looked for behind bends that were found."""
MAX_KEPT = 100_000
"""Points in one call for which the function is kept."""
MAX_ROOTS = 200_000
"""Bends along a path, at most: more of them are no bumps."""
NEWTON_STEPS = 3
GAUSS = 0.5 + 0.5 * np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
NARROW_SHARE = 0.1
"""Of the largest part of what is missed: parts that count where the width of a bump is told."""


@dataclass(frozen=True, eq=False)
class SolutionPath:
    """Steps (K,) of a trajectory, each by values at M + 1 equal distances, straight lines between."""

    times: Floats
    """(K, M + 1)"""
    states: Floats
    """(K, M + 1, n)"""
    algebraic: Floats
    """(K, M + 1, nz)"""
    signals: Floats
    """(K, M + 1, nu)"""

    @property
    def lengths(self) -> Floats:
        return np.asarray(self.times[:, -1] - self.times[:, 0])

    @cached_property
    def rows(self) -> Floats:
        """(K (M + 1), 1 + n + nz + nu): times, states, algebraic unknowns and signals side by side."""
        columns = [self.times[:, :, None], self.states, self.algebraic, self.signals]
        joined = np.concatenate(columns, axis=2)
        return joined.reshape(-1, joined.shape[2])

    def at(self, steps: Whole, shares: Floats) -> Floats:
        """Return the path at shares of steps."""
        parts = self.times.shape[1] - 1
        j = np.clip((shares * parts).astype(np.int64), 0, parts - 1)
        along, first = (shares * parts - j)[:, None], steps * (parts + 1) + j
        left = self.rows[first]
        return np.asarray(left + along * (self.rows[first + 1] - left))

    def columns(self, rows: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return times, states, algebraic unknowns and signals of such rows."""
        a, b = 1 + self.states.shape[2], 1 + self.states.shape[2] + self.algebraic.shape[2]
        return rows[:, 0], rows[:, 1:a], rows[:, a:b], rows[:, b:]


@dataclass(frozen=True)
class SkippedBump:
    """A bump that lies inside a step and that the step does not meet."""

    step: int
    text: str
    """A gap that is zero at one of its bends, in the user's names."""
    time: float
    width: float
    """In time."""
    share: float
    """Of the step."""

    @property
    def more(self) -> int:
        """In how many parts the step meets it."""
        return int(np.ceil(min(2.0 / max(self.share, 1e-12), 1e12)))


@dataclass(frozen=True, eq=False)
class BendSearch:
    """The gaps that are zero where rates have a kink in states or algebraic unknowns, and the rates."""

    gaps: ca.SX
    names: Mapping[int, str]
    values: ca.Function
    rates: ca.Function
    residual: ca.Function | None

    @classmethod
    def of(
        cls, arguments: Sequence[ca.SX], rates: ca.SX, residual: ca.SX, names: Mapping[int, str]
    ) -> BendSearch | None:
        """Return the search for bends with states; None for formulas that are smooth in them.

        arguments : t, x, z, u, q of the formulas
        names : the user's name of every symbol, by its hash
        """
        t, x, z, u, q = arguments
        moving = ca.vertcat(x, z)
        gaps, wholes = bends_of(ca.densify(ca.vertcat(rates, residual)), moving)
        rows = [*ca.vertsplit(gaps)] if gaps.numel() else []
        rows += [ca.sin(np.pi * w) for w in (ca.vertsplit(wholes) if wholes.numel() else [])]
        if not rows:
            return None
        inputs = [t, x, z, u, q]
        solved = None
        if z.numel():
            solved = ca.Function("residual", inputs, [ca.densify(residual), ca.densify(ca.jacobian(residual, z))])
        return cls(
            ca.vertcat(*rows), names, ca.Function("gaps", inputs, [ca.densify(ca.vertcat(*rows))]),
            ca.Function("rates", inputs, [ca.densify(rates)]), solved,
        )  # fmt: skip

    def passed(
        self, path: SolutionPath, q: Floats, allowed: Floats, nodes: Floats, weights: Floats
    ) -> list[SkippedBump]:
        """Return the bumps that steps pass, one for each such step.

        allowed : (n,) what a step may miss of each state
        nodes, weights : c and b of the quadrature that the steps stand for
        """
        steps, shares, of = self._roots(path, q)
        order = np.lexsort((shares, steps))
        steps, shares, of = steps[order], shares[order], of[order]
        _, place, count = np.unique(steps, return_inverse=True, return_counts=True)
        several = count[place] > 1
        steps, shares, of = steps[several], shares[several], of[several]
        met, first, count = np.unique(steps, return_index=True, return_counts=True)
        if not len(met):
            return []
        left, right = np.insert(shares, first, 0.0), np.insert(shares, first + count, 1.0)
        edges, width = first + np.arange(len(met)), right - left
        inner = (left[:, None] + width[:, None] * GAUSS).ravel()
        pieces = np.repeat(met, count + 1)
        parts = self.rates_at(path, np.repeat(pieces, len(GAUSS)), inner, q).reshape(len(pieces), len(GAUSS), -1)
        means = np.einsum("g,pgi->pi", WEIGHTS, parts)
        there = self.rates_at(path, np.repeat(met, len(nodes)), np.tile(nodes, len(met)), q)
        usual = np.einsum("c,kci->ki", weights, there.reshape(len(met), len(nodes), -1))
        missed = path.lengths[met, None] * np.abs(np.add.reduceat(width[:, None] * means, edges) - usual) / allowed
        found = []
        for k in np.flatnonzero((missed > 1.0).any(axis=1)):
            own, i = slice(edges[k] + 1, edges[k] + count[k]), int(np.argmax(missed[k]))
            apart = width[own] * np.abs(means[own, i] - usual[k, i])
            counted = np.flatnonzero(apart > NARROW_SHARE * apart.max(initial=0.0))
            if counted.size and np.isfinite(missed[k]).all():
                share, j = float(width[own][counted].min()), int(first[k] + counted[0])
                t = path.at(met[k : k + 1], 0.5 * (shares[j : j + 1] + shares[j + 1 : j + 2]))[0, 0]
                h = float(path.lengths[met[k]])
                found.append(SkippedBump(int(met[k]), self._text(int(of[j])), float(t), h * share, share))
        return found

    def _text(self, i: int) -> str:
        gap = self.gaps[i]
        symbols = ca.symvar(gap)
        named = [ca.SX.sym(self.names.get(s.element_hash(), str(s))) for s in symbols]
        text = str(ca.substitute(gap, ca.vertcat(*symbols), ca.vertcat(*named)))
        if text.startswith("(") and text.endswith(")") and ")" not in text[1:-1]:
            text = text[1:-1]
        return text if len(text) < 80 else f"{text[:77]}…"

    def _roots(self, path: SolutionPath, q: Floats) -> tuple[Whole, Floats, Whole]:
        """Return steps, shares of them and entries of all bends."""
        count, points = path.times.shape
        grid = np.linspace(0.0, 1.0, points)
        at_nodes = np.nan_to_num(self._evaluated(self.values, *path.columns(path.rows), q)).reshape(count, points, -1)
        sign = at_nodes < 0
        k, j, i = np.nonzero(sign[:, 1:] != sign[:, :-1])
        between = _Brackets(k, grid[j], grid[j + 1], i, at_nodes[k, j, i], at_nodes[k, j + 1, i])
        # bends are hidden behind those of either kind
        found = [self._solved(path, q, _Brackets.joined([between, self._turns(path, q, at_nodes, grid)]))]
        for _ in range(MAX_DEPTH):
            hidden = self._hidden(path, q, at_nodes, grid, *found[-1])
            if not len(hidden.steps):
                break
            found.append(self._solved(path, q, hidden))
        steps, shares, of = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if len(steps) > MAX_ROOTS:
            return steps[:0], shares[:0], of[:0]
        _, once = np.unique(np.round(np.stack([steps, of, shares * 1e9]), 0), axis=1, return_index=True)
        return steps[once], shares[once], of[once]

    def _turns(self, path: SolutionPath, q: Floats, values: Floats, grid: Floats) -> _Brackets:
        """Return brackets where gaps come to zero and go back between neighbouring points."""
        size = np.abs(values)
        low = (size[:, 1:-1] <= size[:, :-2]) & (size[:, 1:-1] <= size[:, 2:])
        same = ((values[:, 1:-1] < 0) == (values[:, :-2] < 0)) & ((values[:, 1:-1] < 0) == (values[:, 2:] < 0))
        k, j, i = np.nonzero(low & same)
        at = [grid[j], grid[j + 1], grid[j + 2]]
        v = [values[k, j, i], values[k, j + 1, i], values[k, j + 2, i]]
        done = [_Brackets.none()]
        for _ in range(MAX_TURNS):
            if not len(k):
                break
            turn = _vertex(at, v)
            there = self._gaps(path, k, turn, q)[np.arange(len(k)), i]
            beyond = (there < 0) != (v[1] < 0)
            done.append(_Brackets(*(c[beyond] for c in (k, at[0], turn, i, v[0], there))))
            done.append(_Brackets(*(c[beyond] for c in (k, turn, at[2], i, there, v[2]))))
            nearer = ~beyond & (np.abs(there) < 0.9 * np.abs(v[1]))
            right = turn > at[1]
            at = [np.where(right, at[1], at[0]), turn, np.where(right, at[2], at[1])]
            v = [np.where(right, v[1], v[0]), there, np.where(right, v[2], v[1])]
            k, i, at, v = k[nearer], i[nearer], [a[nearer] for a in at], [a[nearer] for a in v]
        return _Brackets.joined(done)

    def _hidden(
        self, path: SolutionPath, q: Floats, values: Floats, grid: Floats, steps: Whole, shares: Floats, of: Whole
    ) -> _Brackets:
        """Return brackets of gaps that have another sign at a bend than on both sides of it."""
        if not len(steps):
            return _Brackets.none()
        j = np.clip((shares * (len(grid) - 1)).astype(np.int64), 0, len(grid) - 2)
        there = self._gaps(path, steps, shares, q)
        before, after = values[steps, j], values[steps, j + 1]
        other = ((before < 0) == (after < 0)) & ((there < 0) != (before < 0))
        other[np.arange(len(of)), of] = False
        r, i = np.nonzero(other)
        k, s, v = steps[r], shares[r], there[r, i]
        left = _Brackets(k, grid[j[r]], s, i, before[r, i], v)
        right = _Brackets(k, s, grid[j[r] + 1], i, v, after[r, i])
        return _Brackets.joined([left, right])

    def _solved(self, path: SolutionPath, q: Floats, b: _Brackets) -> tuple[Whole, Floats, Whole]:
        """Solve for the points at which gaps are zero, by the Illinois rule."""
        left, right, at_left, at_right = b.left.copy(), b.right.copy(), b.at_left.copy(), b.at_right.copy()
        share = _secant(left, right, at_left, at_right)
        for _ in range(MAX_SECANTS if len(b.steps) else 0):
            there = self._gaps(path, b.steps, share, q)[np.arange(len(share)), b.of]
            is_left = (there < 0) == (at_left < 0)
            at_right = np.where(is_left, 0.5 * at_right, there)
            at_left = np.where(is_left, there, 0.5 * at_left)
            left, right = np.where(is_left, share, left), np.where(is_left, right, share)
            before, share = share, _secant(left, right, at_left, at_right)
            if np.abs(share - before).max(initial=0.0) < FOUND:
                break
        return b.steps, share, b.of

    def _gaps(self, path: SolutionPath, steps: Whole, shares: Floats, q: Floats) -> Floats:
        return np.nan_to_num(self._evaluated(self.values, *path.columns(path.at(steps, shares)), q))

    def rates_at(self, path: SolutionPath, steps: Whole, shares: Floats, q: Floats) -> Floats:
        """Return the rates at shares of steps, (points, n)."""
        return self.rates_of(*path.columns(path.at(steps, shares)), q)

    def rates_of(self, t: Floats, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats:
        """Return the rates at points, (points, n)."""
        return self._evaluated(self.rates, t, x, z, u, q)

    def _evaluated(self, function: ca.Function, t: Floats, x: Floats, z: Floats, u: Floats, q: Floats) -> Floats:
        count = len(t)
        if not count:
            return np.zeros((0, function.numel_out(0)))
        # the last point again, up to one of eight numbers of points below twice as many
        points, nz = count + -count % max(1, 2 ** (count.bit_length() - 4)), z.shape[1]
        if points > count:
            which = np.minimum(np.arange(points), count - 1)
            t, x, z, u = (v[which] for v in (t, x, z, u))
        with np.errstate(all="ignore"):
            for _ in range(NEWTON_STEPS if self.residual is not None else 0):
                assert self.residual is not None
                g, slopes = self._many(self.residual, points)(t, x, z, u, q)
                z = z - _solve(slopes.reshape(points, nz, nz).swapaxes(1, 2), g.reshape(points, nz))
            return self._many(function, points)(t, x, z, u, q)[0].reshape(points, -1)[:count]

    def _many(self, function: ca.Function, points: int) -> FlatEvaluation:
        """Return a function of all points in one call."""
        make = partial(flat_over_points, function, points, (4,))
        return make() if points > MAX_KEPT else self._kept.get((function.name(), points), make)

    @cached_property
    def _kept(self) -> Cache[FlatEvaluation]:
        return Cache(32)


@dataclass(frozen=True, eq=False)
class _Brackets:
    """Shares of steps between which entries of the gaps change their sign."""

    steps: Whole
    left: Floats
    right: Floats
    of: Whole
    at_left: Floats
    at_right: Floats

    @classmethod
    def none(cls) -> _Brackets:
        w, f = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(w, f, f, w, f, f)

    @classmethod
    def joined(cls, parts: Sequence[_Brackets]) -> _Brackets:
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(p, n) for p in parts]) for n in names))


def _secant(left: Floats, right: Floats, at_left: Floats, at_right: Floats) -> Floats:
    with np.errstate(all="ignore"):
        share = left + (right - left) * at_left / (at_left - at_right)
    middle = 0.5 * (left + right)
    return np.where((share >= left) & (share <= right), share, middle)


def _vertex(at: list[Floats], v: list[Floats]) -> Floats:
    """Return where the parabola through three values has its extremum; the middle where that lies outside of them."""
    with np.errstate(all="ignore"):
        first, second = (v[1] - v[0]) / (at[1] - at[0]), (v[2] - v[1]) / (at[2] - at[1])
        turn = 0.5 * (at[0] + at[1]) - 0.5 * first * (at[2] - at[0]) / (second - first)
    return np.where((turn > at[0]) & (turn < at[2]), turn, at[1])


def _solve(A: Floats, b: Floats) -> Floats:
    """Return A⁻¹ b of every point; no step where A is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.zeros_like(b)
