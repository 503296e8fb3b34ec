"""What initial equations leave open although there are enough of them.

A friction that sticks at the first instant says itself that nothing accelerates. An initial equation that demands the
same, ``der(w) = 0``, then decides nothing, and how a load is shared between the friction and a motor stays open. Taking
the declared starts of the motor's states would often load the friction by so much that it slips at once, against the
initial equation. Where equations, initial equations and demands are as many as unknowns, declared starts of states are
guesses; what is open is decided by the unknowns that events compare with thresholds, which begin at zero where nothing
was declared for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grisaille.model.expression import Call, Name, postorder
from grisaille.structure.starts.hierarchy import RANK_TOLERANCE

if TYPE_CHECKING:
    from grisaille.structure.starts.initialization import Initializer
    from grisaille.structure.starts.problem import StartProblem

MAX_UNKNOWNS_LOOKED_AT = 500
"""Unknowns of a start up to which the rank of its equations is found, by full matrices (50 ms)."""
PIVOT_TOLERANCE = 1e-8
"""A smallest pivot above it, beside the largest, tells that nothing is open."""
RELATIONS = ("lt", "le", "gt", "ge")
MAX_SHOWN = 6


def undecided_unknowns(problem: StartProblem, w: np.ndarray) -> tuple[str, ...]:
    """Return unknowns in relations of events that what must hold leaves open at w, although there are enough
    equations.
    """
    system = problem.owner.system
    rows = system.nc + system.nz + problem.initial_rows + len(problem.demands)
    if (
        not len(w)
        or not problem.initial_rows
        or system.reactions is None
        or not len(w) <= min(rows, MAX_UNKNOWNS_LOOKED_AT)
    ):
        return ()
    names = problem.owner.cached_value("compared", lambda: compared_unknowns(problem.owner))
    names = tuple(n for n in names if n not in problem.demands)
    scale = problem.owner.nominal
    slope = problem.hard(w)[1] * scale
    if not names or not np.isfinite(slope).all():
        return ()
    sizes = np.abs(slope).max(axis=1)
    slope = slope / np.where(sizes > 0, sizes, 1.0)[:, None]
    from scipy.linalg import qr

    pivots = np.abs(np.diagonal(qr(slope, mode="r", pivoting=True, check_finite=False)[0]))
    if pivots.min() > PIVOT_TOLERANCE * pivots[0]:
        return ()
    _, singular, directions = np.linalg.svd(slope)
    free = directions[int(np.sum(singular > RANK_TOLERANCE * singular[0])) :].T
    if not free.shape[1]:
        return ()
    moved = problem.observed_rows(problem.evaluate("observed", w), list(names))[1] * scale
    sizes = np.abs(moved).max(axis=1)
    is_open = np.abs(moved @ free).max(axis=1) > np.sqrt(RANK_TOLERANCE) * sizes
    return tuple(n for n, moves in zip(names, is_open, strict=True) if moves)


def compared_unknowns(owner: Initializer) -> tuple[str, ...]:
    """Return algebraic unknowns without a declared start that stand in relations of events."""
    structure = owner.structure
    model, aliases = structure.model, structure.equations.aliases
    clauses = [clause for occasion in model.whens for clause in occasion.clauses]
    roots = [c.condition for c in clauses] + [action.value for c in clauses for action in c.actions]
    relations = [node for node in postorder(roots) if isinstance(node, Call) and node.operation in RELATIONS]
    named = {node.path for node in postorder(relations) if isinstance(node, Name)}
    variables = model.variables
    return tuple(
        n
        for n in variables
        if n in named
        and n in owner.observed_position
        and variables[n].start is None
        and structure.order_of(aliases.get(n, n).lstrip("-")) <= 0
    )


def undecided_sentence(names: tuple[str, ...]) -> str:
    """Return what was taken, in words; empty where nothing was open."""
    if not names:
        return ""
    shown = ", ".join(names[:MAX_SHOWN]) + (", …" if len(names) > MAX_SHOWN else "")
    return (
        f"the initial equations say what other equations say already and leave {shown} open: zero was taken, and "
        f"start={{'{names[0]}': …}} takes another value"
    )
