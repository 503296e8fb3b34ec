"""Many data sets from a known truth, each fitted; what the estimates do and what they claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment.unknown import Unknown
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.experiment.experiment import Experiment
from grisaille.model.classes import Model
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of
from grisaille.study.study import Study
from grisaille.study.study_summary import StudySummary, summarize
from grisaille.study.study_task import PreparedTask, RunAnswer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas


def true_values(model: Model, unknowns: Sequence[Unknown], guess: np.ndarray, noise: Mapping[str, float]) -> np.ndarray:
    """Return the guess with the levels of noise that the data are drawn with: searches for levels may begin
    elsewhere.
    """
    flat = structure_of(model).model
    values = evaluate_parameters(flat)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    truth = guess.copy()
    for k, unknown in enumerate(unknowns):
        if unknown.kind == "noise" and unknown.target in noise:
            truth[k] = noise[unknown.target]
        elif unknown.kind in ("scale", "noise"):
            table: Any = flat.disturbances if unknown.kind == "scale" else flat.outputs
            declared = getattr(table[unknown.target], unknown.kind)
            if declared is not None:
                with suppress(KeyError):  # a formula that moves with the signals is no one number
                    truth[k] = evaluate([declared], known)[0]
    return truth


@checked_methods
class MonteCarloRuns(Study):
    """Fits of many data sets that share one truth."""

    def __init__(self, prepared: PreparedTask, answers: list[RunAnswer], truth: np.ndarray) -> None:
        super().__init__(prepared, answers)
        self._truth = truth

    @cached_property
    def truth(self) -> pd.Series:
        """Return the true values of the estimates."""
        import pandas as pd

        return pd.Series(self._truth, index=list(self.names), name="truth")

    def data(self, run: int) -> list[Experiment]:
        """Return the experiments of one run, with its measurements.

        run : its number in the table
        """
        if not 0 <= run < len(self):
            raise EstimationError(f"There is no run {run!r}: runs are numbered from 0 to {len(self) - 1}.")
        prepared = self._prepared
        return prepared.task.variation.experiments(prepared.problem, run, prepared.seed(run))

    def summary(self, level: float = 0.95, left_out: Sequence[int] = ()) -> StudySummary:
        """Return mean, median, spread, bias and coverage of each unknown over the converged runs, and how all runs
        ended.

        level : of the intervals whose coverage is counted
        left_out : runs that do not count, such as those whose plant left the domain of the model; the headline says
            how many
        """
        return summarize(self, level, left_out)

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot histograms of the estimates with box plots above them, the truth marked.

        ax : axes to draw the histograms on instead of a new figure, one per unknown
        """
        from grisaille.study.study_plots import draw_estimates

        return draw_estimates(self, ax)

    def __str__(self) -> str:
        return str(self.summary())

    __repr__ = __str__
