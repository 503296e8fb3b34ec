"""Optimality conditions of a start whose wishes cannot all be met, level upon level.

What must hold is F(v) = 0 with v = w at first. A level of wishes r(w) that is met as well as F allows satisfies

    F⁺(v, μ) = (∇ᵥ[½|r|² + μᵀF], F) = 0,

which is what must hold for the next level, with (v, μ) in the place of v. Differentiated once more, the conditions give
the exact derivative of the start, however many levels conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.cache import Cache
from grisaille.structure.starts.acceptance import unit_of
from grisaille.structure.starts.problem import GuessLevel, StartProblem, is_nearer

if TYPE_CHECKING:
    from scipy.sparse import csr_array

POLISHING_STEPS = 12


@dataclass(frozen=True, eq=False)
class OptimalityConditions:
    stages: tuple[ca.Function, ...]
    """For each level, over (t, v, u, p, targets, demanded): ∂F/∂v and ∇ᵥ½|r|², from which its multipliers follow."""
    last: ca.Function
    """F, ∂F/∂v and ∂F/∂(p, targets, demanded) of the conditions of all levels."""

    def linearize(
        self, problem: StartProblem, w: np.ndarray, levels: Sequence[GuessLevel]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | csr_array, np.ndarray | csr_array]:
        """Return v = (w, μ₁, …) at w, with the conditions and their derivatives there."""
        from grisaille.structure.starts.large_hierarchy import least_squares

        targets = np.concatenate([level.targets for level in levels])
        outer = (problem.u, problem.p, targets, np.array(list(problem.demands.values())))
        v = w
        for stage in self.stages:
            slope, gradient = stage(problem.t, v, *outer)
            multipliers = least_squares(_numbers(slope).T, -np.array(gradient.full()).ravel())
            v = np.concatenate([v, multipliers])
        F, slope, moved = self.last(problem.t, v, *outer)
        return v, np.array(F.full()).ravel(), _numbers(slope), _numbers(moved)


def polish(problem: StartProblem, w: np.ndarray) -> np.ndarray:
    """Return Newton steps on the conditions, where the search met everything hard but crept along it towards the
    wishes.

    The multipliers are taken anew at every point, so that w alone is iterated. A point that is no better stays out.
    """
    levels = conflicting_levels(problem, w)
    if not levels:
        return w
    from grisaille.structure.starts.large_hierarchy import least_squares

    conditions, scale = optimality_conditions(problem, levels), problem.owner.nominal
    trial, before, unit = w, np.inf, unit_of(w / problem.owner.nominal)
    for _ in range(POLISHING_STEPS):
        try:
            _, F, slope, _ = conditions.linearize(problem, trial, levels)
            step = least_squares(slope, -F)[: len(w)]
        except np.linalg.LinAlgError:
            return w
        size = float(np.abs(step / scale).max(initial=0.0)) / unit
        if size > max(0.1, 2 * before):
            return w
        trial, before = trial + step, size
        if size < 1e-13 * (1 + np.abs(trial / scale).max(initial=0.0) / unit):
            break
    now, then = ([miss / unit for miss in problem.misses(point)] for point in (w, trial))
    is_worse = is_nearer(now, then) or not problem.worst(trial)[0] < 1e-8 * unit
    return w if is_worse else trial


def conflicting_levels(problem: StartProblem, w: np.ndarray) -> list[GuessLevel]:
    """Return wishes for states, down to the last level that is not met."""
    levels = [level for level in problem.levels if level.of_states]
    missed = {*problem.missed(w), *problem.lifted(w)}
    while levels and missed.isdisjoint(levels[-1].names):
        levels.pop()
    return levels


def optimality_conditions(problem: StartProblem, levels: Sequence[GuessLevel]) -> OptimalityConditions:
    """Return what is kept with the equations: they depend on what is wished and demanded, not on the values."""
    wished = tuple((level.names, level.of_unknowns, np.asarray(level.sizes).tobytes()) for level in levels)
    key = (problem.steady, problem.is_large, tuple(problem.demands), wished)
    known: Cache[OptimalityConditions] = problem.owner.cached_value("optimality", lambda: Cache(32))
    return known.get(key, lambda: _build(problem, levels))


def _build(problem: StartProblem, levels: Sequence[GuessLevel]) -> OptimalityConditions:
    owner, system = problem.owner, problem.owner.system
    t, w, u, p = owner.functions.arguments
    made = ca.Function if problem.is_large else _function
    targets = ca.SX.sym("targets", sum(len(level.names) for level in levels))
    demanded = ca.SX.sym("demanded", len(problem.demands))
    parts = [system.constraints, system.residual, *([system.initial] if problem.initial_rows else [])]
    if problem.steady:
        parts.append(system.rhs)
    if problem.demands:
        parts.append(system.observed[[owner.observed_position[n] for n in problem.demands]] - demanded)
    F, v, done, stages = ca.vertcat(*parts), w, 0, []
    for level in levels:
        values = w[level.rows.tolist()] if level.of_unknowns else system.observed[level.rows.tolist()]
        r = (values - targets[done : done + len(level.names)]) / ca.DM(level.sizes)
        done += len(level.names)
        gradient = ca.gradient(0.5 * ca.sumsqr(r), v)
        stages.append(made("stage", [t, v, u, p, targets, demanded], [ca.jacobian(F, v), gradient]))
        mu = ca.SX.sym("mu", F.numel())
        F = ca.vertcat(ca.gradient(0.5 * ca.sumsqr(r) + ca.dot(mu, F), v), F)
        v = ca.vertcat(v, mu)
    outer = ca.vertcat(p, targets, demanded)
    last = made("last", [t, v, u, p, targets, demanded], [F, ca.jacobian(F, v), ca.jacobian(F, outer)])
    return OptimalityConditions(tuple(stages), last)


def _numbers(matrix: ca.DM) -> np.ndarray | csr_array:
    """Return a full matrix, or a sparse one as the matrix is."""
    if matrix.is_dense():
        return np.array(matrix.full())
    from scipy.sparse import csc_array, csr_array

    pattern = matrix.sparsity()
    places = np.array(pattern.row(), dtype=np.int32), np.array(pattern.colind(), dtype=np.int32)
    found: csr_array = csr_array(csc_array((np.array(matrix.nonzeros()), *places), shape=matrix.shape))
    return found


def _function(name: str, arguments: list[ca.SX], results: list[ca.SX]) -> ca.Function:
    return ca.Function(name, arguments, [ca.densify(r) for r in results])
