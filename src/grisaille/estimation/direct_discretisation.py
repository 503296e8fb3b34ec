"""Whether elements are short enough, and shorter ones where they are not.

On elements half as long the same path leaves residuals in the equations. One step of Newton's method over the path
takes them away and changes the gradient of the criterion by θ, from g to g′; the estimates would move by

    Δθ ≈ −C (g′ − g),        C their covariance,

to first order. Where that is more than a twentieth of a standard error the problem is solved on the shorter elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grisaille.collocation.direct import DirectProgram, DirectSolution
from grisaille.collocation.direct_elimination import IndefiniteError
from grisaille.collocation.direct_newton import linearize
from grisaille.collocation.direct_refinement import interpolated
from grisaille.estimation.direct_programs import on_elements

SETTLED = 0.05
"""Standard errors: estimates that move less with shorter elements have stopped moving."""
ROUNDS = 4
"""Halvings, at most."""


def on_short_elements(
    program: DirectProgram, solution: DirectSolution, prepared: Callable[[DirectProgram], DirectProgram], rounds: int
) -> tuple[DirectSolution, list[str]]:
    """The solution on elements that are short enough, and a note where they are not.

    prepared : makes of a program the one that is solved (with some unknowns held, say)
    """
    for k in range(rounds + 1):
        moves = predicted_moves(program, solution)
        if not moves.max(initial=0.0) > SETTLED:
            return solution, []
        if k < rounds:
            finer = on_elements(program, 2 * solution.pieces)
            start = interpolated(solution.program, finer.transcribe(2 * solution.pieces), solution.point)
            after = prepared(finer).solve(solution.theta, start)
            if not after.converged:
                break
            solution = replace(after, iterations=solution.iterations + after.iterations)
    worst = int(np.argmax(moves))
    return solution, [
        f"elements: shorter ones would move {program.unknowns[worst].name} by about {moves[worst]:.2g} standard "
        f"errors; use gr.Collocation(refine={2 * ROUNDS})."
    ]


def predicted_moves(program: DirectProgram, solution: DirectSolution) -> np.ndarray:
    """|Δθ| on elements half as long, in standard errors; zero where there is no prediction."""
    covariance = np.nan_to_num(solution.covariance)
    errors = np.sqrt(np.diag(covariance))
    nothing = np.zeros(len(errors))
    if not solution.converged or not errors.any() or solution.result.message.startswith("IPOPT"):
        return nothing
    pieces = 2 * solution.pieces
    finer = on_elements(program, pieces).transcribe(pieces)
    point = interpolated(solution.program, finer, solution.point)
    rest = (np.zeros((len(point.first), finer.functions.start.m)), np.zeros_like(point.inner))
    try:
        g = linearize(solution.program, solution.point, solution.result.multipliers, exact=False).gradient
        g_finer = linearize(finer, point, rest, exact=False).gradient
    except (IndefiniteError, np.linalg.LinAlgError):
        return nothing
    moved = np.abs(covariance @ (g_finer - g))
    return np.asarray(np.where(errors > 0, moved / np.where(errors > 0, errors, 1.0), 0.0))
