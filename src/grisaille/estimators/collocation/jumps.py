"""Equations that jump with states, where trajectories are fitted by slopes.

As a trajectory moves across a switch its equations, and with them every criterion of collocation, change by a jump that
no slope shows. Small jumps (beside what disturbances do between two samples) leave a minimum that a search finds, and
standard errors that are approximate; larger ones do not, and are refused by their name.
"""

from __future__ import annotations

import numpy as np

from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.problem import Problem
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.runner import Runner

REMEDY = (
    "use gr.KalmanML(filter='unscented'), which averages over both sides, or gr.SimulatedPEM(), which simulates them"
)


def caution(problem: Problem) -> str:
    """The sentence under the table of a fit whose equations jump with states."""
    jumps = [jump for case in problem.cases for jump in case.trial.structure.jumps.of_states]
    if not jumps:
        return ""
    return (
        f"jumps: the equations jump with '{jumps[0].text}', which the slopes that trajectories are fitted by do not "
        f"see: standard errors and intervals are approximate; gr.KalmanML(filter='unscented') or gr.SimulatedPEM() do"
    )


def refuse_jump(problem: Problem, theta: np.ndarray) -> None:
    """Refuse the switch that a simulation at θ crosses, after a search has failed; nothing where it crosses none."""
    found = _first_crossing(problem, theta)
    if found is not None:
        name, crossing = found
        raise EstimationError(
            f"The equations jump with {crossing} in '{name}', and no minimum was found: collocation fits trajectories "
            f"by slopes, which do not show what lies on the other side of a jump; {REMEDY}."
        )


def _first_crossing(problem: Problem, theta: np.ndarray) -> tuple[str, Crossing] | None:
    for case in problem.cases:
        if not case.trial.structure.jumps.of_states:
            continue
        try:
            crossings = Runner(case.trial, case.trial.data.outputs).crossings(case.own(theta))
        except GrisailleError:
            continue
        if crossings:
            return case.name, crossings[0]
    return None
