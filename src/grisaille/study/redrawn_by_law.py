"""Measurements drawn again by the laws of their outputs, at a fit's estimates.

    y* = quantile of the law at Φ(z), with the location and the arguments of every sample as the fit has them

so that counts stay counts, and what is censored or rounded is drawn censored or rounded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.disturbance import Purpose, Stream
from grisaille.errors import EstimationError
from grisaille.estimation.measurements.problem import MeasuredProblem
from grisaille.laws import Law
from grisaille.simulation.measurement_draws import draw_by_law
from grisaille.study.data_sets import DataSet, OtherData, kept_rows
from grisaille.study.seeds import experiment_seed


@dataclass(frozen=True)
class SampleLaws:
    """The filled law of the samples of one output in one experiment, and their instants."""

    output: str
    law: Law
    times: np.ndarray

    def drawn(self, stream: Stream, record: int = 0) -> np.ndarray:
        """Return the samples of one record."""
        z = stream.normals(record, np.arange(len(self.times)), 1)[..., 0].ravel()
        return draw_by_law(self.law, z, self.output, self.times)


@dataclass(frozen=True)
class RedrawnByLaw(OtherData):
    """Measurements drawn by the laws of a fit, for each experiment."""

    laws: tuple[tuple[SampleLaws, ...], ...]

    def header(self) -> dict[str, str]:
        sha = hashlib.sha256()
        for s in (s for samples in self.laws for s in samples):
            sha.update(f"{type(s.law).__name__}:{s.output};".encode())
            for path, values in s.law.arguments.items():
                if values is not None:
                    sha.update(path.encode() + np.asarray(values, dtype=float).tobytes())
        return {"bootstrap": "parametric, by laws", "fit": sha.hexdigest()[:16]}

    def data_set(self, plan: Sequence[Any], seed: int) -> DataSet:
        found = []
        for k, (experiment, samples) in enumerate(zip(plan, self.laws, strict=True)):
            values = {n: np.full(len(s.values), np.nan) for n, s in experiment.outputs.items()}
            for s in samples:
                stream = Stream.of(experiment_seed(seed, k), Purpose.BOOTSTRAP, s.output)
                values[s.output][kept_rows(experiment, s.output)] = s.drawn(stream)
            found.append(values)
        return found


def sample_laws(problem: MeasuredProblem, theta: np.ndarray) -> tuple[tuple[SampleLaws, ...], ...]:
    """Return the laws of all samples at θ, by experiment."""
    problem = problem.begun
    found = problem.evaluate(theta, sensitive=False)
    if not found.completed:
        raise EstimationError(f"The fit cannot be simulated again: {found.failure}")
    return tuple(
        tuple(
            SampleLaws(s.output, law, case.grid[s.rows])
            for s, law in zip(case.samples, problem.laws_at(case, prediction, theta), strict=True)
        )
        for case, prediction in zip(problem.cases, found.predictions, strict=True)
    )
