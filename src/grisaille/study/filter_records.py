"""Draws records from the matrices of an exact filter, its uncertain start included.

    x₀ ~ N(x̂₀, P₀),   x_k+1 = F x_k + c + Q^½ v,   y_k = H x_k + d + R^½ e

P₀ is that of the filter: given variances, the stationary ones, or what process noise builds up over the first interval.
Directions with a flat prior have no law to draw from: there every record begins where the fit's own smoother does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fitted import Fitted
from grisaille.filtering.filter_runner import FilterRunner
from grisaille.filtering.kalman import DiscreteModel
from grisaille.study.data_sets import DataSet, OtherData, kept_rows
from grisaille.study.seeds import experiment_seed

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


@dataclass(frozen=True, eq=False)
class FilterRecords(OtherData):
    """Measurements drawn from the matrices of exact filters, one for each experiment."""

    models: tuple[DiscreteModel, ...]
    columns: tuple[tuple[tuple[str, np.ndarray, int], ...], ...]
    """For each experiment and compared output: its name, its samples' rows and its place among the outputs."""

    about: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.about

    def header(self) -> dict[str, str]:
        sha = hashlib.sha256()
        for model in self.models:
            for part in fields(model):
                sha.update(np.ascontiguousarray(getattr(model, part.name)).tobytes())
        return {"records": "drawn from the filter with its start", "fit": sha.hexdigest()[:16]}

    def data_set(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        found = []
        for k, (experiment, model, columns) in enumerate(zip(plan, self.models, self.columns, strict=True)):
            y = draw_outputs(model, 1, experiment_seed(seed, k))[0]
            values = {n: np.full(len(samples.values), np.nan) for n, samples in experiment.outputs.items()}
            for output, rows, column in columns:
                values[output][kept_rows(experiment, output)] = y[rows, column]
            found.append(values)
        return found


def is_exact(fit: Fitted) -> bool:
    """Return whether exact filters run all its experiments."""
    return all(case.runner.prepared_at(case.own(fit.estimate.theta)).is_exact for case in fit.estimate.cases)


def filter_records(fit: Fitted) -> FilterRecords:
    """Return the records that are drawn from a fit by exact filters."""
    cases = fit.estimate.cases
    columns = tuple(
        tuple((s.output, s.rows, case.trial.data.outputs.index(s.output)) for s in case.samples) for case in cases
    )
    models = tuple(discrete_model(case, fit.estimate.theta) for case in cases)
    is_flat = any(m.X0.shape[1] for m in models)
    return FilterRecords(models, columns, (start_note(fit.method.options["initial_covariance"], is_flat=is_flat),))


def start_note(kind: object, *, is_flat: bool = False) -> str:
    """Say where records begin."""
    if is_flat:
        return (
            f"starts: initial_covariance={kind!r} gives some states no law to be drawn from; in every record these "
            f"begin where the smoother of the fit does. initial_covariance={{state: variance}} would draw them."
        )
    return f"starts: drawn from N(start, P0) as the filter has it, initial_covariance={kind!r}"


def discrete_model(case: ExperimentTerm[FilterRunner], theta: np.ndarray) -> DiscreteModel:
    """Return the matrices at θ; where the prior is flat the start is that of the smoother."""
    runner, own = case.runner, case.own(theta)
    filter = runner.prepared_at(own)
    found = filter.matrices(runner.posed(own, False))
    if found is None:
        raise EstimationError(f"The {filter.name} filter has no normal law from whose matrices records can be drawn.")
    return found


def draw_outputs(model: DiscreteModel, count: int, seed: int) -> np.ndarray:
    """Return outputs at all samples, (count, samples, outputs)."""
    n, ny, boundaries = model.n, model.y.shape[1], np.arange(len(model.sample_at))
    which = np.arange(count)[:, None]
    pushes = Stream.of(seed, Purpose.BOOTSTRAP, "states").normals(which, boundaries, n)
    errors = Stream.of(seed, Purpose.BOOTSTRAP, "noise").normals(which, boundaries, ny)
    Q_roots, R_roots = ([_root(part[0]) for part in parts] for parts in (model.Q, model.R))
    x = model.x0[0] + pushes[:, 0] @ _root(model.P0[0]).T
    y = np.empty((count, len(model.y), ny))
    for k, sample in enumerate(model.sample_at.tolist()):
        if k:
            x = x @ model.F[model.F_of[k - 1]][0].T + model.c[k - 1][0] + pushes[:, k] @ Q_roots[model.Q_of[k - 1]].T
        if sample >= 0:
            seen = x @ model.H[model.H_of[sample]][0].T + model.d[sample][0]
            y[:, sample] = seen + errors[:, k] @ R_roots[model.R_of[sample]].T
    return y


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return a square root of a matrix that may be singular."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
