"""The same question for a Kalman filter, by which a search by particles begins."""

from __future__ import annotations

from grisaille.estimation.fit_request import FitRequest
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem


def kalman_request(problem: ParticleProblem) -> FitRequest | None:
    """Return the request; None where outputs have laws that no Kalman filter takes."""
    case = problem.cases[0]
    flat = case.trial.flat
    outputs = {s.output for c in problem.cases for s in c.samples}
    if any(flat.outputs[o].distribution is not None for o in outputs):
        return None
    data = [c.experiment for c in problem.cases]
    trials = tuple((c.trial, c.unknowns) for c in problem.cases)
    return FitRequest(case.trial.model, case.trial.structure, data, problem.unknowns, given_trials=trials)
