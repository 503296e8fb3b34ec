"""One experiment inside a problem: its runner, its samples, and the unknowns that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self

import numpy as np

from grisaille.bound_experiment import BoundExperiment
from grisaille.bound_experiment.bound_experiment import estimated_quantities_of
from grisaille.bound_experiment.data_matrix import OutputSamples
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.estimated_quantities import UNKNOWN_KINDS, Kind
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.estimation.noise import NoiseLevel
from grisaille.model.classes import Model
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.row_runner import RowRunner
from grisaille.simulation.runner import Prediction, Runner


class PreparedTrial(Protocol):
    """The form in which an estimator evaluates an experiment: a simulation, a filter, an ensemble."""

    def discretise(self, theta: np.ndarray) -> Discretisation: ...

    def with_experiment(self, trial: BoundExperiment) -> Self: ...


class SimulatedTrial(PreparedTrial, Protocol):
    """A prepared trial that predicts by one simulation, on a discretisation of its own kind."""

    def predict(self, theta: np.ndarray, discretisation: Any, /, *, sensitive: bool) -> Prediction: ...

    def failed(self, reason: str, sensitive: bool) -> Prediction: ...

    def crossings(self, theta: np.ndarray, discretisation: Any = None, /) -> list[Crossing]: ...

    def refined(self, theta: np.ndarray, discretisation: Any, excess: float, /) -> Discretisation: ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from grisaille.experiment.experiment import Experiment

    R = TypeVar("R", bound=PreparedTrial, default=Any, covariant=True)
else:
    from typing import TypeVar

    R = TypeVar("R")


@dataclass(frozen=True)
class PreparedRunner(Generic[R]):
    """A runner that is there already."""

    runner: R

    def __call__(self) -> R:
        return self.runner


@dataclass(frozen=True)
class ExperimentTerm(Generic[R]):
    """An experiment that can be predicted at any values of the unknowns."""

    experiment: Any
    trial: BoundExperiment
    prepare: Callable[[], R] | None
    """Gives the runner, the same at every call; None where an estimator makes one thing of all trials."""
    outputs: tuple[str, ...]
    """Columns of a prediction: measured outputs, then what noise formulas need."""
    unknowns: tuple[int, ...]
    """Indices into the problem's unknowns, in the order of the trial's θ."""
    discretisation: Discretisation | None = None
    """How finely it is represented; None as long as that has not been chosen."""
    name: str = field(init=False, repr=False, compare=False)
    grid: np.ndarray = field(init=False, repr=False, compare=False)
    samples: tuple[OutputSamples, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Of the trial: its name, its instants, what was measured."""
        trial = self.trial
        vars(self).update(name=trial.name, grid=trial.times, samples=trial.data.samples)

    @property
    def runner(self) -> R:
        """Return what an estimator has made of the trial; of a loaded fit it is made when first asked for."""
        assert self.prepare is not None
        return self.prepare()

    @property
    def count(self) -> int:
        return sum(len(s.values) for s in self.samples)

    def own(self, theta: np.ndarray) -> np.ndarray:
        """Return θ of the trial among values of all unknowns."""
        return np.asarray(theta[list(self.unknowns)])

    def discretised(self, theta: np.ndarray) -> ExperimentTerm[R]:
        """Return the term with a discretisation that suits values of all unknowns, unless it has one; unchanged where
        none does.
        """
        if self.discretisation is not None or self.prepare is None:
            return self
        try:
            return replace(self, discretisation=self.runner.discretise(self.own(theta)))
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError:
            return self

    def predict(self: ExperimentTerm[SimulatedTrial], theta: np.ndarray, *, sensitive: bool) -> Prediction:
        """Return outputs (and derivatives by its own θ) at values of all unknowns."""
        discretisation = self.discretisation
        if discretisation is None:
            try:
                discretisation = self.runner.discretise(self.own(theta))
            except INDEPENDENT_OF_VALUES:
                raise
            except GrisailleError as error:
                return self.runner.failed(str(error), sensitive)
        return self.runner.predict(self.own(theta), discretisation, sensitive=sensitive)

    def crossings(self: ExperimentTerm[SimulatedTrial], theta: np.ndarray) -> list[Crossing]:
        """Return the switches at which the equations jump that the trajectory crosses."""
        return self.runner.crossings(self.own(theta), self.discretisation)

    def refined(
        self: ExperimentTerm[SimulatedTrial], theta: np.ndarray, excess: float
    ) -> ExperimentTerm[SimulatedTrial]:
        """Return the term with a finer discretisation at values of all unknowns, where an error estimate was so many
        tolerances.
        """
        if not self.discretisation:
            return self
        return replace(self, discretisation=self.runner.refined(self.own(theta), self.discretisation, excess))

    def column(self, name: str) -> int:
        return self.outputs.index(name)

    def with_values(self, values: Iterator[np.ndarray]) -> ExperimentTerm:
        """Return the same with other measurements, one array for each of ``samples``."""
        trial = self.trial.with_data(self.trial.data.with_values(values))
        return replace(self, trial=trial, prepare=self.prepare and PreparedRunner(self.runner.with_experiment(trial)))


def build_experiment_term(
    experiment: Experiment,
    trial: BoundExperiment,
    mine: tuple[int, ...],
    noise: dict[str, NoiseLevel],
    rtol: float,
) -> ExperimentTerm[Runner | RowRunner]:
    """Return the term of one experiment, which depends on the unknowns ``mine``."""
    measured = tuple(experiment.outputs)
    outputs = tuple(dict.fromkeys([*measured, *(n for m in measured for n in noise[m].needs)]))
    if trial.is_static:
        runner: Runner | RowRunner = RowRunner(trial, outputs)
    else:
        runner = Runner(trial, outputs, rtol=rtol)
    return ExperimentTerm(experiment, trial, PreparedRunner(runner), outputs, mine)


def trial_of(
    model: Model, experiment: Any, unknowns: Sequence[Unknown], kinds: Sequence[Kind] = UNKNOWN_KINDS
) -> tuple[BoundExperiment, tuple[int, ...]]:
    """Return an experiment bound to the unknowns that it depends on, and which these are."""
    mine = tuple(k for k, u in enumerate(unknowns) if u.applies_to(experiment.name) and u.kind in kinds)
    starts = [unknowns[k].name for k in mine if unknowns[k].kind == "start"]
    if experiment.is_static and starts:
        raise EstimationError(f"'{starts[0]}' is estimated, but a static experiment has no start.")
    return BoundExperiment.of(model, experiment, estimated_quantities_of([unknowns[k] for k in mine])), mine


def unknown_starts(experiment: Experiment) -> dict[str, Any]:
    """Return starts that the experiment declares unknown: variable → None or a prior."""
    return {n: v for n, v in experiment.start.items() if not isinstance(v, int | float | np.number)}


def start_guesses(
    unknowns: Sequence[Unknown], trials: Iterable[tuple[BoundExperiment, tuple[int, ...]]]
) -> tuple[Unknown, ...]:
    """Return the unknowns with guesses of starts from the consistent start of their experiment at the guess.

    trials : with those of the unknowns that move them
    """
    done = list(unknowns)
    for trial, mine in trials:
        wanted = [k for k in mine if done[k].kind == "start" and not np.isfinite(done[k].guess)]
        if not wanted:
            continue
        still = [k for k in mine if k not in wanted]
        moving = trial.moving(estimated_quantities_of([done[k] for k in still]))
        start = moving.at([done[k].guess for k in still]).observed()
        for k in wanted:
            done[k] = replace(done[k], guess=start[done[k].target])
    return tuple(done)
