"""How far estimates would move with other noise, from one fit.

    parametric   y* = ŷ + (σ/w) z                      noise as the model has it, z standard normal; for fits by Kalman
                                                       filters new starts, disturbances and noise; by their laws
                                                       (``redrawn_by_law``) where outputs declare some
    residual     y* = ŷ + (σ/w) √(N/(N − n)) (r − r̄)*   the fit's own standardised residuals, drawn in blocks

Blocks of consecutive residuals (with the end joined to the beginning) keep the correlation that one residual has with
the next. Reference: P. Hall, The Bootstrap and Edgeworth Expansion (1992); D. N. Politis, J. P. Romano (1992), circular
blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.calling import checked_methods
from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.abilities.missing import missing_ability_error
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import name_of
from grisaille.estimation.measurements.record_laws import RecordLaws
from grisaille.estimation.prior_terms import says_more_than_limits
from grisaille.estimation.problem import EstimationProblem
from grisaille.estimators.fitting import build_problem
from grisaille.study.bootstrap_intervals import quantile_error
from grisaille.study.data_sets import DataSet, OtherData, kept_rows
from grisaille.study.filter_records import filter_records, is_exact
from grisaille.study.monte_carlo_task import MonteCarloRuns
from grisaille.study.redrawn_by_law import RedrawnByLaw
from grisaille.study.seeds import experiment_seed, uniforms
from grisaille.study.study_task import StudyTask, make_task
from grisaille.study.uncertain_starts import simulated_records

if TYPE_CHECKING:
    import pandas as pd

    from grisaille.experiment.experiment import Experiment


def bootstrap_task(fit: Fitted, kind: str, block: int | None, seed: int) -> StudyTask:
    """Return the task of refitting data sets made from a fit."""
    if kind not in ("parametric", "residual"):
        raise EstimationError(f"kind is {kind!r}; give 'parametric' or 'residual'.")
    if block is not None and (isinstance(block, bool) or not isinstance(block, int) or block < 1):
        raise EstimationError(f"block is {block!r}; it must be a whole number above zero.")
    options = _options(fit)
    redraw = fit.method.redraw
    if redraw is None:
        raise missing_ability_error(fit.method, "redraw")
    if kind in redraw.refused:
        raise EstimationError(redraw.refused[kind])
    if redraw.what == "model":
        drawn = filter_records(fit) if is_exact(fit) else simulated_records(fit, fit.estimate.theta)
        return make_task("bootstrap", fit.initial_model, list(fit.experiments), fit.method, drawn, seed, **options)
    problem = build_problem(fit.initial_model, list(fit.experiments), method=fit.method, **options)
    laws = problem.record_laws(fit.estimate.theta)
    if laws:
        _refuse_residuals(kind, laws)
        by_law = RedrawnByLaw(laws)
        return make_task("bootstrap", fit.initial_model, list(fit.experiments), fit.method, by_law, seed, **options)
    if fit.estimate.student is not None:
        block = _block_of(fit, block)
    redrawn = Redrawn(_series(fit, problem), kind, block)
    return make_task("bootstrap", fit.initial_model, list(fit.experiments), fit.method, redrawn, seed, **options)


def _refuse_residuals(kind: str, laws: Sequence[RecordLaws]) -> None:
    """Refuse to add residuals to predictions where measurements are not prediction plus error."""
    if kind != "residual":
        return
    for own in laws:
        if own.ties:
            names = " and ".join(own.samples[k].output for k in own.ties[0].outputs[:2])
            raise EstimationError(
                f"kind='residual' draws the residuals of each output by itself, and {names} share noise: use "
                f"kind='parametric', which draws them together."
            )
    named = {s.output: name_of(s.law) for own in laws for s in own.samples}
    output, law = min(named.items(), key=lambda item: item[1] == "Normal")
    raise EstimationError(
        f"kind='residual' adds the residuals of a fit to its predictions, and output '{output}' is measured by the "
        f"law {law}, in which a residual of one prediction is none of another: use kind='parametric', which draws "
        f"by the laws at the estimates."
    )


def _block_of(fit: Fitted, block: int | None) -> int:
    """Return the length of blocks: twice the length over which residuals are correlated."""
    robust = fit.estimate.robust
    stretch = np.inf if robust is None else robust.stretch
    if block is None and not np.isfinite(stretch):
        raise EstimationError("Residuals are correlated over the whole record: there are no blocks to draw from.")
    return block if block is not None else int(np.ceil(2 * stretch))


@checked_methods
class BootstrapRuns(MonteCarloRuns):
    """Refits of one fit's redrawn data; ``truth`` is the fit itself."""

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """Return percentile intervals over the converged runs; ``attrs["notes"]`` has their Monte Carlo error.

        level : confidence, between 0 and 1
        """
        from scipy.stats import norm

        if not 0 < level < 1:
            raise EstimationError(f"level is {level!r}; give a number between 0 and 1, such as 0.95.")
        used = self.estimates[self.table["converged"]]
        ends = used.quantile([0.5 - level / 2, 0.5 + level / 2]).T.set_axis(["lower", "upper"], axis=1)
        share = (
            quantile_error(norm.ppf((np.arange(len(used)) + 0.5) / len(used)), 0.5 - level / 2) if len(used) else np.inf
        )
        ends.attrs = {
            "notes": [
                *self.notes,
                f"percentiles of {len(used)} runs have a Monte Carlo error of about {share:.2g} standard deviations of "
                f"the estimates; four times as many runs halve it",
            ]
        }
        return ends

    @property
    def covariance(self) -> pd.DataFrame:
        """Return the covariance of the estimates over the converged runs."""
        return self.estimates[self.table["converged"]].cov()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return how the data were drawn, in sentences: where records of a filter begin, and that priors stay."""
        task = self._prepared.task
        notes = task.variation.notes if isinstance(task.variation, OtherData) else ()
        known = [name for name, prior in task.options["priors"].items() if says_more_than_limits(prior)]
        if not known:
            return notes
        return (
            *notes,
            f"priors: those of {', '.join(known)} stay as they are while data are drawn again, so that the spread is "
            f"that of the data alone: what the priors leave open is in fit.intervals(), not here.",
        )

    def __str__(self) -> str:
        return "\n".join([str(self.summary()), *self.notes])

    __repr__ = __str__


@dataclass(frozen=True)
class BootstrapSeries:
    """The compared samples of one output in one experiment."""

    predicted: np.ndarray
    deviations: np.ndarray
    """σ/w of each sample."""
    residuals: np.ndarray
    """Standardised, centred, freed of the share that estimation took."""


@dataclass(frozen=True)
class Redrawn(OtherData):
    """Measurements made of predictions and new noise."""

    series: tuple[dict[str, BootstrapSeries], ...]
    kind: str
    block: int | None

    def header(self) -> dict[str, str]:
        sha = hashlib.sha256()
        for s in (s for outputs in self.series for s in outputs.values()):
            sha.update(s.predicted.tobytes() + s.deviations.tobytes() + s.residuals.tobytes())
        return {"bootstrap": f"{self.kind}, block {self.block}", "fit": sha.hexdigest()[:16]}

    def data_set(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        return [
            {name: self._redraw(s, e, name, experiment_seed(seed, k)) for name, s in outputs.items()}
            for k, (e, outputs) in enumerate(zip(plan, self.series, strict=True))
        ]

    def _redraw(self, series: BootstrapSeries, experiment: Experiment, output: str, seed: int) -> np.ndarray:
        n = len(series.predicted)
        if self.kind == "parametric":
            z = Stream.of(seed, Purpose.BOOTSTRAP, output).normals(0, np.arange(n), 1)[:, 0]
        else:
            z = series.residuals[block_positions(n, self.block or round(n ** (1 / 3)), uniforms(seed, output, n)[:, 0])]
        values = np.full(len(experiment.outputs[output].values), np.nan)
        values[kept_rows(experiment, output)] = series.predicted + series.deviations * z
        return values


def block_positions(n: int, length: int, shares: np.ndarray) -> np.ndarray:
    """Return n positions in blocks that begin anywhere and run on past the end."""
    length = min(max(length, 1), n)
    begins = np.floor(shares[: -(-n // length)] * n).astype(int)
    return np.asarray((begins[:, None] + np.arange(length)).ravel()[:n] % n)


def _options(fit: Fitted) -> dict[str, Any]:
    """Return what ``gr.fit`` would be given to begin with at its answer."""
    unknowns, begin = fit.estimate.unknowns, fit.beginning
    return {
        "estimate": [u.name for u in unknowns],
        "guess": {u.name: begin[u.name] for u in unknowns if u.name in begin},
        "bounds": {u.name: (u.lower, u.upper) for u in unknowns},
        "priors": {u.name: u.prior for u in unknowns if u.prior is not None},
        "local": (),
    }


def _series(fit: Fitted, problem: EstimationProblem) -> tuple[dict[str, BootstrapSeries], ...]:
    problem = problem.replace(sigma=fit.estimate.noise)
    evaluation = problem.evaluate(fit.estimate.theta)
    if not evaluation.completed:
        raise EstimationError(f"The fit cannot be simulated again: {evaluation.failure}")
    inflation = np.sqrt(problem.count / max(fit.estimate.degrees_of_freedom, 1))
    found = []
    for case, prediction in zip(problem.cases, evaluation.predictions, strict=True):
        outputs = {}
        for s in case.samples:
            deviations = problem.deviations(case, s.output, s.rows, prediction, evaluation.theta)
            deviations = deviations / np.where(s.weights > 0, s.weights, 1.0)
            predicted = prediction.y[s.rows, case.column(s.output)]
            r = (s.values - predicted) / deviations
            outputs[s.output] = BootstrapSeries(predicted, deviations, inflation * (r - r.mean()))
        found.append(outputs)
    return tuple(found)
