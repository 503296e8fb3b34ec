"""Whether events keep their order around an estimate.

Derivatives through events, and errors made of them, are those of one order of events, where it decides what follows.
Within a standard error of each unknown the events of a model's own are simulated again: where another one comes first
there, or the model comes to an end, that is said. Events that only enter or leave at the end of a record change no
order.
"""

from __future__ import annotations

import numpy as np

from grisaille.estimation.problem import EstimationProblem, Evaluation
from grisaille.simulation.runner import EventListing


def order_notes(problem: EstimationProblem, evaluation: Evaluation, covariance: np.ndarray) -> list[str]:
    """Return a sentence for every unknown within whose standard error the order of events changes."""
    errors = np.sqrt(np.clip(np.diag(covariance), 0.0, None))
    notes = []
    for case in problem.cases:
        mine = list(case.unknowns)
        theta = evaluation.theta[mine]
        here = case.runner.event_listing(theta, case.discretisation)
        for place, k in enumerate(mine):
            unknown = problem.unknowns[k]
            if not 0 < errors[k] < np.inf:
                continue
            for sign in (1.0, -1.0):
                there = theta.copy()
                there[place] = np.clip(theta[place] + sign * errors[k], unknown.lower, unknown.upper)
                said = _difference(here, case.runner.event_listing(there, case.discretisation))
                if said:
                    notes.append(
                        f"events: within a standard error of {unknown.name}, at {there[place]:.6g}, {said}; "
                        f"where their order decides what follows, derivatives and errors are those of one order."
                    )
                    break
    return notes


def _difference(here: EventListing, there: EventListing) -> str:
    if there.failure:
        return f"the run fails: {there.failure}"
    for one, other in zip(here.listed, there.listed, strict=False):
        if one[1] != other[1]:
            return f"{other[1]} at t = {other[0]:.6g} comes in the place of {one[1]} at t = {one[0]:.6g}"
    return ""
