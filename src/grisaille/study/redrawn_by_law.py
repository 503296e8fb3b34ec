"""Measurements drawn again by the laws of their outputs (``record_laws``), at a fit's estimates."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.estimation.measurements.record_laws import RecordLaws
from grisaille.study.data_sets import DataSet, OtherData, kept_rows
from grisaille.study.seeds import experiment_seed

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


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

    def data_set(self, plan: Sequence[Experiment], seed: int) -> DataSet:
        found = []
        for k, (experiment, laws) in enumerate(zip(plan, self.laws, strict=True)):
            values = {n: np.full(len(s.values), np.nan) for n, s in experiment.outputs.items()}
            for s, drawn in zip(laws.samples, laws.drawn(experiment_seed(seed, k)), strict=True):
                values[s.output][kept_rows(experiment, s.output)] = drawn
            found.append(values)
        return found
