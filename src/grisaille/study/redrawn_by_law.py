"""Measurements drawn again by the laws of their outputs, at a fit's estimates.

    y* = quantile of the law at Φ(z), with the location and the arguments of every sample as the fit has them

so that counts stay counts, and what is censored or rounded is drawn censored or rounded. Where outputs share noise, z
at an instant has its correlations.
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
from grisaille.estimation.measurements.shared_noise import Tie
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

    def normals(self, seed: int, record: int) -> np.ndarray:
        """Return z of the samples of one record."""
        stream = Stream.of(seed, Purpose.BOOTSTRAP, self.output)
        return np.array(stream.normals(record, np.arange(len(self.times)), 1)[..., 0].ravel())

    def drawn(self, z: np.ndarray) -> np.ndarray:
        """Return the samples at standard normal numbers."""
        return draw_by_law(self.law, z, self.output, self.times)


@dataclass(frozen=True)
class RecordLaws:
    """The laws of the samples of one experiment, and what ties their noise together."""

    samples: tuple[SampleLaws, ...]
    ties: tuple[Tie, ...] = ()

    def drawn(self, seed: int, record: int = 0) -> list[np.ndarray]:
        """Return the samples of one record, output by output."""
        z = [s.normals(seed, record) for s in self.samples]
        for tie in self.ties:
            tie.mix(z)
        return [s.drawn(own) for s, own in zip(self.samples, z, strict=True)]


@dataclass(frozen=True)
class RedrawnByLaw(OtherData):
    """Measurements drawn by the laws of a fit, for each experiment."""

    laws: tuple[RecordLaws, ...]

    def header(self) -> dict[str, str]:
        sha = hashlib.sha256()
        for s in (s for own in self.laws for s in own.samples):
            sha.update(f"{type(s.law).__name__}:{s.output};".encode())
            for path, values in s.law.arguments.items():
                if values is not None:
                    sha.update(path.encode() + np.asarray(values, dtype=float).tobytes())
        for tie in (tie for own in self.laws for tie in own.ties):
            sha.update(repr(tie.outputs).encode() + tie.root.tobytes())
        return {"bootstrap": "parametric, by laws", "fit": sha.hexdigest()[:16]}

    def data_set(self, plan: Sequence[Any], seed: int) -> DataSet:
        found = []
        for k, (experiment, laws) in enumerate(zip(plan, self.laws, strict=True)):
            values = {n: np.full(len(s.values), np.nan) for n, s in experiment.outputs.items()}
            for s, drawn in zip(laws.samples, laws.drawn(experiment_seed(seed, k)), strict=True):
                values[s.output][kept_rows(experiment, s.output)] = drawn
            found.append(values)
        return found


def sample_laws(problem: MeasuredProblem, theta: np.ndarray) -> tuple[RecordLaws, ...]:
    """Return the laws of all samples at θ, by experiment."""
    problem = problem.begun
    found = problem.evaluate(theta, sensitive=False)
    if not found.completed:
        raise EstimationError(f"The fit cannot be simulated again: {found.failure}")
    return tuple(
        RecordLaws(
            tuple(
                SampleLaws(s.output, law, case.grid[s.rows])
                for s, law in zip(case.samples, problem.laws_at(case, prediction, theta), strict=True)
            ),
            problem.ties_at(case, prediction, theta),
        )
        for case, prediction in zip(problem.cases, found.predictions, strict=True)
    )
