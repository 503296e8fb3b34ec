"""Levels of noise that are estimated with the unknowns: from the squares of weighted errors, output by output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from grisaille.errors import EstimationError
from grisaille.estimation.determination.degrees_of_freedom import settled_levels
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimation.uncertainty import gauss_newton_covariance
from grisaille.estimators.output_error import criterion_at
from grisaille.estimators.output_error.freedom import freedom_of

MIN_FREEDOM = 1e-3
"""Degrees of freedom that are left to an output which the unknowns follow exactly."""
COVARIANCE_TOLERANCE = 1e-4
"""Relative difference up to which the covariance of pieces is that of their Jacobian."""


def levels_of(problem: EstimationProblem, evaluation: Evaluation, robust: bool = False) -> dict[str, float]:
    """Return σ of each output while θ is sought: the mean square of its weighted errors, or the robust level of
    them.
    """
    if robust:
        return criterion_at.robust_levels(problem, evaluation)
    return {n: float(np.sqrt(max(s / n_of, 1e-300))) for n, (s, n_of) in squares_of(problem, evaluation).items()}


def squares_of(problem: EstimationProblem, evaluation: Evaluation) -> dict[str, tuple[float, int]]:
    """Return sum of squares of the weighted errors of each output with unknown noise, and how many there are."""
    found = {}
    for name in problem.sigma:
        mine = problem.output_of == problem.outputs.index(name)
        errors = problem.weights[mine] * evaluation.errors[mine]
        found[name] = float(errors @ errors), len(errors)
    return found


def settle_levels(problem: EstimationProblem, evaluation: Evaluation, told: np.ndarray) -> dict[str, float]:
    """Return √(SSE/ν) of each output with unknown noise."""
    freedom = freedom_of(problem, evaluation, told)
    return settled_levels(freedom, {n: s for n, (s, _) in squares_of(problem, evaluation).items()}, problem.sigma)


def refuse_followed(problem: EstimationProblem, evaluation: Evaluation) -> None:
    """Refuse open noise of an output that the unknowns can follow exactly: the likelihood has no maximum."""
    if len(problem.outputs) == 1 or not evaluation.completed:
        return
    told = np.abs(evaluation.jacobian).max(axis=0, initial=0.0) > 0
    freedom = freedom_of(problem, evaluation, told)
    for name, (_, count) in squares_of(problem, evaluation).items():
        if freedom.left(name) < MIN_FREEDOM:
            raise EstimationError(
                f"The unknowns can follow the {count} sample{'' if count == 1 else 's'} of '{name}' exactly, so that "
                f"its noise, which is open, would be zero and its weight infinite: say how large it is, "
                f"gr.Output(…, noise=0.1), or give more samples."
            )


def rescale_levels(problem: EstimationProblem, evaluation: Evaluation, before: Mapping[str, float]) -> Evaluation:
    """Return the same point after the unknown noise levels have changed: residuals and their Jacobian scale with
    them.
    """
    factor = np.ones(len(evaluation.residuals))
    for k, name in enumerate(problem.outputs):
        if name in before:
            factor[: problem.count][problem.output_of == k] = before[name] / problem.sigma[name]
    renewed = replace(
        evaluation, residuals=evaluation.residuals * factor, jacobian=evaluation.jacobian * factor[:, None]
    )
    if evaluation.covariance is None:
        return renewed
    told = np.diag(evaluation.covariance) > 0
    wider = evaluation.covariance / np.mean(factor[: problem.count] ** 2)
    plain, other = (gauss_newton_covariance(e.jacobian, told) for e in (evaluation, renewed))
    if np.allclose(plain, evaluation.covariance, rtol=COVARIANCE_TOLERANCE, atol=0.0):
        wider = other
    return replace(renewed, covariance=wider)
