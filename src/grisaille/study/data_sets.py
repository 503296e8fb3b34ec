"""Measurements of one run, in place of those of the plan: what all studies that vary the data share.

A data set is one array per output of each experiment, over all its rows; gaps (NaN) and skipped samples stay where the
plan has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from grisaille.errors import GrisailleError, InsufficientMemoryError
from grisaille.estimation.problem import Problem
from grisaille.experiment.record import compared_rows
from grisaille.study.task import DataFailure

DataSet = list[dict[str, np.ndarray]]
"""Output → values, for each experiment."""


class OtherData(ABC):
    """A variation that changes measurements and keeps the guess."""

    changes_guess = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about how the data are drawn."""
        return ()

    @abstractmethod
    def data_set(self, plan: Sequence[Any], seed: int) -> DataSet:
        """The measurements under a run's seed."""

    @abstractmethod
    def header(self) -> dict[str, str]:
        """What must be the same when a study is resumed."""

    def vary(self, problem: Problem, run: int, seed: int) -> Problem:
        plan = [c.experiment for c in problem.cases]
        data = self._made(plan, seed)
        return problem.renewed(
            [d[s.output][kept_rows(c.experiment, s.output)] for c, d in zip(problem.cases, data, strict=True)
             for s in c.samples]
        )  # fmt: skip

    def experiments(self, problem: Problem, run: int, seed: int) -> list[Any]:
        plan = [c.experiment for c in problem.cases]
        return [with_data(e, d) for e, d in zip(plan, self._made(plan, seed), strict=True)]

    def _made(self, plan: Sequence[Any], seed: int) -> DataSet:
        try:
            return self.data_set(plan, seed)
        except InsufficientMemoryError:
            raise
        except GrisailleError as error:
            raise DataFailure(str(error)) from error


def kept_rows(experiment: Any, output: str) -> np.ndarray:
    """Rows of an output that are compared with the model."""
    return compared_rows(experiment, output)


def with_data(experiment: Any, data: dict[str, np.ndarray]) -> Any:
    """The experiment with other values at its measured rows; limits that a value has passed are none of it."""
    outputs = {}
    for name, samples in experiment.outputs.items():
        values = np.where(np.isfinite(samples.values), data[name], np.nan)
        outputs[name] = values if experiment.is_static else (samples.times, values)
    marks = {n: _marks_of(experiment, n, m, data[n]) for n, m in experiment.marks.items()}
    return experiment.replace(outputs=outputs, marks=marks)


def _marks_of(experiment: Any, output: str, marks: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the marks of other values of samples with limits: of those that are still at or beyond them."""
    limits = experiment.outputs[output].values
    return np.where(marks < 0, -1 * (values <= limits), np.where(marks > 0, 1 * (values >= limits), 0))
