"""The search for a consistent start: states first, then the implicit unknowns at those states.

Hidden constraints contain states only, 0 = c(t, x, u, p), so that x is found among them by its wishes alone, and

    0 = residual(t, x, z, u, p)

for z with x held. An implicit unknown can thus never pull a state off its wish, not even where the residual has no
slope in z at the guess. Only where no z is found, where a demand speaks of an implicit unknown, or for a steady state,
are x and z searched together, and states give way.

Each part is a damped Gauss–Newton iteration on the hierarchy of wishes. Where it fails, guesses moved off their first
values are tried, then a homotopy H(w) = (1 − λ) H(w₀).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grisaille.structure.starts.acceptance import FAR_BELOW, allowances, equations_hold, unit_of
from grisaille.structure.starts.declared_root import root_at_starts
from grisaille.structure.starts.hierarchy import solve_levels, solve_sparse
from grisaille.structure.starts.nearest_root import nearest_root
from grisaille.structure.starts.optimality import polish
from grisaille.structure.starts.piece_search import search_among_pieces
from grisaille.structure.starts.piecewise_newton import newton_through_pieces
from grisaille.structure.starts.problem import MISS_TOLERANCE, StartProblem, are_finite, is_nearer, row_sizes
from grisaille.structure.starts.refusal import refuse_start, refuse_undefined
from grisaille.structure.starts.rounded_misses import without_rounded_misses
from grisaille.structure.starts.start_units import UnknownUnits, sizes_of_unknowns, units_of

if TYPE_CHECKING:
    from scipy.sparse import csc_array

MAXIMUM_ITERATIONS = 60
CORRECTION_TOLERANCE = 1e-11
"""On scaled corrections and scaled residuals; starts enter every later digit."""
EQUATION_ROUNDING = 64 * np.finfo(float).eps
"""Of the terms of an equation: what their sum may differ from zero by, at the solution."""
MAX_NOMINAL_VALUES = 1e4
"""Nominal values from which on an unknown may be running away from equations that have no solution."""


class StartIterate(NamedTuple):
    """The point at which an iteration ended."""

    w: np.ndarray
    holds: bool
    """Whether everything hard holds."""
    settled: bool
    """Whether the wishes are met as well as they can be, too."""


@dataclass(frozen=True, eq=False)
class StartPart:
    """The equations and unknowns that are searched together, the others being held."""

    rows: np.ndarray
    columns: np.ndarray
    square: bool = False
    """Whether the equations determine the unknowns without any wish."""


def solve_start(problem: StartProblem, guess: np.ndarray, *, among_several: bool) -> np.ndarray:
    """Return the consistent point (x, z) that meets the wishes as well as possible; refused by name where there is
    none.

    among_several : whether other roots than the guess's are looked for
    """
    owner = problem.owner
    may_have_several = among_several and owner.may_have_several_roots
    found = _solve(problem, guess, among_several, may_have_several)
    # the first of many solutions is found as all later ones are, so that it has their bits
    if may_have_several and not owner.may_have_several_roots:
        return _solve(problem, guess, among_several, False)
    return found


def _solve(problem: StartProblem, guess: np.ndarray, among_several: bool, may_have_several: bool) -> np.ndarray:
    if not may_have_several and problem.holds_already(guess):
        return guess
    found = _state_by_state(problem, guess, among_several, may_have_several) if problem.is_separable else None
    if found is None:
        found = _together(problem, guess)
    return without_rounded_misses(problem, found.w if found.settled else polish(problem, found.w))


def _state_by_state(
    problem: StartProblem, guess: np.ndarray, among_several: bool, may_have_several: bool
) -> StartIterate | None:
    states, implicit = state_part(problem), implicit_part(problem)
    found = find_states(problem, guess, states)
    if found is None or not implicit.columns.size:
        return found
    start = _finite(problem, found.w, implicit)
    if start is None:
        return None
    root = (_nearest if may_have_several else first_root)(problem, start, implicit)
    if root is None:
        return None
    if among_several and not may_have_several:
        root = root_at_starts(problem, root, start, implicit, first_root)
    return root._replace(settled=found.settled)


def _nearest(problem: StartProblem, start: np.ndarray, part: StartPart) -> StartIterate | None:
    """Return z at the states of ``start``: the root nearest to the wishes."""
    first = newton(problem, start, start, part)
    roots = nearest_root(problem, start, first.w if first.holds else None)
    problem.note = roots.note
    problem.owner.remember(is_single=first.holds and roots.count == 1)
    if roots.nearest is None:
        return first_root(problem, start, part)
    if first.holds and roots.nearest is first.w:
        return first
    return newton(problem, roots.nearest, roots.nearest, part)


def state_part(problem: StartProblem) -> StartPart:
    system = problem.owner.system
    demands = np.arange(problem.initial_rows + len(problem.demands)) + system.nc + system.nz
    return StartPart(np.concatenate([np.arange(system.nc), demands]), np.arange(system.nx))


def implicit_part(problem: StartProblem) -> StartPart:
    system = problem.owner.system
    return StartPart(system.nc + np.arange(system.nz), system.nx + np.arange(system.nz), square=True)


def find_states(problem: StartProblem, guess: np.ndarray, part: StartPart) -> StartIterate | None:
    """Return x that satisfies constraints and demands, its wishes met in their order; looked for once more in units of
    the equations where declared starts are missed, or nothing is found, in units of nominal values.
    """
    found = _find_states(problem, guess, part)
    missed = {} if found is None else problem.missed(found.w)
    if found is not None and not missed:
        return found
    sized = in_units_of_equations(problem, guess, part)
    other = None if sized is None else _find_states(sized, guess, part)
    if other is None or (found is not None and len(problem.missed(other.w)) >= len(missed)):
        return found
    return other


def _find_states(problem: StartProblem, guess: np.ndarray, part: StartPart) -> StartIterate | None:
    if not part.rows.size and problem.states_are_free:
        w = guess.copy()
        w[part.columns] = problem.first_guess()[part.columns]
        return StartIterate(w, True, True)
    start = _finite(problem, guess, part)
    if start is None:
        return None
    best = first_root(problem, start, part)
    if best is None or not part.rows.size or not problem.undeclared_states.size:
        return best
    # where all unknowns are far below their nominal values, misses are seen in units of their own
    unit = unit_of(best.w / problem.owner.nominal)
    fewest = [miss / unit for miss in problem.misses(best.w)]
    if max(fewest[:-1], default=0.0) < MISS_TOLERANCE:
        return best
    # a constraint without slope at zero, y in x² + y² = L², moves declared states instead: look beside it
    for moved in _moved_in_all_units(problem, start, part, problem.undeclared()):
        trial = newton(problem, moved, start, part)
        if trial.holds and is_nearer(missed := [miss / unit for miss in problem.misses(trial.w)], fewest):
            best, fewest = trial, missed
    return best


def in_units_of_equations(problem: StartProblem, guess: np.ndarray, part: StartPart) -> StartProblem | None:
    """Return the same start with other sizes of unknowns; None where nominal values describe them."""
    _, slope = _linearised(problem, guess, part, 0.0)
    if not part.rows.size or not are_finite(slope):
        return None
    scale, free = problem.owner.nominal, ~problem.owner.has_nominal
    sizes = sizes_of_unknowns(slope, (guess / scale)[part.columns], free[part.columns])
    if sizes is None:
        return None
    nominal = scale.copy()
    nominal[part.columns] *= sizes
    return problem.with_nominal(nominal)


def first_root(problem: StartProblem, guess: np.ndarray, part: StartPart) -> StartIterate | None:
    """Return a solution near the guess, or where a moved guess or a homotopy leads."""
    for start in chain([guess], _all_moved(problem, guess, part)):
        found = newton(problem, start, start, part)
        if found.holds:
            return found
        near = newton_through_pieces(problem, start, part) if part.square else None
        if near is not None and (found := newton(problem, near, near, part)).holds:
            return found
        pieces = search_among_pieces(newton, problem, start, part)
        if pieces is not None and pieces.holds:
            return pieces
    found = _homotopy(problem, guess, part)
    return found if found.holds else None


def _together(problem: StartProblem, guess: np.ndarray) -> StartIterate:
    """Return states and implicit unknowns at once."""
    part = StartPart(np.arange(len(problem.residual(guess))), np.arange(len(guess)))
    start = _finite(problem, guess, part)
    if start is None:
        refuse_undefined(problem, guess)
    if start is not guess:
        # zero lies outside the model's domain: the moved values are what undeclared states wish to be
        problem.zero = start[: len(problem.zero)].copy()
    for trial in chain([start], _all_moved(problem, start, part)):
        found = newton(problem, trial, trial, part)
        if not found.holds and len(part.rows) == len(part.columns):
            near = newton_through_pieces(problem, trial, part)
            found = found if near is None else newton(problem, near, near, part)
        if found.holds:
            return found
    found = _homotopy(problem, start, part)
    sized = None if found.holds else in_units_of_equations(problem, start, part)
    found = found if sized is None else newton(sized, start, start, part)
    if not found.holds:
        refuse_start(problem, found.w, MAXIMUM_ITERATIONS)
    return found


def _finite(problem: StartProblem, guess: np.ndarray, part: StartPart) -> np.ndarray | None:
    """Return a point near the guess where the part's equations have values: its undeclared entries are moved off
    zero.
    """
    if np.isfinite(problem.residual(guess)[part.rows]).all():
        return guess
    free = np.zeros(len(guess))
    free[part.columns] = problem.undeclared()[part.columns]
    for shift in (1.0, 1e-3, -1.0, 10.0):
        trial = guess + shift * problem.owner.nominal * free
        if np.isfinite(problem.residual(trial)[part.rows]).all():
            return np.asarray(trial)
    return None


def _all_moved(problem: StartProblem, guess: np.ndarray, part: StartPart) -> Iterator[np.ndarray]:
    """Yield entries moved off their first values, where squares and products have no slope: first those without a
    declared start, then all that are not demanded.
    """
    yield from _moved(problem, guess, part, problem.undeclared(), (0.1, 1.0, 3.0, 10.0))
    yield from _moved(problem, guess, part, problem.without_fixed_start())


def _moved_in_all_units(
    problem: StartProblem, guess: np.ndarray, part: StartPart, which: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield entries moved by their nominal values; then, where other values of the guess are of another size, by
    that.
    """
    yield from _moved(problem, guess, part, which)
    largest = float(np.abs(guess / problem.owner.nominal)[part.columns].max(initial=0.0))
    if 0.0 < largest < 0.1 or largest > 10.0:
        yield from _moved(problem, guess, part, which, (0.1 * largest, largest, 3.0 * largest))


def _moved(
    problem: StartProblem,
    guess: np.ndarray,
    part: StartPart,
    which: np.ndarray,
    sizes: tuple[float, ...] = (0.1, 1.0, 3.0),
) -> Iterator[np.ndarray]:
    random = np.random.default_rng(7)
    free = np.zeros(len(guess))
    free[part.columns] = which[part.columns]
    for size in sizes if free.any() else ():
        yield guess + size * random.uniform(-1, 1, len(guess)) * problem.owner.nominal * free


def newton(
    problem: StartProblem,
    w: np.ndarray,
    guess: np.ndarray,
    part: StartPart,
    lift: np.ndarray | float = 0.0,
) -> StartIterate:
    """Return damped steps on the hierarchy; ``lift`` is what the part's residuals are to become instead of zero."""
    ended = _damped_newton(problem, w, guess, part, lift)
    return ended._replace(holds=ended.holds and _is_determined(problem, ended.w, part, lift))


def _damped_newton(
    problem: StartProblem, w: np.ndarray, guess: np.ndarray, part: StartPart, lift: np.ndarray | float
) -> StartIterate:
    scale, columns = problem.owner.nominal, part.columns
    first, last, least_left = 0.0, np.inf, np.inf
    allowed, rows = np.zeros(len(part.rows)), np.ones(len(part.rows))
    has_own_units: bool | None = None
    for _ in range(MAXIMUM_ITERATIONS):
        target, slope = _linearised(problem, w, part, lift)
        if not (np.isfinite(target).all() and are_finite(slope)):
            return StartIterate(w, False, False)
        # the units of a model are seen where the search begins: later small slopes are those of a singular point
        units = units_of(slope, part.square and has_own_units is not False)
        has_own_units = units.columns is not None if has_own_units is None else has_own_units
        terms = np.asarray(abs(slope) @ np.abs(w[columns] / scale[columns]))
        rows, noise = units.rows, EQUATION_ROUNDING * terms
        allowed = noise + (allowances(problem, slope, (w, guess), part) if units.columns is None else 1e-9 * terms)
        merit = float(np.linalg.norm(target / rows))
        # unknowns far below their nominal value: rounding is what is small beside the first residual
        first = first or 1e-9 * _first_size(problem, merit, guess, units, part)
        floor = max(first, float(np.linalg.norm(noise / rows)))
        step = _step(problem, (slope, target), units, (w, guess), columns)
        if step is None:
            return StartIterate(w, False, False)
        full = np.zeros(len(w))
        full[columns] = step * scale[columns]
        w, taken = _damped(problem, w, full, (merit, floor), rows, part, lift)
        if taken == 0.0:
            return StartIterate(w, equations_hold(problem, w, target, allowed, part, lift), False)
        size, before = units.size(step), last
        last = size if taken == 1.0 else np.inf
        if _is_small(last, before, units.unknowns(w / scale, columns), part):
            residual = problem.residual(w)[part.rows] - lift
            left, is_met = (
                float(np.linalg.norm(residual / rows)),
                equations_hold(problem, w, residual, allowed, part, lift),
            )
            if is_met or part.square or not left < 0.5 * least_left:
                return StartIterate(w, is_met, True)
            least_left = left  # corrections that are small beside the largest unknown may be large for others
    return StartIterate(
        w, equations_hold(problem, w, problem.residual(w)[part.rows] - lift, allowed, part, lift), False
    )


def _first_size(problem: StartProblem, merit: float, guess: np.ndarray, units: UnknownUnits, part: StartPart) -> float:
    """Return what residuals are small beside where a search begins."""
    if part.square:
        return merit if units.columns is not None else min(1.0, merit)
    return unit_of((guess / problem.owner.nominal)[part.columns])


def _is_determined(problem: StartProblem, w: np.ndarray, part: StartPart, lift: np.ndarray | float) -> bool:
    """Return whether rounding of the equations leaves a point where it is.

    Equations without a solution may hold to rounding at a point that runs away: x² + y² = L² and x vx + y vy = 0 with
    y = −L and vy = 1 at x = 1e-8 L, vx = 1e8. There rounding moves unknowns by as much as they are.
    """
    sizes = np.maximum(np.abs(w / problem.owner.nominal)[part.columns], 1.0)
    if len(part.rows) != len(part.columns) or problem.is_large or sizes.max(initial=0.0) < MAX_NOMINAL_VALUES:
        return True
    _, slope = _linearised(problem, w, part, lift)
    matrix = np.asarray(slope) * sizes
    terms = np.abs(matrix).sum(axis=1, keepdims=True)
    noise = np.finfo(float).eps * np.random.default_rng(5).choice([-1.0, 1.0], (len(matrix), 3))
    try:
        moved = np.linalg.solve(matrix / np.where(terms > 0, terms, 1.0), noise)
    except np.linalg.LinAlgError:
        return True
    return bool(np.abs(moved).max() < 0.1)


def _linearised(
    problem: StartProblem, w: np.ndarray, part: StartPart, lift: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray | csc_array]:
    """Return residuals of a part and their derivatives by scaled unknowns; those of large starts sparse."""
    if problem.is_large:
        from scipy.sparse import csc_array

        value, slopes = problem.sparse_slopes(w)
        return value[part.rows] - lift, csc_array(slopes[part.rows][:, part.columns])
    value, jw, _, _ = problem.hard(w)
    return value[part.rows] - lift, (jw * problem.owner.nominal)[np.ix_(part.rows, part.columns)]


def _step(
    problem: StartProblem,
    equations: tuple[np.ndarray | csc_array, np.ndarray],
    units: UnknownUnits,
    points: tuple[np.ndarray, np.ndarray],
    columns: np.ndarray,
) -> np.ndarray | None:
    """Return the correction at the point and with the guess ``points``; None where there is none."""
    slope, target = equations
    if units.columns is not None:
        from scipy.sparse import csc_array

        from grisaille.structure.starts.large_hierarchy import solve_equilibrated

        step = solve_equilibrated(csc_array(slope), -target)
        if step is not None:
            return step
    rows = row_sizes(slope)
    if not isinstance(slope, np.ndarray):
        return _large_step(problem, (slope, target), rows, points, columns)
    soft = ((a[:, columns], b) for a, b in problem.soft(*points))
    try:
        return solve_levels(chain([(slope / rows[:, None], -target / rows)], soft), len(columns))
    except np.linalg.LinAlgError:
        return None


def _large_step(
    problem: StartProblem,
    equations: tuple[csc_array, np.ndarray],
    rows: np.ndarray,
    points: tuple[np.ndarray, np.ndarray],
    columns: np.ndarray,
) -> np.ndarray | None:
    from scipy.sparse import csc_array, csr_array

    from grisaille.structure.starts.large_hierarchy import solve_equilibrated, solve_large_levels

    slope, target = equations
    if slope.shape[0] == slope.shape[1]:
        step = solve_sparse(slope, -target, rows)
        step = solve_equilibrated(slope, -target) if step is None else step
        if step is not None:
            return step
    hard = csc_array(slope, copy=True)
    hard.data /= rows[hard.indices]
    soft = ((csr_array(a[:, columns]), b) for a, b in problem.sparse_soft(*points))
    try:
        return solve_large_levels([(csr_array(hard), -target / rows), *soft], len(columns))
    except np.linalg.LinAlgError:
        return None


def _is_small(step: float, before: float, w: np.ndarray, part: StartPart) -> bool:
    """Return whether a step is the last; for a square part once steps no longer shrink as Newton's do, so that unknowns
    far below their nominal value are right to the last digit, too.
    """
    largest = float(np.abs(w).max(initial=0.0))
    if step >= CORRECTION_TOLERANCE * (largest if 0.0 < largest < FAR_BELOW else 1 + largest):
        return False
    return not part.square or step > 0.1 * before or step <= 1e-15 * np.abs(w[part.columns]).max(initial=0.0)


def _damped(
    problem: StartProblem, w: np.ndarray, step: np.ndarray, merit: tuple[float, float], rows: np.ndarray,
    part: StartPart,
    lift: np.ndarray | float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Halve the step until the scaled residual falls below its first size, or below the floor of rounding."""
    now, floor = merit
    fraction = 1.0
    while fraction > 1e-4:
        trial = w + fraction * step
        value = problem.residual(trial)[part.rows] - lift
        if np.isfinite(value).all():
            with np.errstate(over="ignore"):  # an exponential far from its root: infinite is worse, and that is all
                size = float(np.linalg.norm(value / rows))
            if size <= (1 - 0.1 * fraction) * now or size < floor:
                return trial, fraction
        fraction /= 2
    return w, 0.0


def _homotopy(problem: StartProblem, guess: np.ndarray, part: StartPart) -> StartIterate:
    base = problem.residual(guess)[part.rows]
    found, done, stride = StartIterate(guess, False, False), 0.0, 0.25
    while done < 1.0 and stride > 1e-4:
        goal = min(1.0, done + stride)
        trial = newton(problem, found.w, guess, part, (1.0 - goal) * base)
        if trial.holds:
            found, done, stride = trial, goal, stride * 2
        else:
            stride /= 4
    return found._replace(holds=done >= 1.0)
