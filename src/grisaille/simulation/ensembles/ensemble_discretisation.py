"""The discretisation of an ensemble: the grid of its disturbances, and the steps between grid points."""

from __future__ import annotations

from dataclasses import dataclass, replace

from grisaille.bound_experiment.discretisation import Discretisation

SAME_STEP_RATIO = 0.75
"""Of a step: a longer one than this part of it is the same."""


@dataclass(frozen=True)
class EnsembleGrid(Discretisation, saved_as="EnsembleGrid"):
    """The discretisation of an ensemble, the same for every realization; ``ensemble.discretise`` chooses one."""

    step: float | None
    """The longest cell; None where there are none."""
    substeps: int | None
    """Steps of each cell; None where an integrator takes its own."""
    inner_step: float | None
    """Of an integrator that solves one realization after the other."""
    method: str
    """That integrator, or the scheme for white noise."""
    effort: int = 0
    """How hard algebraic unknowns are solved under white noise (``carried``)."""

    def __str__(self) -> str:
        cells = f"cells of at most {self.step:.4g}" if self.step else "no cells"
        steps = f"{self.substeps} steps in each" if self.substeps else f"{self.method} steps"
        return f"{cells}, {steps}{f' of at most {self.inner_step:.4g}' if self.inner_step else ''}"

    def cut(self, parts: int) -> EnsembleGrid:
        """Return the same cells with steps that are so many times shorter; itself where integrators take their own."""
        substeps, inner = self.substeps, self.inner_step
        return replace(self, substeps=substeps and parts * substeps, inner_step=inner and inner / parts)

    def with_steps_of(self, other: EnsembleGrid) -> EnsembleGrid:
        """Return the same cells with the steps of another, where those are more or shorter.

        Under white noise the paths stay what they are, however many steps resolve them.
        """
        found = self
        if self.substeps and other.substeps and other.substeps > self.substeps:
            found = replace(found, substeps=other.substeps)
        if self.inner_step and other.inner_step and other.inner_step < SAME_STEP_RATIO * self.inner_step:
            found = replace(found, inner_step=other.inner_step)
        return replace(found, effort=max(self.effort, other.effort))
