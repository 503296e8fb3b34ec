"""Whether elements are short enough, and shorter ones where they are not.

On elements half as long the same path leaves residuals in the equations. One step of Newton's method over the path
takes them away (for the marginal likelihood the path is solved for) and changes the gradient of the criterion by θ,
from g to g′; the estimates would move by

    Δθ ≈ −C (g′ − g),        C their covariance,

to first order. Where that is more than a twentieth of a standard error the problem is solved on the shorter elements. A
fit whose estimates would still move has not converged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from grisaille.collocation.direct.direct import DirectProgram, DirectSolution
from grisaille.collocation.direct.elimination import IndefiniteError
from grisaille.collocation.direct.ipopt import violates
from grisaille.collocation.direct.marginal import marginal
from grisaille.collocation.direct.newton import linearize
from grisaille.collocation.direct.refinement import interpolated
from grisaille.collocation.direct.step_error import step_errors
from grisaille.collocation.direct.transcription import Point, Transcription
from grisaille.estimators.collocation.direct.programs import on_elements

SETTLED = 0.05
"""Standard errors: estimates that move less with shorter elements have stopped moving."""
ROUNDS = 4
"""Halvings, at most."""
PIECES = (1, 2, 4, 8)
ROUGHLY = 0.02
"""Error of a step, relative to the size of its state, at the guess: elements short enough to search on."""
TOUCHING = 1e-6
"""Relative distance from a bound at which a state lies on it."""
PATH = 1e-10
"""Decrement at which paths count as solved for."""


def on_short_elements(
    program: DirectProgram, solution: DirectSolution, prepared: Callable[[DirectProgram], DirectProgram], rounds: int
) -> tuple[DirectSolution, list[str]]:
    """The solution on elements that are short enough; not converged, with a note, where they are not.

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
    found = (
        f"shorter ones would move {program.unknowns[worst].name} by about {moves[worst]:.2g} standard errors"
        if np.isfinite(moves[worst])
        else "there is no path with positive curvature on shorter ones"
    )
    note = f"elements: {found}; use gr.Collocation(refine={2 * max(rounds, ROUNDS // 2)})."
    result = replace(solution.result, message=f"elements are too long: {found}")
    return replace(solution, converged=False, result=result), [note]


def elements_to_begin_with(program: DirectProgram, theta: np.ndarray) -> int:
    """Pieces on which the trajectory of the guess is followed: on longer elements a search would run away from it."""
    for pieces in PIECES[:-1]:
        coarse = on_elements(program, pieces).transcribe(pieces)
        if not step_errors(coarse, program.simulated(coarse, theta)).max(initial=0.0) > ROUGHLY:
            return pieces
    return PIECES[-1]


def predicted_moves(program: DirectProgram, solution: DirectSolution) -> np.ndarray:
    """|Δθ| on elements half as long, in standard errors; zero where there is no prediction, infinite for no path."""
    covariance = np.nan_to_num(solution.covariance)
    errors = np.sqrt(np.diag(covariance))
    if not solution.converged or not errors.any() or _is_bounded(program, solution):
        return np.zeros(len(errors))
    pieces = 2 * solution.pieces
    finer = on_elements(program, pieces).transcribe(pieces)
    point = interpolated(solution.program, finer, solution.point)
    gradients = _of_likelihood if program.options.criterion == "laplace" else _of_criterion
    change = gradients(solution, finer, point)
    if change is None:
        return np.where(errors > 0, np.inf, 0.0)
    moved = np.abs(covariance @ change)
    return np.asarray(np.where(errors > 0, moved / np.where(errors > 0, errors, 1.0), 0.0))


def _is_bounded(program: DirectProgram, solution: DirectSolution) -> bool:
    """Whether bounds of states decide the path, which then does not follow θ as the gradients say."""
    limits = program.options.state_bounds
    if not solution.result.message.startswith("IPOPT"):
        return False
    inner = {n: (a + TOUCHING * max(1.0, abs(a)), b - TOUCHING * max(1.0, abs(b))) for n, (a, b) in limits.items()}
    return violates(solution.program, solution.point, inner)


def _of_criterion(solution: DirectSolution, finer: Transcription, point: Point) -> np.ndarray | None:
    """g′ − g, paths and θ together."""
    rest = (np.zeros((len(point.first), finer.functions.start.m)), np.zeros_like(point.inner))
    try:
        g = linearize(solution.program, solution.point, solution.result.multipliers, exact=False).gradient
        return np.asarray(linearize(finer, point, rest, exact=False).gradient - g)
    except (IndefiniteError, np.linalg.LinAlgError):
        return None


def _of_likelihood(solution: DirectSolution, finer: Transcription, point: Point) -> np.ndarray | None:
    """g′ of −log L, whose g is zero where no bound decides."""
    found = marginal(finer, point, PATH)
    return None if found is None else found.gradient
