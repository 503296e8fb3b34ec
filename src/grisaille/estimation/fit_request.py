"""What an estimator is asked: a model, its data, and what is unknown about them.

The trials of the experiments are made once, whoever looks at them: refusals that hold for all estimators, then the
estimator itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.shared_refusals import scheduled_trial
from grisaille.bound_experiment.unknown import Unknown
from grisaille.estimation.experiment_terms import start_guesses, trial_of
from grisaille.experiment.experiment import Experiment
from grisaille.model.classes import Model
from grisaille.structure.reduction import Structure
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.estimation.fitted import Fitted


Trials: TypeAlias = tuple[tuple[BoundExperiment, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class FitRequest:
    """What is to be estimated from what.

    structure : of the model, at the values guessed
    guess : the fit that the first values come from, if any
    steps : discretisations that serve its experiments, in their order, where they are known; others are chosen
    """

    model: Model
    structure: Structure
    data: Sequence[Experiment]
    unknowns: Sequence[Unknown]
    guess: Fitted | None = None
    steps: Sequence[Discretisation | None] = ()
    given_trials: Trials | None = None
    """Its experiments as they were bound before, where others had them already."""

    @classmethod
    def of(cls, model: Model, data: Sequence[Experiment], unknowns: Sequence[Unknown]) -> FitRequest:
        """Return the request with the model's own structure."""
        return cls(model, structure_of(model), data, unknowns).with_starts()

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Measured in some experiment."""
        return tuple(dict.fromkeys(o for e in self.data for o in e.outputs))

    @cached_property
    def trials(self) -> Trials:
        """Every experiment bound to the unknowns that it depends on, and which these are."""
        return self.given_trials or tuple(trial_of(self.model, e, self.unknowns) for e in self.data)

    def with_unknowns(self, unknowns: Sequence[Unknown]) -> FitRequest:
        """Return the same with other guesses of the same unknowns; trials are shared."""
        return replace(self, unknowns=tuple(unknowns), given_trials=self.trials)

    def scheduled(self, who: str) -> FitRequest:
        """Return the same for an estimator that knows equations and signals: discrete variables are signals, or
        refused.
        """
        if not self.structure.model.whens:
            return self
        return replace(self, given_trials=tuple((scheduled_trial(trial, who), mine) for trial, mine in self.trials))

    def with_starts(self) -> FitRequest:
        """Return the same with unknown starts guessed where their experiments begin, as estimators take it."""
        if all(u.kind != "start" or np.isfinite(u.guess) for u in self.unknowns):
            return self
        return self.with_unknowns(start_guesses(self.unknowns, self.trials))

    def points(self) -> list[ExperimentPoint]:
        """Return the trials at the guess."""
        return [trial.at([self.unknowns[k].guess for k in mine]) for trial, mine in self.trials]
