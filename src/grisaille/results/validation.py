"""``fit.validate(experiment)``: a record that the fit has not seen, predicted at the estimates and compared.

Beside the size of errors stands the log score, the mean log-density of the samples that the fit gives them, where
predictions are simulations.

Nothing is estimated but, where nobody knows it, the state in which the record begins; the samples that told it are not
scored. A score belongs to a horizon: a simulation sees the inputs alone, a prediction one sample ahead corrects itself
at every sample, so that it follows the data of a wrong plant, too. Methods that predict ahead are scored over both by
default. Residual tests are of the predictions that the method fits, and take the estimates as exact; their errors add a
little to the residuals of short fits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.diagnosis import Diagnosis, diagnose
from grisaille.assessment.log_scores import log_scores
from grisaille.calling import checked_methods
from grisaille.errors import EstimationError
from grisaille.estimation.estimate import Estimate
from grisaille.estimation.estimator import SIMULATION
from grisaille.estimation.findings.ensemble import EnsembleResult
from grisaille.estimation.fitted import Fitted, quality_of
from grisaille.estimation.predictions.ahead_or_bands import refuse_horizon
from grisaille.estimation.predictions.horizons import Horizon, check_horizon, horizon_text
from grisaille.estimation.starts.record_starts import RecordStart
from grisaille.estimators.fitting import build_problem
from grisaille.experiment.experiment import Experiment
from grisaille.experiment.times.dating import clock_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas

STATIC_HORIZON = "static"
"""The horizon of models without time."""


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
    predictions: Mapping[str, pd.DataFrame]
    """By horizon in words, ``"simulation"`` or ``"1 sample ahead"``: a row per sample, as in ``residuals()``."""
    remark: str = ""
    """Why these horizons and no others."""
    notes: tuple[str, ...] = ()
    """What the record is remarked on, alone and beside the model, as in ``fit.notes``."""
    log_scores: Mapping[str, float] = field(default_factory=dict)
    """Mean log-density of the samples of each output; empty where it is not computed (filters, robust losses)."""

    @property
    def horizons(self) -> tuple[str, ...]:
        """Return how far ahead was predicted, in words."""
        return tuple(self.predictions)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Return a row per output and horizon: samples, rms of the errors, fit (100 (1 − |e| / |y − mean|) percent) and
        r2.

        Of simulations log_score, too: the mean log-density of the samples by the noise or the law of the output, at the
        estimates. The higher it is, the better; only scores of the same samples are compared.
        """
        import pandas as pd

        parts = []
        for horizon, errors in self.predictions.items():
            part = quality_of(errors, self.fitted.method.score).rename(columns={"fit_percent": "fit"})
            part.insert(0, "horizon", horizon)
            part = part[["horizon", "samples", "rms", "fit", "r2"]].astype({"samples": int})
            if self.log_scores and horizon in (SIMULATION, STATIC_HORIZON):
                part["log_score"] = [self.log_scores.get(str(output), np.nan) for output in part.index]
            parts.append(part)
        order = {output: k for k, output in enumerate(parts[0].index)}
        return pd.concat(parts).sort_index(key=lambda names: names.map(order), kind="stable")

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Tests of the residuals, as ``fit.diagnose()`` makes them: of filters one sample ahead, whatever is scored."""
        return diagnose(self.fitted, self.level)

    @property
    def experiment(self) -> Experiment:
        """Return the record, with the start that it was predicted from."""
        return self.fitted.experiments[0]

    def residuals(self, horizon: str | None = None) -> pd.DataFrame:
        """Return a row per sample: time, measured, predicted, residual.

        horizon : as in ``table``, such as ``"simulation"``; by default what was tested, or the one that was asked for
        """
        if horizon is not None and horizon not in self.predictions:
            raise EstimationError(f"horizon is {horizon!r}; this validation has {' and '.join(self.horizons)}.")
        tested = self.fitted.method.predictions_are
        return self.predictions[horizon or (tested if tested in self.predictions else self.horizons[0])].copy()

    def plot(self, *, ax: Canvas | None = None) -> Figure:
        """Plot measured against predicted: what was tested with its residuals below, other horizons as dashed lines.

        ax : axes to draw on instead of a new figure, two per output
        """
        from grisaille.reporting.fit_plots import plot

        drawn = (self.fitted.method.predictions_are, STATIC_HORIZON)
        beside = {h: table for h, table in self.predictions.items() if h not in drawn}
        return plot(self.fitted, None, None, ax, beside=beside)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the validation as one HTML page.

        path : a file name that ends in .html
        title : instead of the model's name
        """
        from grisaille.reporting.report import report

        title = title or f"{self.fitted.model_name}: validation"
        return report(self.fitted, path, profiles=False, title=title, scores=self.table)

    def __bool__(self) -> bool:
        return bool(self.diagnosis)

    def __str__(self) -> str:
        name = f"'{self.experiment.name}'" if self.experiment.name else "a record"
        scored = f", the first {self.used} samples not scored" if self.used else ""
        head = f"{self.fitted.model_name} on {name}, which was not fitted: begins {self.start}{scored}"
        shown = self.table.to_string(float_format="{:.5g}".format)
        tested = self.fitted.method.predictions_are
        words = (
            "" if self.horizons in ((tested,), (STATIC_HORIZON,)) else f"Tests of the predictions {_spelled(tested)}:\n"
        )
        remark = "".join(f"\n{text}" for text in (self.remark, *self.notes) if text)
        return f"{head}\n\n{shown}{remark}\n\n{words}{self.diagnosis}"

    __repr__ = __str__


def validate(
    fit: Fitted,
    experiment: Experiment,
    start: str | Mapping[str, float] = "auto",
    level: float = 0.01,
    horizon: Horizon | None = None,
    start_samples: int | None = None,
) -> Validation:
    """Predict a record at the estimates and compare."""
    begun = fit.begun(experiment, start, start_samples)
    if any(begun.experiment is e for e in fit.experiments):
        raise EstimationError(
            f"Experiment '{begun.experiment.name}' was fitted: its residuals are tested by fit.diagnose(). Validate on "
            f"data that the fit has not seen, such as the second part of experiment.split(0.7)."
        )
    on = begun.following(fit)
    record = on.experiment.replace(skip=max(begun.used, on.experiment.skip))
    if horizon is not None:
        check_horizon(horizon, clock_of(record))
        refuse_horizon(fit.method, horizon)
    method, model = on.method.validator, fit.settled_model
    problem = build_problem(model, [record], [], method, searched=False)
    at = problem.with_tested_residuals(problem.evaluate(np.zeros(0)))
    if not at.completed:
        raise EstimationError(f"The fitted model cannot be simulated on '{record.name}': {at.failure}")
    ensemble = fit.estimate.ensemble
    known = None if ensemble is None else EnsembleResult(ensemble.realizations)
    estimate = Estimate.at(
        problem, at, np.zeros((0, 0)), cases=problem.cases, ensemble=known, status="nothing was estimated"
    )
    fitted = type(fit)(model, [c.experiment for c in problem.cases], method, estimate, fit.why)
    found = _predictions(fit, fitted, begun, horizon)
    remarks = experiment._remarks_beside(fit.initial_model)
    notes = tuple(dict.fromkeys((*remarks, *experiment.check(fit.initial_model))))
    by_own = on.method.validator is on.method and fit.estimate.is_likelihood and ensemble is None
    scores = log_scores(problem, at) if by_own else {}
    return Validation(fitted, on.how, begun.used, level, found, _remark(fit, fitted, horizon), notes, scores)


def _predictions(fit: Fitted, fitted: Fitted, begun: RecordStart, horizon: Horizon | None) -> dict[str, pd.DataFrame]:
    """Return errors over each horizon, by its name."""
    own, method = fitted.residuals(), fitted.method
    if fitted.experiments[0].is_static:
        return {STATIC_HORIZON: own}
    if method.ahead is None:
        return {SIMULATION: own}
    found = {}
    for h in (np.inf, 1) if horizon is None else (horizon,):
        name = SIMULATION if _is_infinite(h) else horizon_text(h)
        if name == method.predictions_are:
            found[name] = own
        elif _is_infinite(h):
            found[name] = _compared(own, fit.simulated(begun.experiment))
        else:
            found[name] = _compared(own, fitted.predict(fitted.experiments[0].name, h).sel(statistic="mean"))
    return found


def _compared(own: pd.DataFrame, predicted: object) -> pd.DataFrame:
    """Return the samples of a record beside other predictions."""
    from xarray import Dataset

    assert isinstance(predicted, Dataset)
    table = own.copy()
    for output in dict.fromkeys(own["output"]):
        mine = (own["output"] == output).to_numpy()
        at = own.loc[mine, "time"].to_numpy()
        table.loc[mine, "predicted"] = predicted[output].sel(time=at, method="nearest").to_numpy()
    table["residual"] = table["measured"] - table["predicted"]
    return table


def _remark(fit: Fitted, fitted: Fitted, horizon: Horizon | None) -> str:
    """Return what a score over these horizons means, in a sentence."""
    if fitted.experiments[0].is_static:
        return ""
    name = type(fit.method).__name__
    if fitted.method.ahead is not None:
        times = fitted.experiments[0].output_times
        usual = f"{np.median(np.diff(times)):.3g} {fitted.experiments[0].clock.unit}" if len(times) > 1 else ""
        sample = f" (one sample is {usual})" if usual and not _is_infinite(horizon) else ""
        return f"A simulation sees the inputs alone; a prediction ahead corrects itself at every sample{sample}."
    if horizon is None or _is_infinite(horizon):
        return f"{name} predicts by simulation: the inputs alone, no measurement after the start."
    return f"{name} predicts by simulation, whatever the horizon: the inputs alone, no measurement after the start."


def _is_infinite(horizon: object) -> bool:
    return isinstance(horizon, float) and bool(np.isposinf(horizon))


def _spelled(predictions: str) -> str:
    return "by simulation" if predictions == SIMULATION else predictions
