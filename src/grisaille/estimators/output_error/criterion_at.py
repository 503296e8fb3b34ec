"""The criterion of output error at a point as a function of the unknowns alone, and its gradient.

    known noise     ½ Σ r²                                            gradient Jᵀr
    open noise      −log L(θ, σ̂(θ)),   σ̂_k² = Σ (w e)² / N_k           gradient Jᵀr with r = w e / σ̂
    robust losses   ½ C² Σ ρ((r/C)²), open noise at its robust level  gradient Jᵀ(ρ' r), levels held

each with half the squares of the priors' residuals. At σ̂ the likelihood does not depend on σ, so that the gradient
with levels held is that of the profile. Where the trajectory crosses a switch at which its equations jump, derivatives
are the differences that a fit takes there. Noise that follows the predictions by a formula is held in gradients: fits
renew it until it stays, and minimise nothing else.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.estimators.output_error.difference_steps import has_jumps, steps_across_jumps
from grisaille.estimators.output_error.freedom import freedom_of
from grisaille.estimators.output_error.robust_losses import of_data, robust_level

MIN_SAMPLE_SHARE = 0.01
"""Share of the samples that a fit leaves at least."""


def across_jumps(problem: EstimationProblem, evaluation: Evaluation) -> Evaluation:
    """Return the same point with derivatives that contain the share of jumps, where those of the pieces lack it."""
    if not has_jumps(problem) or not len(problem.unknowns):
        return evaluation
    steps = steps_across_jumps(problem, problem.unknowns, evaluation)
    return evaluation if steps is None else problem.differenced(evaluation.theta, steps)


def profiled_likelihood(problem: EstimationProblem, evaluation: Evaluation, log_likelihood: float) -> Evaluation:
    """Return the likelihood with open levels at their best for this point."""
    levels = {
        name: np.sqrt(np.mean(_weighted(problem, evaluation, name) ** 2)) if problem.count else 1.0
        for name in problem.sigma
    }
    residuals, jacobian = _standardised(problem, evaluation, levels)
    prior = residuals[problem.count :]
    return _as_value(
        evaluation, residuals, jacobian, 0.5 * float(prior @ prior) - log_likelihood, residuals, log_likelihood
    )


def robust_criterion(problem: EstimationProblem, evaluation: Evaluation, loss: str, scale: float) -> Evaluation:
    """Return the robust criterion, priors included."""
    levels = robust_levels(problem, evaluation)
    residuals, jacobian = _standardised(problem, evaluation, levels)
    value, slope, _ = of_data(loss, problem.count)((residuals / scale) ** 2)
    return _as_value(evaluation, residuals, jacobian, 0.5 * scale**2 * float(np.sum(value)), slope * residuals, np.nan)


def robust_levels(problem: EstimationProblem, evaluation: Evaluation) -> dict[str, float]:
    """Return σ of each output with unknown noise from the middle of its errors, times √(N/ν) for what the fit took of
    them.
    """
    levels = {name: max(robust_level(_weighted(problem, evaluation, name)), 1e-150) for name in problem.sigma}
    if not len(evaluation.jacobian):
        return levels
    told = np.abs(evaluation.jacobian).max(axis=0, initial=0.0) > 0
    at = freedom_of(problem, evaluation, told).rescaled({n: s / problem.sigma[n] for n, s in levels.items()})
    counts = {n: np.sum(problem.output_of == problem.outputs.index(n)) for n in levels}
    return {n: float(s * np.sqrt(counts[n] / max(at.left(n), MIN_SAMPLE_SHARE * counts[n]))) for n, s in levels.items()}


def _weighted(problem: EstimationProblem, evaluation: Evaluation, name: str) -> np.ndarray:
    mine = problem.output_of == problem.outputs.index(name)
    return np.asarray(problem.weights[mine] * evaluation.errors[mine])


def _standardised(
    problem: EstimationProblem, evaluation: Evaluation, levels: dict[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals and Jacobian in units of other levels of noise."""
    factor = np.ones(len(evaluation.residuals))
    for name, level in levels.items():
        mine = problem.output_of == problem.outputs.index(name)
        factor[: problem.count][mine] = problem.sigma[name] / max(level, 1e-150)
    return evaluation.residuals * factor, evaluation.jacobian * factor[:, None]


def _as_value(
    evaluation: Evaluation, residuals: np.ndarray, jacobian: np.ndarray, value: float, score: np.ndarray, log_l: float
) -> LikelihoodEvaluation:
    return LikelihoodEvaluation(
        evaluation.theta, residuals, jacobian, evaluation.errors, evaluation.predictions, value=value,
        slope=jacobian.T @ score, curvature=jacobian.T @ jacobian, log_likelihood=log_l,
    )  # fmt: skip
