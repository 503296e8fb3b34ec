"""The laws of outputs that are not normal, for all particles at a sample.

A law's arguments may be formulas of the model, such as the size of a negative binomial law: they are seen with the
outputs, for each particle. In proposals a measurement y is stood for by a normal one with the same score and
information about the prediction η:

    y* − η = s / I,    R* = 1 / I,    s = ∂ log p(y; η)/∂η,    I = E[s²]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grisaille.disturbance.duals import Floats
from grisaille.laws import Law
from grisaille.laws.random import uniforms
from grisaille.model.flat import FlatModel
from grisaille.model.measurement.distributions import law_formulas

LARGEST_DEVIATION = 5.0
"""Of a stand-in from the prediction, in its own standard deviations."""


@dataclass(frozen=True, eq=False)
class LawColumns:
    """The law of one output, and where its arguments are among what is seen."""

    output: int
    """Its place among the outputs."""
    law: Law
    arguments: Mapping[str, int]
    """Path → column."""

    @classmethod
    def of(cls, model: FlatModel, outputs: Sequence[str]) -> tuple[LawColumns, ...]:
        """Return those of all outputs that declare a law; columns follow those of the outputs."""
        found, column = [], len(outputs)
        for k, name in enumerate(outputs):
            law = model.outputs[name].distribution
            if law is None:
                continue
            paths = list(law_formulas(model.outputs[name]))
            found.append(cls(k, law, {path: column + i for i, path in enumerate(paths)}))
            column += len(paths)
        return tuple(found)

    def filled(self, seen: Floats, limits: Mapping[str, Floats], sample: int) -> Law:
        """Return the law with a number for each particle in place of its location and its arguments."""
        given = {path: seen[:, column] for path, column in self.arguments.items()}
        given |= {path: np.full(len(seen), values[sample]) for path, values in limits.items()}
        return self.law.filled({self.law.location_path: seen[:, self.output], **given})


@dataclass(frozen=True, eq=False)
class RecordLaws:
    """The laws of the outputs of one record.

    y : (N, ny), NaN where not measured
    limits : for each law, by path, limits that samples have of their own, (N,)
    columns : how many numbers are seen
    name : of the record, for random numbers
    """

    laws: tuple[LawColumns, ...]
    y: Floats
    columns: int
    limits: tuple[Mapping[str, Floats], ...] = ()
    name: str = ""

    def pseudo_measurements(self, sample: int, seen: Floats) -> Floats:
        """Return (particles, ny, 2): deviations from the predictions, and variances."""
        found = np.zeros((len(seen), self.y.shape[1], 2))
        found[:, :, 1] = 1.0
        for law, filled, y in self._at(sample, seen):
            path = filled.location_path
            with np.errstate(all="ignore"):
                score = filled.by_arguments(np.full(len(seen), y), [path]).gradient[:, 0]
                information = filled.search_information(np.full(len(seen), y), [path])[:, 0, 0]
                variance = 1 / information
                off = score / information
            is_usable = np.isfinite(off) & np.isfinite(variance) & (variance > 0)
            reach = LARGEST_DEVIATION * np.sqrt(np.where(is_usable, variance, 1.0))
            found[:, law.output, 0] = np.where(is_usable, np.clip(off, -reach, reach), 0.0)
            # what says nothing about the prediction has a variance that no proposal feels
            found[:, law.output, 1] = np.where(is_usable, variance, 1e12 * (1 + seen[:, law.output] ** 2))
        return np.nan_to_num(found, posinf=1e300, neginf=-1e300)

    def log_densities(self, sample: int, seen: Floats) -> Floats:
        """Return the sum over outputs of log p(y), for each particle; −∞ where a law has no density."""
        total = np.zeros(len(seen))
        for _, filled, y in self._at(sample, seen):
            with np.errstate(all="ignore"):
                density = np.asarray(filled.log_density(np.full(len(seen), y)))
            total += np.where(np.isnan(density), -np.inf, density)
        return total

    def predicted(self, sample: int, seen: Floats) -> list[tuple[int, float, float, float]]:
        """Return of each measured output its place, mean, variance and P(Y ≤ y) over particles, the last spread evenly
        over the probability of y where that has one.
        """
        found = []
        for law, filled, y in self._at(sample, seen):
            values = np.full(len(seen), y)
            with np.errstate(all="ignore"):
                mean, deviation = (np.broadcast_to(v, len(seen)) for v in (filled.mean, filled.deviation))
                below, upto = filled.distribution_below(values), np.asarray(filled.distribution(values))
                u = uniforms(len(self.y), 0, f"positions of {law.output} in {self.name}")[sample]
                position = float(np.nanmean(below + u * (upto - below)))
                found.append((law.output, float(np.mean(mean)), float(np.mean(deviation**2) + np.var(mean)), position))
        return found

    def _at(self, sample: int, seen: Floats) -> list[tuple[LawColumns, Law, float]]:
        limits = self.limits or ({},) * len(self.laws)
        return [
            (law, law.filled(seen, own, sample), float(self.y[sample, law.output]))
            for law, own in zip(self.laws, limits, strict=True)
            if not np.isnan(self.y[sample, law.output])
        ]


class NotedPredictions:
    """Laws that note what was predicted of their outputs whenever they are asked for densities."""

    def __init__(self, laws: RecordLaws) -> None:
        self.laws, self._noted = laws, list[tuple[int, int, float, float, float]]()

    @property
    def columns(self) -> int:
        return self.laws.columns

    def pseudo_measurements(self, sample: int, seen: Floats) -> Floats:
        return self.laws.pseudo_measurements(sample, seen)

    def log_densities(self, sample: int, seen: Floats) -> Floats:
        self._noted += [(sample, *row) for row in self.laws.predicted(sample, seen)]
        return self.laws.log_densities(sample, seen)

    def beside(self, mean: Floats, variance: Floats, position: Floats) -> tuple[Floats, Floats, Floats]:
        """Return these, (N, ny), with what was noted in place of them."""
        mean, variance, position = mean.copy(), variance.copy(), position.copy()
        for sample, output, *row in self._noted:
            mean[sample, output], variance[sample, output], position[sample, output] = row
        return mean, variance, position
