"""The discretisation of a particle filter: steps between samples, particles, and how proposals are made; all frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from grisaille.filtering.filter_steps import FilterDiscretisation


@dataclass(frozen=True)
class ParticleSteps(FilterDiscretisation, saved_as="ParticleSteps"):
    """Chosen once for a record and kept, so that the same random numbers mean the same at other values."""

    substeps: tuple[int, ...]
    """Steps of every cell."""
    particles: int
    guided: int
    """How often the prediction of a particle is linearised for its proposal; zero: proposals of the model."""
    inflation: tuple[tuple[float, ...], ...] = ()
    """For each sample and output the variance that proposals add to that of the measurement; empty: none."""

    def __str__(self) -> str:
        least, most = min(self.substeps), max(self.substeps)
        steps = f"{most}" if least == most else f"{least} to {most}"
        kind = "bootstrap" if not self.guided else "guided" if self.guided == 1 else f"{self.guided} times guided"
        return f"{self.particles} particles, {kind} proposals, {steps} steps between samples"

    @property
    def counts(self) -> tuple[int, ...]:
        return self.substeps

    @property
    def key(self) -> tuple[object, ...]:
        return self.substeps, self.particles, self.guided

    def halved(self) -> Self:
        return replace(self, substeps=tuple(2 * n for n in self.substeps))
