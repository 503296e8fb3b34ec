"""``fit.validate(experiment)``: a record that the fit has not seen, predicted at the estimates and compared.

Nothing is estimated but, where nobody knows it, the state in which the record begins; the samples that told it are not
scored. Predictions are those of the estimator: simulations, means of ensembles, or one sample ahead by a filter.
Residual tests take the estimates as exact; their errors add a little to the residuals of short fits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.diagnosis import Diagnosis, diagnose
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.fitted import Fitted
from grisaille.estimators.fitting import build_problem
from grisaille.experiment.experiment import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas


@dataclass(frozen=True)
@checked_methods
class Validation:
    """How a fitted model does on a record that was not fitted; true where every residual test is healthy."""

    fitted: Fitted
    """The model at the estimates on the record, with nothing left to estimate."""
    start: str
    """Where the record begins, and how that is known."""
    used: int
    """First samples of each output that told the start and are not scored."""
    level: float

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per output: samples, rms of the errors, fit (100 (1 − |e| / |y − mean|), in percent) and r2."""
        quality = self.fitted.quality.rename(columns={"fit_percent": "fit"})
        return quality[["samples", "rms", "fit", "r2"]].astype({"samples": int})

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Tests of the residuals, as ``fit.diagnose()`` makes them."""
        return diagnose(self.fitted, self.level)

    @property
    def experiment(self) -> Experiment:
        """The record, with the start that it was predicted from."""
        return self.fitted.experiments[0]

    def residuals(self) -> pd.DataFrame:
        """A row per sample: time, measured, predicted, residual."""
        return self.fitted.residuals()

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Measured against predicted, residuals below.

        ax : axes to draw on instead of a new figure, two per output
        """
        from grisaille.reporting.fit_plots import plot

        return plot(self.fitted, None, None, ax)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the validation as one HTML page.

        path : a file name that ends in .html
        title : instead of the model's name
        """
        from grisaille.reporting.report import report

        return report(self.fitted, path, profiles=False, title=title or f"{self.fitted.model_name}: validation")

    def __bool__(self) -> bool:
        return bool(self.diagnosis)

    def __str__(self) -> str:
        name = f"'{self.experiment.name}'" if self.experiment.name else "a record"
        scored = f", the first {self.used} samples not scored" if self.used else ""
        head = f"{self.fitted.model_name} on {name}, which was not fitted: begins {self.start}{scored}"
        shown = self.table.to_string(float_format="{:.5g}".format)
        return f"{head}\n\n{shown}\n\n{self.diagnosis}"

    __repr__ = __str__


def validate(
    fit: Fitted, experiment: Experiment, start: str | Mapping[str, float] = "auto", level: float = 0.01
) -> Validation:
    """Predict a record at the estimates and compare."""
    begun = fit.begun(experiment, start)
    if any(begun.experiment is e for e in fit.experiments):
        raise EstimationError(
            f"Experiment '{begun.experiment.name}' was fitted: its residuals are tested by fit.diagnose(). Validate on "
            f"data that the fit has not seen, such as the second part of experiment.split(0.7)."
        )
    on = begun.following(fit)
    record = on.experiment.replace(skip=max(begun.used, on.experiment.skip))
    method, model = on.method.validator, fit.settled_model
    problem = build_problem(model, [record], [], method, searched=False)
    at = problem.evaluate(np.zeros(0))
    if not at.completed:
        raise EstimationError(f"The fitted model cannot be simulated on '{record.name}': {at.failure}")
    kept = {k: v for k, v in fit.estimate.extra.items() if k in ("disturbed_residuals", "realizations")}
    estimate = Estimate.at(
        problem, at, np.zeros((0, 0)), cases=problem.cases, extra=kept, status="nothing was estimated"
    )
    fitted = type(fit)(model, [c.experiment for c in problem.cases], method, estimate, fit.why)
    return Validation(fitted, on.how, begun.used, level)
