"""Measurements of one run, in place of those of the plan: what all studies that vary the data share.

A data set is one array per output of each experiment, over all its rows; gaps (NaN) and skipped samples stay where the
plan has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import GrisailleError, InsufficientMemoryError
from grisaille.estimation.problem import EstimationProblem
from grisaille.experiment.experiment_content import compared_rows
from grisaille.study.study_task import DataFailure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

DataSet = list[dict[str, np.ndarray]]
"""Output → values, for each experiment."""


class OtherData(ABC):
    """A variation that changes measurements and keeps the guess."""

    changes_guess = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return how the data are drawn, in sentences."""
        return ()

    @abstractmethod
    def data_set(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        """Return the measurements under a run's seed."""

    @abstractmethod
    def header(self) -> dict[str, str]:
        """Return what must be the same when a study is resumed."""

    def vary(self, problem: EstimationProblem, run: int, seed: int) -> EstimationProblem:
        plan = [c.experiment for c in problem.cases]
        data = self._made(plan, seed)
        return problem.renewed(
            [d[s.output][kept_rows(c.experiment, s.output)] for c, d in zip(problem.cases, data, strict=True)
             for s in c.samples]
        )  # fmt: skip

    def experiments(self, problem: EstimationProblem, run: int, seed: int) -> list[Experiment]:
        plan = [c.experiment for c in problem.cases]
        return [with_data(e, d) for e, d in zip(plan, self._made(plan, seed), strict=True)]

    def _made(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        try:
            return self.data_set(plan, seed)
        except InsufficientMemoryError:
            raise
        except GrisailleError as error:
            raise DataFailure(str(error)) from error


def kept_rows(experiment: Experiment, output: str) -> np.ndarray:
    """Return rows of an output that are compared with the model."""
    return compared_rows(experiment, output)


def with_data(experiment: Experiment, data: dict[str, np.ndarray]) -> Experiment:
    """Return the experiment with other values at its measured rows; samples beyond a limit are marked."""
    outputs, marks = {}, {}
    for name, samples in experiment.outputs.items():
        values = np.where(np.isfinite(samples.values), data[name], np.nan)
        if name in experiment.marks:
            values, marks[name] = _limited(values, experiment.marks[name], samples.values)
        outputs[name] = values if experiment.is_static else (samples.times, values)
    return experiment.replace(outputs=outputs, marks=marks)


def _limited(values: np.ndarray, marks: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values that end at the limits of samples that have one, and the marks of those that are there."""
    low, high = np.where(marks < 0, limits, -np.inf), np.where(marks > 0, limits, np.inf)
    ended = np.where(np.isnan(values), np.nan, np.clip(values, low, high))
    return ended, np.where((marks != 0) & (ended == limits), marks, 0)
