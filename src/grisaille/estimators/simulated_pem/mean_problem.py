"""The problem of simulated prediction errors: experiments predicted by ensembles, and what is unknown about them.

Scales of disturbances are unknowns beside parameters and starts; levels of measurement noise only where variances are
matched too, since a mean does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from grisaille.bound_experiment.estimated_quantities import Kind
from grisaille.bound_experiment.shared_refusals import refuse_static
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm, PreparedRunner, trial_of
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.likelihood import LikelihoodEvaluation
from grisaille.estimation.noise import NoiseLevel, noise_levels, refuse_noise_alone
from grisaille.estimation.noise_levels import level_guess
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.simulated_pem.mean_criterion import MeanCriterion
from grisaille.model.expression import Expression, Name, postorder
from grisaille.model.flat import FlatModel
from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
from grisaille.simulation.ensembles.ensemble_runner import DIFFERENCE_STEP, EnsembleRunner
from grisaille.simulation.runner import Prediction

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

ENSEMBLE_KINDS: tuple[Kind, ...] = ("parameter", "scale", "start")
"""What an ensemble moves with."""
ACROSS_JUMPS = 0.01
"""Relative step of differences where paths jump: many paths must cross the switch in another step of the grid."""


@dataclass(frozen=True)
class OutputMatching:
    """What of the outputs is compared with the data, and how."""

    with_variance: bool = False
    corrected: bool = True
    weighting: Any = None


class MeanProblem(EstimationProblem):
    """Unknowns, and experiments that are predicted by ensembles."""

    def __init__(
        self,
        unknowns: Sequence[Unknown],
        cases: Sequence[ExperimentTerm],
        noise: dict[str, NoiseLevel],
        matching: OutputMatching,
    ) -> None:
        super().__init__(unknowns, cases, noise)
        self.matching = matching

    def evaluate(self, theta: np.ndarray, *, sensitive: bool = True) -> LikelihoodEvaluation:
        """Return the criterion with Λ at this point; it is no likelihood."""
        criterion = MeanCriterion(self)
        value = criterion.at(theta, sensitive=sensitive)
        if not value.completed:
            return LikelihoodEvaluation(theta, np.zeros(0), np.zeros((0, len(theta))), np.zeros(0), (), value.failure)
        criterion.update_levels(value)
        value = criterion.renew(value)
        predictions = tuple(Prediction(p.mean, p.mean_slopes) for p in value.predictions)
        return LikelihoodEvaluation(
            theta, value.residuals, value.jacobian, value.errors, predictions, value=value.objective,
            slope=value.gradient, curvature=value.curvature, log_likelihood=float("nan"),
        )  # fmt: skip

    def _freeze_at_guess(self) -> Self:
        """Return the problem itself: the criterion freezes formulas of σ at its first point."""
        return self

    def noise_unknown(self, case: ExperimentTerm, output: str) -> int | None:
        """Return the unknown that is the noise level of an output, where there is one."""
        for k, u in enumerate(self.unknowns):
            if u.kind == "noise" and u.target == output and u.applies_to(case.name):
                return k
        return None

    def renewed(self, values: Sequence[np.ndarray] | None = None, guess: np.ndarray | None = None) -> MeanProblem:
        """Return an independent problem with other measurements (an array for each ``samples``, in order) or another
        guess.
        """
        problem = MeanProblem(self.unknowns, self.renewed_cases(values), self.noise, self.matching)
        if guess is not None:
            problem.with_guess(guess)
        return problem


def pose_mean_problem(question: FitRequest, options: EnsembleOptions, matching: OutputMatching) -> MeanProblem:
    """Return the problem of a model and its data."""
    structure, data, unknowns = question.structure, question.data, question.unknowns
    if not structure.model.disturbances:
        raise EstimationError(
            f"{structure.model.name} has no disturbances, so every simulation is the mean: use gr.OutputError()."
        )
    _refuse_noise(unknowns, matching)
    noise = noise_levels(structure.model, question.outputs)
    guessed = [level_guess(structure, data, u, unknowns) if u.kind in ("scale", "noise") else u for u in unknowns]
    if matching.with_variance:
        refuse_noise_alone(noise, guessed, structure)
    cases = [_case(question, k, noise, options) for k in range(len(data))]
    problem = MeanProblem(guessed, cases, noise, matching)
    difference_across_jumps(problem, [c.runner for c in cases])
    return problem


def difference_across_jumps(problem: EstimationProblem, runners: Sequence[EnsembleRunner]) -> None:
    """Take derivatives by differences where equations jump with states, or states themselves at events.

    The derivative of a path lacks the share of the jumps it crosses; that of the mean is not seen in any path.
    """
    if any(case.trial.structure.jumps.of_states or case.trial.flat.whens for case in problem.cases):
        for case, runner in zip(problem.cases, runners, strict=True):
            runner.differences = np.array(
                [ACROSS_JUMPS / DIFFERENCE_STEP * problem.unknowns[k].size for k in case.unknowns]
            )


def open_noise(flat: FlatModel, data: Sequence[Experiment]) -> list[str]:
    """Return names of the noise levels that the model leaves open."""
    measured = dict.fromkeys(o for e in data for o in e.outputs)
    return [f"noise({o})" for o in measured if flat.outputs[o].noise is None]


def disturbance_parameters(flat: FlatModel) -> set[str]:
    """Return parameters that a spectrum, a scale or a correlation contains, through formulas of other parameters
    too.
    """
    formulas: list[Any] = []
    for d in flat.disturbances.values():
        formulas += [e for matrix in d.spectrum.state_space() for row in matrix for e in row]
        formulas += [] if d.scale is None else [d.scale]
        formulas += [value for _, value in d.correlation or ()]
    found: set[str] = set()
    while formulas:
        expressions = [f for f in formulas if isinstance(f, Expression)]
        names = {n.path for n in postorder(expressions) if isinstance(n, Name)} & set(flat.parameters)
        fresh, found = names - found, found | names
        formulas = [v for n in fresh if (v := flat.parameters[n].value) is not None]
    return found


def _refuse_noise(unknowns: Sequence[Unknown], matching: OutputMatching) -> None:
    levels = [u.name for u in unknowns if u.kind == "noise"]
    if levels and not matching.with_variance:
        raise EstimationError(
            f"The mean of the outputs does not depend on '{levels[0]}': use gr.SimulatedPEM(match='mean-variance'), "
            f"which compares variances too."
        )


def _case(
    question: FitRequest, k: int, noise: dict[str, NoiseLevel], options: EnsembleOptions
) -> ExperimentTerm[EnsembleRunner]:
    experiment, (trial, mine) = question.data[k], question.trials[k]
    if any(question.unknowns[i].kind not in ENSEMBLE_KINDS for i in mine):
        trial, mine = trial_of(question.model, experiment, question.unknowns, ENSEMBLE_KINDS)
    refuse_static(trial, "a disturbance")
    trial.form().standing  # noqa: B018 (refuses jumps that its steps cannot pass)
    measured = tuple(experiment.outputs)
    outputs = tuple(dict.fromkeys([*measured, *(n for m in measured for n in noise[m].needs)]))
    paired = {s.output: float(np.std(s.values)) or 1.0 for s in trial.data.samples}
    return ExperimentTerm(
        experiment, trial, PreparedRunner(EnsembleRunner(trial, outputs, options, paired)), outputs, mine
    )
