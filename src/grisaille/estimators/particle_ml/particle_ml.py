"""Maximum likelihood by particle filters, for models that no Kalman filter describes.

The likelihood of a stochastic model is estimated without bias by many simulated states that are weighed by the
measurements (``filtering.particles``). Its logarithm comes with its Monte Carlo error; maximum and curvature are those
of a quadratic through many of its values (``response_surface``). Reference: C. Andrieu, A. Doucet, R. Holenstein, J. R.
Stat. Soc. B 72 (2010) 269; A. A. King, D. Nguyen, E. L. Ionides, J. Stat. Softw. 69 (2016) 12.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.estimated_quantities import UNKNOWN_KINDS, Kind
from grisaille.bound_experiment.shared_refusals import refuse_few_instants, refuse_static
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.redraw import Redraw
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import Estimator, Verdict
from grisaille.estimation.experiment_terms import ExperimentTerm, PreparedRunner, trial_of
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.likelihood import LikelihoodProblem
from grisaille.estimation.model_and_data import STATIC_REFUSAL, ModelAndData
from grisaille.estimation.noise_levels import level_guess
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.kalman_ml import filter_choices as choices
from grisaille.estimators.kalman_ml.filtered_ahead import FilteredAhead
from grisaille.estimators.kalman_ml.filtered_states import FilteredStates
from grisaille.estimators.particle_ml.particle_conclusion import conclude
from grisaille.estimators.particle_ml.particle_density import ParticleLikelihood
from grisaille.estimators.particle_ml.particle_problem import ParticleProblem
from grisaille.estimators.particle_ml.particle_runner import ParticleRunner
from grisaille.estimators.particle_ml.starting_points import find_start
from grisaille.filtering.filter_runner import FilterRunner
from grisaille.filtering.particles.particle_filter import ParticleOptions
from grisaille.model.classes import Model
from grisaille.optimization.journal import Progress, SearchJournal
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

NO_RESIDUALS = "gr.bootstrap of a fit by gr.ParticleML redraws starts, disturbances and noise: use kind='parametric'."
PROPOSALS = ("auto", "bootstrap", "guided")
SEARCHES = ("auto", "surface", "iterated")


@dataclass(frozen=True)
class ParticleML(Estimator):
    """Options of maximum likelihood by particle filters.

    particles : how many states are simulated side by side; the deviation of log L falls with their root
    seed : of the random numbers; data of ``gr.simulate`` with the same seed have others
    proposal : ``"guided"`` moves particles towards the next measurement by the linearised prediction of each,
        ``"bootstrap"`` as the model does; ``"auto"`` takes what has the smaller variance for the same work
    substeps : steps between samples, or ``"auto"``: as many as the noise of the prediction asks for
    initial_covariance : of the states before the first sample, as in ``gr.KalmanML``, but for flat priors
    search : for the maximum: ``"surface"``, quadratics through values around the point that a Kalman filter finds, or
        the guess; ``"iterated"``, iterated filtering first; ``"auto"``, that where nothing else finds a start
    state_bounds : ``"ignore"``, or ``"clip"``: states are kept inside the bounds of their variables after each step
    repetitions : independent estimates of which the reported log L is made
    max_evaluations : when to stop
    compiled : as in ``gr.simulate``

    Examples
    --------
    The tank and the data of ``help(gr.fit)``, with a disturbed level:

    >>> class Disturbed(Tank):
    ...     w = gr.Disturbance(gr.spectra.white(), scale=0.05)
    ...     y = gr.Output(Tank.h, noise=0.01)
    ...     def equations(self):
    ...         yield gr.der(self.h) == self.q - self.k * self.h + self.w
    >>> gr.fit(Disturbed(), data, ["k", "q"], gr.ParticleML(particles=50))["k"]
    0.502 ± 0.018
    """

    particles: int = 1000
    seed: int = 1
    proposal: Literal["auto", "bootstrap", "guided"] = "auto"
    substeps: int | Literal["auto"] = "auto"
    initial_covariance: Any = "first-sample"
    search: Literal["auto", "surface", "iterated"] = "auto"
    state_bounds: Literal["ignore", "clip"] = "ignore"
    repetitions: int = 10
    max_evaluations: int = 5000
    compiled: bool | None = None

    def __post_init__(self) -> None:
        choices.checked_choice("proposal", self.proposal, PROPOSALS)
        choices.checked_choice("search", self.search, SEARCHES)
        choices.checked_choice("state_bounds", self.state_bounds, ("ignore", "clip"))
        for name in ("particles", "repetitions", "max_evaluations"):
            choices.checked_whole_number(name, getattr(self, name))
        if self.particles < 2:
            raise EstimationError(f"particles={self.particles}: a particle filter needs two at least.")
        if not (isinstance(self.substeps, str) and self.substeps == "auto"):
            choices.checked_whole_number("substeps", self.substeps)
        object.__setattr__(self, "initial_covariance", choices.checked_covariance(self.initial_covariance))

    @classmethod
    def verdict(cls, subject: ModelAndData) -> Verdict:
        if subject.is_static:
            return Verdict(False, STATIC_REFUSAL)
        return Verdict(False, "possible, at a hundred times the cost of a Kalman filter: not taken unasked")

    @property
    def takes_laws(self) -> bool:
        return True

    @property
    def density(self) -> ParticleLikelihood:
        return ParticleLikelihood()

    @property
    def states(self) -> FilteredStates:
        return FilteredStates(self, partial(case_of, self))

    @property
    def ahead(self) -> FilteredAhead:
        return FilteredAhead(self, partial(case_of, self))

    @property
    def redraw(self) -> Redraw:
        return Redraw("model", {"residual": NO_RESIDUALS})

    @property
    def predictions_are(self) -> str:
        return "1 sample ahead"

    @property
    def particle_options(self) -> ParticleOptions:
        return ParticleOptions(
            self.particles, self.seed, self.proposal, self.substeps, self.initial_covariance,
            self.state_bounds == "clip",
        )  # fmt: skip

    def further_unknowns(self, structure: Structure, data: Any, wanted: Any) -> list[str]:
        """Add noise levels that the model leaves open to the unknowns."""
        measured = dict.fromkeys(o for e in data for o in e.outputs)
        said = {name.partition("@")[0] for name in wanted}
        outputs = structure.model.outputs
        still = [f"noise({o})" for o in measured if outputs[o].noise is None and outputs[o].distribution is None]
        return [*wanted, *(n for n in still if n not in said)]

    def pose(self, question: FitRequest) -> ParticleProblem:
        """Return the problem of a model and its data."""
        structure, data, unknowns = question.structure, question.data, question.unknowns
        open_levels = [k for k, u in enumerate(unknowns) if u.kind in ("scale", "noise") and not np.isfinite(u.guess)]
        guessed = [level_guess(structure, data, u, unknowns) if k in open_levels else u for k, u in enumerate(unknowns)]
        known = question.steps or (None,) * len(question.trials)
        cases = []
        for experiment, (trial, mine), steps in zip(data, question.trials, known, strict=True):
            cases.append(replace(particle_case(self, experiment, trial, mine), discretisation=steps))
        guess = np.array([u.guess for u in guessed])
        for case in cases:
            case.runner.prepare(case.own(guess))
        return ParticleProblem(guessed, cases, self.seed)

    def estimate(self, problem: EstimationProblem, progress: Progress | None = None) -> Estimate:
        """Solve a problem."""
        begin, journal = time.perf_counter(), SearchJournal.of(progress)
        posed = problem.of(LikelihoodProblem).discretised_problem
        assert isinstance(posed, ParticleProblem)
        start = find_start(self, posed, journal)
        return conclude(self, posed, start, journal, begin)


def case_of(
    method: ParticleML, model: Model, experiment: Experiment, unknowns: Sequence[Unknown],
    kinds: Sequence[Kind] = UNKNOWN_KINDS,
) -> ExperimentTerm:  # fmt: skip
    """Return the term of one experiment; ``kinds`` of unknowns belong to it."""
    return particle_case(method, experiment, *trial_of(model, experiment, unknowns, kinds))


def particle_case(
    method: ParticleML, experiment: Experiment, trial: BoundExperiment, mine: tuple[int, ...]
) -> ExperimentTerm:
    """Return an experiment with its trial as a particle filter runs it."""
    refuse_static(trial, "a particle filter")
    refuse_few_instants(trial, "a particle filter")
    runner: FilterRunner = ParticleRunner(trial, method.particle_options)
    return ExperimentTerm(experiment, runner.trial, PreparedRunner(runner), trial.data.outputs, mine)
