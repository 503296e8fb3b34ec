"""How a consistent start moves with parameters and with demanded values."""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.errors import StructureError
from grisaille.structure.hierarchy import solve_levels
from grisaille.structure.start_problem import StartProblem, nominal_of, row_sizes

RANK_TOLERANCE = 1e-7
"""On rows scaled to their largest entry."""


def differentiate_start(
    problem: StartProblem, w: np.ndarray, directions: np.ndarray, demand_directions: dict[str, np.ndarray]
) -> np.ndarray:
    ns = directions.shape[0]
    scale = problem.owner.nominal
    value, jw, jp, _ = problem.hard(w)
    right = -jp @ directions.T
    offset = len(value) - len(problem.demands)
    for k, name in enumerate(problem.demands):
        right[offset + k] += problem.start_direction(name, directions, demand_directions)
    rows = row_sizes(jw * scale)
    levels = [(jw * scale / rows[:, None], right / rows[:, None])]
    observed = problem.evaluate(problem.owner.functions.observed, w)
    for wishes in problem.wishes:
        if wishes:
            _, ow, op = problem.observed_rows(observed, list(wishes))
            size = np.array([nominal_of(problem.owner.structure.model.variables[n]) for n in wishes])[:, None]
            moved = np.array([problem.start_direction(n, directions, demand_directions) for n in wishes])
            levels.append((ow * scale / size, (moved - op @ directions.T) / size))
    first = solve_levels(levels, len(w)) * scale[:, None] if len(w) else np.zeros((0, ns))
    _refuse_tied(problem, demand_directions, (jw @ first - right) / rows[:, None])
    if problem.missed(w):
        return _with_curvature(problem, w, directions, demand_directions, first)
    return first


def independent_starts(problem: StartProblem, w: np.ndarray, names: list[str]) -> list[str]:
    """The first of ``names`` whose starts can be moved independently of each other, everything hard kept."""
    scale = problem.owner.nominal
    _, jw, _, _ = problem.hard(w)
    scaled = jw * scale / row_sizes(jw * scale)[:, None]
    _, singular, vt = np.linalg.svd(scaled) if scaled.size else (None, np.zeros(0), np.eye(len(w)))
    free = vt[int(np.sum(singular > RANK_TOLERANCE)) :].T
    observed = problem.evaluate(problem.owner.functions.observed, w)
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


def _with_curvature(
    problem: StartProblem,
    w: np.ndarray,
    directions: np.ndarray,
    demand_directions: dict[str, np.ndarray],
    first: np.ndarray,
) -> np.ndarray:
    """The exact derivative where wishes conflict: the optimality conditions, differentiated.

    L(w) = ½|r(w)|² + μᵀH(w) with scaled wishes r; ∇L = 0 and H = 0 are solved for dw by least squares, relative to
    ``first`` so that directions that nothing determines keep the hierarchy's answer.
    """
    owner, system = problem.owner, problem.owner.system
    sx_t, sx_w, sx_u, sx_p = owner.functions.arguments
    wishes = list(problem.wishes[0])
    size = np.array([nominal_of(owner.structure.model.variables[n]) for n in wishes])
    target = ca.SX.sym("target", len(wishes))
    demanded = ca.SX.sym("demanded", len(problem.demands))
    pick = [owner.observed_position[n] for n in wishes]
    r = (system.observed[pick] - target) / ca.DM(size)
    parts = [system.constraints, system.residual]
    if problem.steady:
        parts.append(system.rhs)
    if problem.demands:
        parts.append(system.observed[[owner.observed_position[n] for n in problem.demands]] - demanded)
    h = ca.vertcat(*parts)
    mu = ca.SX.sym("mu", h.numel())
    gradient = ca.gradient(0.5 * ca.sumsqr(r) + ca.dot(mu, h), sx_w)
    system_of = ca.vertcat(gradient, h)
    outer = ca.vertcat(sx_p, target, demanded)
    arguments = [sx_t, sx_w, sx_u, sx_p, target, demanded, mu]
    function = ca.Function(
        "kkt", arguments, [ca.densify(ca.jacobian(system_of, ca.vertcat(sx_w, mu))),
                           ca.densify(ca.jacobian(system_of, outer)), ca.densify(ca.jacobian(r, sx_w)), r],
    )  # fmt: skip
    wished = np.array([problem.wishes[0][n] for n in wishes])
    numbers = [problem.t, w, problem.u, problem.p, wished, np.array(list(problem.demands.values()))]
    _, _, jr, r0 = function(*numbers, np.zeros(h.numel()))
    jw = problem.hard(w)[1]
    multipliers = np.linalg.lstsq(jw.T, -np.array(jr.full()).T @ np.array(r0.full()).ravel(), rcond=None)[0]
    matrix, outer_jacobian, _, _ = function(*numbers, multipliers)
    moved = np.vstack(
        [directions.T]
        + [
            np.atleast_2d(problem.start_direction(n, directions, demand_directions))
            for n in (*wishes, *problem.demands)
        ]
    )
    kkt = np.array(matrix.full())
    right = -np.array(outer_jacobian.full()) @ moved
    guess = np.vstack([first, np.zeros((h.numel(), first.shape[1]))])
    correction = np.linalg.lstsq(kkt, right - kkt @ guess, rcond=1e-10)[0]
    return np.asarray((guess + correction)[: len(w)])
