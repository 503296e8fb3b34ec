"""Whether a formula jumps at the switch of one of its relations, found by computing.

Points on the switch are looked for, and the formula is compared for the pieces on its two sides: first at random
points, where the other relations are as they happen to be, then where symbols are of any size, then where the other
relations are what they would have to be for the formula to feel this one. Of `a & b & c & d` each is felt only where
all others hold, which random points seldom meet. At last the points are sought between the other switches and bends: a
relation may be felt only where a table of the same symbol is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.numerics.arrangements import (
    GAP_TOLERANCE,
    PARALLEL_TOLERANCE,
    Gaps,
    combinations,
    families_among,
    families_beside,
    positions,
    reach_values,
)
from grisaille.structure.bends import bends_of
from grisaille.structure.switch_sides import operations_on

if TYPE_CHECKING:
    from grisaille.structure.switching_pieces import SwitchingPiece

RANDOM_POINTS = 12
"""Random points tried for each relation."""
DECIDING_POINTS = 6
"""Points on the switch that decide."""
DIFFERENCE_ROUNDING = 1e-11
"""Differences below this part of the terms they are made of are rounding."""
SIDE_DISTANCE = 1e-6
"""Where a formula is looked at beside the switch, as a part of the distance from zero."""
MAX_COMBINATIONS = 1024
"""Of what other relations are, beside one switch; random ones where there are more."""
MAX_STARTS, SHARES = 64, (0.5, 0.2, 0.8, 0.35, 0.65)
"""Positions between other switches and bends from which points on the switch are looked for, and where between them."""
MAX_BASES = 4
"""Points from which those positions are looked for: bends may be hidden behind others."""
NEAR_PEAK = -1.0
"""Of the argument of an exponential, which is zero by rounding where that is below -745."""
MAX_VISITS = 24
"""Of these, if the formula would jump with them, for which a point is looked for."""
MAGNITUDE_RANGE = (-6.0, 6.0)
"""Powers of ten of symbols at further points."""
VANISHING_RATIO = 1e-2
"""A difference at the switch below this part of that beside it is what a square root makes of rounding: a bend."""

Matrix = np.ndarray
Families = list[list[tuple[int, float]]]


class Surroundings:
    """All relations of a formula, at a point."""

    def __init__(self, pieces: Sequence[SwitchingPiece], vector: ca.SX, binary: list[int]) -> None:
        self.kinds = [p.relation.kind for p in pieces]
        self.now = ca.Function("now", [vector], [ca.vertcat(*(p.relation.value for p in pieces))])
        self._gaps, self._vector, self.binary = ca.vertcat(*(p.relation.gap for p in pieces)), vector, binary
        self.columns = [i for i in range(vector.numel()) if i not in set(binary)]

    @cached_property
    def _with_slopes(self) -> ca.Function:
        return ca.Function("gaps", [self._vector], [self._gaps, ca.jacobian(self._gaps, self._vector)])

    def gaps(self, point: Matrix) -> tuple[Matrix, Matrix]:
        """Return values and slopes of all gaps."""
        values, slopes = self._with_slopes(point)
        return np.array(values.full()).ravel(), np.array(slopes.full())

    def gaps_of(self, vector: ca.SX) -> ca.SX:
        """Return all gaps as formulas of a vector of symbols."""
        return ca.Function("gaps", [self._vector], [self._gaps])(vector)

    def marks(self, point: Matrix) -> Matrix:
        """Return what all relations are."""
        return np.array(self.now(point).full()).ravel()


class Switch:
    """The switch of piece ``k``: random points on it, and the formula on its two sides."""

    def __init__(
        self,
        change: ca.Function,
        surroundings: Surroundings,
        k: int,
        piece: SwitchingPiece,
        vector: ca.SX,
        columns: list[int],
    ) -> None:
        self.change, self.around, self.k, self.columns = change, surroundings, k, columns
        self.kind = piece.relation.kind
        self.size, self.binary = int(vector.numel()), surroundings.binary
        self.gap = ca.Function("gap", [vector], [piece.relation.gap, ca.jacobian(piece.relation.gap, vector)])

    def jumps(self, everywhere: bool) -> bool:
        """Return whether the formula jumps at some point of the switch, or at all that were found."""
        random = np.random.default_rng(11)
        on_switch: list[bool | None] = []
        beside: list[bool | None] = []
        for sample in range(RANDOM_POINTS):
            point = random.uniform(*((0.3, 1.7) if sample % 3 else (-2.0, 2.0)), self.size)
            if self.binary:  # all off, all on, then mixed: what one hides behind the other is seen
                point[self.binary] = random.integers(0, 2, len(self.binary)) if sample > 1 else sample
            on = self._on_switch(point)
            (beside if on is None else on_switch).append(self._differs(point, on))
            if sum(d is not None for d in on_switch) == DECIDING_POINTS:
                break
        seen = [d for d in on_switch if d is not None] or [d for d in beside if d is not None]
        if everywhere or any(seen):
            return bool(seen) and all(seen) if everywhere else True
        if self._jumps_far_away(random) or self._jumps_with_others(random):
            return True
        return not self._is_felt(random) and self._jumps_between_others(random)

    def _is_felt(self, random: np.random.Generator) -> bool:
        """Return whether every entry of the formula feels the relation at some random point: then it bends at the
        switch.
        """
        felt: Matrix = np.zeros(self.change.numel_out(0), dtype=bool)
        for _ in range(RANDOM_POINTS):
            felt |= np.nan_to_num(self._across(random.uniform(-2.0, 2.0, self.size))[0], nan=1.0) != 0.0
            if felt.all():
                return True
        return False

    def _jumps_far_away(self, random: np.random.Generator) -> bool:
        """Return whether the formula jumps at some point of the switch where symbols are of any size."""
        for _ in range(DECIDING_POINTS):
            point = random.choice([-1.0, 1.0], self.size) * 10.0 ** random.uniform(*MAGNITUDE_RANGE, self.size)
            if self.binary:
                point[self.binary] = random.integers(0, 2, len(self.binary))
            on = self._on_switch(point)
            if on is not None and self._differs(point, on):
                return True
        return False

    def _jumps_with_others(self, random: np.random.Generator) -> bool:
        """Return whether the formula jumps where other relations are what they seldom are at random points: of `a & b &
        c & d` each is felt only where all others hold. Points are looked for with what they would have to be.
        """
        felt = self.change.jac_sparsity(0, 1)
        feels = {j for j in range(felt.size2()) if j != self.k and felt.colind(j + 1) > felt.colind(j)}
        on = self._on_switch(random.uniform(0.3, 1.7, self.size)) if feels else None
        if on is None:
            return False
        values, slopes = self.around.gaps(on)
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            return False
        families = families_beside(values, slopes, self.k, sorted(feels))
        visited: set[tuple[float, ...]] = set()
        for changes in self._combined(families, random):
            marks = self._with_changes(on, values, slopes, families, changes)
            if len(visited) >= MAX_VISITS:
                return False
            if tuple(marks) in visited or not self._would_jump(on, marks):
                continue
            visited.add(tuple(marks))
            if self._jumps_where(on, values, families, changes):
                return True
        return False

    def _jumps_between_others(self, random: np.random.Generator) -> bool:
        """Return whether the formula jumps at points of the switch that are found from between other switches and
        bends: where `sin(50 s) > 0.999` is felt only as long as a table of s, or `maximum(0, 1 - abs(s - 4))`, is not
        zero.
        """
        bases = [random.uniform(0.3, 1.7, self.size)]
        for number in range(MAX_BASES):
            if number == len(bases):
                break
            for start in self._starts_between_others(bases[number], random):
                on = self._on_switch(start)
                if on is not None and self._differs(on, on):
                    return True
                bases += [start] if len(bases) < MAX_BASES else []
        return False

    def _starts_between_others(self, base: Matrix, random: np.random.Generator) -> Iterator[Matrix]:
        others, (peaks, gaps) = self._others
        values, slopes = others(base)
        if not (gaps or peaks) or not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            return
        families = families_among(values, slopes, gaps)
        families = [f for f in families if not self._is_linear_in(f, base)]
        heads = [f[0][0] for f in families]
        goals = [([row], np.array([NEAR_PEAK])) for row in peaks]
        for share in SHARES if families else ():
            combined = self._combined(families, random, MAX_STARTS if share == SHARES[0] else MAX_STARTS // 4, share)
            goals += [(heads, values[heads] + changes) for changes in combined]
        for rows, goal in goals:
            point = reach_values(others, base, rows, goal, self.columns)
            if point is not None:
                yield point

    @cached_property
    def _others(self) -> tuple[Gaps, tuple[list[int], list[int]]]:
        """Return the own gap, arguments of exponentials, and gaps of relations and bends, as far as what the relation
        changes by depends on them; the rows of the last two.
        """
        vector, marks = ca.SX.sym("vector", self.size), ca.SX.sym("marks", len(self.around.kinds))
        sides = ca.SX.sym("sides", 2)
        change = self.change(vector, marks, sides)[0]
        peaks = [values[0] for _, values in operations_on(change, vector, frozenset((ca.OP_EXP,)))]
        felt = self.change.jac_sparsity(0, 1)
        feels = [j for j in range(felt.size2()) if j != self.k and felt.colind(j + 1) > felt.colind(j)]
        relations = self.around.gaps_of(vector)
        column = ca.vertcat(relations[self.k], *peaks, relations[feels], *bends_of(change, vector))
        function = ca.Function("others", [vector, marks, sides], [column, ca.jacobian(column, vector)])

        def others(point: Matrix) -> tuple[Matrix, Matrix]:
            found, slopes = function(point, self.around.marks(point), np.array(self._sides(point)))
            return np.array(found.full()).ravel(), np.array(slopes.full())

        first = 1 + len(peaks)
        return others, (list(range(1, first)), list(range(first, column.numel())))

    def _is_linear_in(self, family: list[tuple[int, float]], base: Matrix) -> bool:
        """Return whether the own gap is a linear function of the gaps of this family: its switch has one place among
        them.
        """
        others, head = self._others[0], family[0][0]
        values, slopes = others(base)
        own, first = slopes[0], slopes[head]
        ratio = float(own @ first) / float(first @ first)
        if np.linalg.norm(own - ratio * first) > np.sqrt(PARALLEL_TOLERANCE) * np.linalg.norm(own):
            return False
        change = float(np.max(np.abs([place for _, place in family]))) + 1.0
        point = reach_values(others, base, [head], values[[head]] + change, self.columns)
        if point is None:
            return False
        there, predicted = float(others(point)[0][0]), values[0] + ratio * change
        return bool(abs(there - predicted) <= GAP_TOLERANCE * (abs(there) + abs(values[0]) + abs(ratio * change)))

    def _combined(
        self, families: Families, random: np.random.Generator, most: int = MAX_COMBINATIONS, share: float = 0.5
    ) -> Iterator[list[float]]:
        """Yield changes of the first gaps of all families."""
        choices = [positions(f, share) for f in families]
        for chosen in combinations([len(c) for c in choices], most, random):
            yield [c[i] for c, i in zip(choices, chosen, strict=True)]

    def _with_changes(
        self, on: Matrix, values: Matrix, slopes: Matrix, families: Families, changes: list[float]
    ) -> Matrix:
        """Return what relations are where the families have moved so far."""
        marks = self.around.marks(on)
        for family, change in zip(families, changes, strict=True):
            head = slopes[family[0][0]]
            for j, _ in family:
                moved = float(values[j] + change * (slopes[j] @ head) / (head @ head))
                marks[j] = _relation(self.around.kinds[j], moved)
        return marks

    def _would_jump(self, on: Matrix, marks: Matrix) -> bool:
        change, size = (np.array(part.full()).ravel() for part in self.change(on, marks, np.array(self._sides(on))))
        return bool((np.abs(change) > DIFFERENCE_ROUNDING * size).any())

    def _jumps_where(self, on: Matrix, values: Matrix, families: Families, changes: list[float]) -> bool:
        heads = [f[0][0] for f in families]
        level = np.round(values[self.k]) if self.kind in ("floor", "ceil") else 0.0
        goals = np.array([level, *(values[heads] + changes)])
        point = reach_values(self.around.gaps, on, [self.k, *heads], goals, self.around.columns)
        there = None if point is None else self._on_switch(point)
        return there is not None and bool(self._differs(there, there))

    def _differs(self, point: Matrix, on: Matrix | None) -> bool | None:
        """Return whether the two sides differ at a point; None where the formula has no value there."""
        change, size = self._across(point if on is None else on)
        if not (np.isfinite(change).all() and np.isfinite(size).all()):
            return None
        there = np.abs(change) > DIFFERENCE_ROUNDING * size
        if on is None or not there.any():
            return bool(there.any())
        # each symbol to the side on which it makes the gap larger: a gap that is homogeneous does not change along on
        away = np.where(on[self.columns] != 0, np.abs(on[self.columns]), np.abs(point[self.columns]))
        away = np.copysign(away, np.array(self.gap(on)[1].full()).ravel()[self.columns])
        beside = []
        for side in (SIDE_DISTANCE, -SIDE_DISTANCE):
            near = on.copy()
            near[self.columns] += side * away
            beside.append(np.nan_to_num(np.abs(self._across(near)[0]), nan=0.0, posinf=0.0))
        return bool((there & (np.abs(change) > VANISHING_RATIO * np.maximum(*beside))).any())

    def _across(self, point: Matrix) -> tuple[Matrix, Matrix]:
        """Return the change of the formula with the piece, and the size of its terms."""
        marks = self.around.marks(point)
        change, size = self.change(point, marks, np.array(self._sides(point)))
        return np.array(change.full()).ravel(), np.array(size.full()).ravel()

    def _sides(self, point: Matrix) -> tuple[float, float]:
        if self.kind == "sign":
            return -1.0, 1.0
        if self.kind in ("floor", "ceil"):
            level = float(np.round(np.nan_to_num(float(self.gap(point)[0]))))
            return (level - 1.0, level) if self.kind == "floor" else (level, level + 1.0)
        return 0.0, 1.0

    def _on_switch(self, point: Matrix) -> Matrix | None:
        """Return a point on the switch, reached by moving the symbols in ``columns`` along the gap's gradient."""
        point, goal = point.copy(), 0.0
        for iteration in range(30):
            found, slope = (np.array(part.full()).ravel() for part in self.gap(point))
            along = slope[self.columns]
            with np.errstate(over="ignore"):  # infinite is noticed in the next line
                square = float(along @ along)
            if not (np.isfinite(found).all() and 0.0 < square < np.inf):
                return None
            if iteration == 0 and self.kind in ("floor", "ceil"):
                goal = float(np.round(found[0]))
            step = (goal - found[0]) / square * along
            point[self.columns] += step
            if (np.abs(step) <= 1e-15 * np.abs(point[self.columns])).all():
                return point
        return point if np.abs(step).max() <= 1e-13 * (1.0 + np.abs(point[self.columns]).max()) else None


def _relation(kind: str, gap: float) -> float:
    """Return what a relation is where its gap has this value."""
    if kind in ("floor", "ceil", "sign"):
        return float({"floor": np.floor, "ceil": np.ceil, "sign": np.sign}[kind](gap))
    return float({"lt": gap < 0, "le": gap <= 0, "eq": gap == 0, "ne": gap != 0}[kind])
