"""How a consistent start moves with parameters and with demanded values."""

from __future__ import annotations

import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.starts.hierarchy import solve_levels
from grisaille.structure.starts.optimality import conflicting_levels, optimality_conditions
from grisaille.structure.starts.problem import GuessLevel, StartProblem, row_sizes

RANK_TOLERANCE = 1e-7
"""On rows scaled to their largest entry."""


def differentiate_start(
    problem: StartProblem, w: np.ndarray, directions: np.ndarray, demand_directions: dict[str, np.ndarray]
) -> np.ndarray:
    ns = directions.shape[0]
    if problem.is_large:
        return _differentiate_large(problem, w, directions, demand_directions)
    scale = problem.owner.nominal
    value, jw, jp, _ = problem.hard(w)
    right = -jp @ directions.T
    offset = len(value) - len(problem.demands)
    for k, name in enumerate(problem.demands):
        right[offset + k] += problem.start_direction(name, directions, demand_directions)
    rows = row_sizes(jw * scale)
    levels = [(jw * scale / rows[:, None], right / rows[:, None])]
    for level, _, ow, op in problem.guess_rows(w):
        moved = _level_directions(problem, level, directions, demand_directions)
        levels.append((ow * scale / level.sizes[:, None], (moved - op @ directions.T) / level.sizes[:, None]))
    first = solve_levels(levels, len(w)) * scale[:, None] if len(w) else np.zeros((0, ns))
    _refuse_tied(problem, demand_directions, (jw @ first - right) / rows[:, None])
    if problem.missed(w) or problem.lifted(w):
        return _with_curvature(problem, w, directions, demand_directions, first)
    return first


def _differentiate_large(
    problem: StartProblem, w: np.ndarray, directions: np.ndarray, demand_directions: dict[str, np.ndarray]
) -> np.ndarray:
    """Return the same with the entries of all matrices."""
    from scipy.sparse import csr_array, diags_array, eye_array

    from grisaille.structure.starts.large_hierarchy import solve_large_levels

    scale = problem.owner.nominal
    value, scaled = problem.sparse_slopes(w)
    right = -(problem.sparse_by_p(w) @ directions.T)
    offset = len(value) - len(problem.demands)
    for k, name in enumerate(problem.demands):
        right[offset + k] += problem.start_direction(name, directions, demand_directions)
    rows = row_sizes(scaled)
    by_size = scaled.copy()
    by_size.data /= rows[by_size.indices]
    levels = [(csr_array(by_size), right / rows[:, None])]
    observed_by_p = problem.owner.functions.sparse_by_p("observed", problem.t, w, problem.u, problem.p)
    for level, _, slopes in problem.sparse_guess_slopes(w):
        moved = _level_directions(problem, level, directions, demand_directions)
        if not level.of_unknowns:
            moved = moved - observed_by_p[level.rows] @ directions.T
        by_w = csr_array(diags_array(1.0 / level.sizes) @ slopes @ diags_array(scale))
        levels.append((by_w, moved / level.sizes[:, None]))
    levels.append((csr_array(eye_array(len(w))), np.zeros((len(w), directions.shape[0]))))
    first = solve_large_levels(levels, len(w))
    _refuse_tied(problem, demand_directions, (scaled @ first - right) / rows[:, None])
    first *= scale[:, None]
    if problem.missed(w) or problem.lifted(w):
        return _with_curvature(problem, w, directions, demand_directions, first)
    return first


def independent_starts(problem: StartProblem, w: np.ndarray, names: list[str]) -> list[str]:
    """Return the first of ``names`` whose starts can be moved independently of each other, everything hard kept."""
    scale = problem.owner.nominal
    _, jw, _, _ = problem.hard(w)
    scaled = jw * scale / row_sizes(jw * scale)[:, None]
    _, singular, vt = np.linalg.svd(scaled) if scaled.size else (None, np.zeros(0), np.eye(len(w)))
    free = vt[int(np.sum(singular > RANK_TOLERANCE)) :].T
    observed = problem.evaluate("observed", w)
    kept: list[str] = []
    for name in names:
        rows = problem.observed_rows(observed, [*kept, name])[1] * scale
        if np.linalg.matrix_rank((rows / row_sizes(rows)[:, None]) @ free, tol=RANK_TOLERANCE) > len(kept):
            kept.append(name)
    return kept


def _refuse_tied(problem: StartProblem, demand_directions: dict[str, np.ndarray], residual: np.ndarray) -> None:
    """Starts that equations, a steady state or other demands hold fast cannot be differentiated by."""
    tied = [n for n, d in demand_directions.items() if np.abs(residual[:, d != 0]).max(initial=0.0) > RANK_TOLERANCE]
    if not tied:
        return
    names = problem.hard_names()
    first_demand = len(names) - len(problem.demands)
    moved = np.abs(residual).max(axis=1)
    others = [f"'{n}'" for n, m in zip(names[:first_demand], moved, strict=False) if m > RANK_TOLERANCE][:3]
    raise StructureError(
        f"The start of {' and '.join(tied)} cannot be varied while everything else holds: "
        f"{'it is' if len(tied) == 1 else 'they are'} tied by "
        f"{', '.join(others) or 'equations between them'}. Differentiate by fewer starts; 'start(*)' picks those that "
        f"are free."
    )


def _level_directions(
    problem: StartProblem, level: GuessLevel, directions: np.ndarray, demand_directions: dict[str, np.ndarray]
) -> np.ndarray:
    """Return how the wished values of a level move, (wishes, ns); zero does not."""
    if not level.declared:
        return np.zeros((len(level.names), directions.shape[0]))
    return np.array([problem.start_direction(n, directions, demand_directions) for n in level.names])


def _with_curvature(
    problem: StartProblem,
    w: np.ndarray,
    directions: np.ndarray,
    demand_directions: dict[str, np.ndarray],
    first: np.ndarray,
) -> np.ndarray:
    """Return the exact derivative where wishes conflict: the optimality conditions of all levels, differentiated.

    The conditions F = 0 over v are solved for dv by least squares, relative to ``first`` so that directions that
    nothing determines keep the hierarchy's answer.
    """
    from grisaille.structure.starts.large_hierarchy import least_squares

    levels = conflicting_levels(problem, w)
    conditions = optimality_conditions(problem, levels)
    moved = np.vstack(
        [directions.T]
        + [_level_directions(problem, level, directions, demand_directions) for level in levels]
        + [np.atleast_2d(problem.start_direction(n, directions, demand_directions)) for n in problem.demands]
    )
    v, _, F, outer = conditions.linearize(problem, w, levels)
    guess = np.vstack([first, np.zeros((len(v) - len(w), first.shape[1]))])
    right = -(outer @ moved)
    correction = least_squares(F, right - F @ guess)
    return np.asarray((guess + correction)[: len(w)])
