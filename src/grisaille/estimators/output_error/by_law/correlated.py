"""Where a search for unknown correlations of noise begins: beside the best fit with independent noise.

Far from the data, residuals of all outputs are those of a wrong model, and a covariance made of them would take the
model's own course for common noise. So the other unknowns are searched first, with correlations at zero; then these
begin at those of the residuals, moved towards zero as far as no joint normal law has them (with gaps).
"""

from __future__ import annotations

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.measurements.measured_problem import MeasuredEvaluation, MeasuredProblem
from grisaille.model.measurement.noise_covariances import correlations_of, shared_covariances
from grisaille.optimization import scoring
from grisaille.optimization.search import Search

NEAR_GAIN = 1e-6
"""Gain, relative to the criterion, at which the other unknowns are near enough."""
MAX_CORRELATION = 1 - 1e-9
TRIED_SHARES = (1.0, 0.9, 0.7, 0.5, 0.25)
"""Of the correlations of the residuals, that are tried to begin with."""


def begin_beside_independent(search: Search[MeasuredEvaluation], problem: MeasuredProblem) -> None:
    """Let a search with correlations that have no guess begin at those of the residuals."""
    held = [k for k, u in enumerate(search.unknowns) if _pair(problem, u) and u.guess == 0]
    if not held:
        return
    near = scoring.approach(search, held, tolerance=NEAR_GAIN)
    found = np.array([_correlation(problem, near, search.unknowns[k]) for k in held])
    for share in TRIED_SHARES:
        theta = near.theta.copy()
        theta[held] = share * found
        if search.evaluate(theta, sensitive=False, quietly=True).completed:
            search.restart(theta)
            return
    search.restart(near.theta)


def _pair(problem: MeasuredProblem, unknown: Unknown) -> tuple[str, str] | None:
    """Return the outputs whose correlation an unknown is."""
    flat = problem.cases[0].trial.flat
    if unknown.kind != "parameter":
        return None
    pairs = shared_covariances(flat, problem.outputs)
    return next((pair for pair in pairs if unknown.target in correlations_of(flat, pair)), None)


def _correlation(problem: MeasuredProblem, at: MeasuredEvaluation, unknown: Unknown) -> float:
    """Return that of the residuals where both outputs were measured; zero where they never were."""
    pair, products, first = _pair(problem, unknown), [np.zeros(3)], 0
    for case in problem.cases:
        left = {}
        for s in case.samples:
            left[s.output] = dict(zip(s.rows.tolist(), at.residuals[first : first + len(s.rows)], strict=True))
            first += len(s.rows)
        if pair is None or not unknown.applies_to(case.name) or not set(pair) <= set(left):
            continue
        a, b = (left[name] for name in pair)
        products += [np.array([a[row] ** 2, a[row] * b[row], b[row] ** 2]) for row in a.keys() & b.keys()]
    aa, ab, bb = np.sum(products, axis=0)
    return float(np.clip(ab / np.sqrt(aa * bb), -MAX_CORRELATION, MAX_CORRELATION)) if aa * bb > 0 else 0.0
