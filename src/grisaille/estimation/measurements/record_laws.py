"""The laws of all samples of one experiment with the numbers that they have at one point, and draws from them.

    y* = quantile of the law at Φ(z)

so that counts stay counts, and what is censored or rounded is drawn censored or rounded. Where outputs share noise, z
at an instant has its correlations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grisaille.disturbance import Purpose, Stream
from grisaille.estimation.measurements.tied_samples import Tie
from grisaille.laws import Law
from grisaille.simulation.measurement_draws import draw_by_law


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
