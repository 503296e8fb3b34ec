"""The cost of a search by filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.abilities.effort import Effort
from grisaille.estimation.effort.cost import Cost, usual_cost
from grisaille.estimation.effort.fit_memory import bytes_of_filters
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.problem import EstimationProblem
from grisaille.experiment.experiment import Experiment
from grisaille.filtering.filter_steps import steps_of
from grisaille.model.classes import Model
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.estimators.kalman_ml.kalman_ml import KalmanML

MIN_NOTABLE_STEPS = 1.5
"""Steps between samples, on average, that are worth a word."""
MIN_STIFF_DOUBLINGS = 9
"""Doublings of a matrix exponential from which on a state settles a hundred times faster than samples come."""
MIN_MANY_STATES = 60
"""States from which on their covariance is worth a word: a gradient over 50 samples takes a tenth of a second, or most
of one where the model is not linear, and eight times as long with twice as many."""
METHODS_WITHOUT_FILTERS = "gr.SimulatedPEM() or gr.OutputError()"
SECONDS_PER_STATE = 1e-8
"""Seconds of a gradient for each sample and cube of the number of states, at least: where the model is not linear it
takes some seven times as long."""
MIN_ANNOUNCED_SECONDS = 30.0
"""Seconds of a search of ``ANNOUNCED_GRADIENTS`` gradients from which on that is said beforehand."""
ANNOUNCED_GRADIENTS = 40


@dataclass(frozen=True)
class FilterEffort(Effort):
    """Steps between samples, and the covariance of all states."""

    method: KalmanML

    def evaluations(self, problem: EstimationProblem) -> int:
        return 20 + 7 * len(problem.unknowns)

    def cost(self, problem: EstimationProblem) -> Cost:
        """Return the cost: Hessians by differences of gradients, twice, take most evaluations; steps make each of them
        long.
        """
        steps = [s for c in problem.discretised_problem.cases if (s := steps_of(c.discretisation)).counts]
        counts = np.concatenate([s.counts for s in steps]) if steps else np.ones(1)
        causes: list[str] = []
        faster: list[str] = []
        if counts.mean() > MIN_NOTABLE_STEPS:
            causes.append(f"{counts.mean():.2g} steps between samples on average, {counts.max()} at most")
        states = max(c.trial.structure.system.nx for c in problem.cases)
        if states >= MIN_MANY_STATES:
            causes.append(f"the covariance of {states} states, whose cost grows with the cube of their number")
            faster.append(f"{METHODS_WITHOUT_FILTERS}, which carry no covariance of states")
        if problem.cases[0].runner.lacks_derivatives:
            causes.append(f"derivatives by differences, {2 * len(problem.unknowns)} passes of the filter for each")
        if self.method.filter == "unscented":
            faster.append("the extended filter, gr.KalmanML(filter='extended'), where the model is smooth")
        if any(s.doublings > MIN_STIFF_DOUBLINGS for s in steps):
            faster.append("algebraic equations instead of der(…) for states that settle between two samples at once")
        return usual_cost(problem, self.evaluations(problem), causes, faster)

    def bytes_needed(self, question: FitRequest) -> float:
        """Return the bytes needed: records are filtered one after the other, each with derivatives by the unknowns that
        move it.
        """
        return bytes_of_filters(question)

    def beforehand(self, model: Model, experiments: Sequence[Experiment]) -> str:
        """Warn that the covariance of many states makes every evaluation long."""
        structure, samples = structure_of(model), sum(len(e.time) for e in experiments if e.time is not None)
        states = structure.system.nx
        each = SECONDS_PER_STATE * samples * states**3
        if states < MIN_MANY_STATES or ANNOUNCED_GRADIENTS * each < MIN_ANNOUNCED_SECONDS:
            return ""
        return (
            f"gr.KalmanML carries the covariance of all {states} states of {structure.model.name} through {samples} "
            "samples, whose cost grows with the cube of their number: one evaluation with derivatives takes about "
            f"{each:.1g} s where the model is linear and several times that where it is not, and a fit takes "
            f"{ANNOUNCED_GRADIENTS} "
            f"of them or more. {METHODS_WITHOUT_FILTERS} carry no covariance of states."
        )
