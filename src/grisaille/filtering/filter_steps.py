"""The discretisations of filtered records: how finely a filter steps and iterates between samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, cast

from grisaille.bound_experiment.discretisation import Discretisation, Plain


@dataclass(frozen=True)
class FilterDiscretisation(Discretisation):
    """Of any filter: what is asked of steps, answered where there are none to choose."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Steps of the cells, each number at least once; none where there is nothing to choose."""
        return ()

    @property
    def most(self) -> int:
        """Steps of the cell that has the most."""
        return max(self.counts, default=0)

    @property
    def is_uneven(self) -> bool:
        """Return whether some cells have more steps than others."""
        return False

    @property
    def common(self) -> int:
        """By which the steps of every cell can be divided."""
        return 0

    @property
    def key(self) -> tuple[object, ...]:
        """Equal where two step alike."""
        return ()

    @property
    def doublings(self) -> int:
        """Of the matrix exponential of a step."""
        return 0

    @property
    def to_refine(self) -> FilterSteps:
        """Steps of a nonlinear filter to begin a search for steps with: these, or one for each cell."""
        return FilterSteps(1)

    def halved(self) -> Self:
        """Return steps half as long."""
        return self

    def everywhere(self) -> Self:
        """Return steps with the most steps of a cell in every cell."""
        return self


@dataclass(frozen=True)
class NoSteps(FilterDiscretisation, saved_as="Exact"):
    """The steps of the exact filter of a linear model: there is nothing to choose."""

    def __str__(self) -> str:
        return "exact from sample to sample"


@dataclass(frozen=True)
class OwnSteps(FilterDiscretisation, saved_as="OwnSteps"):
    """The steps of a filter that chooses them itself."""

    def __str__(self) -> str:
        return "the filter's own steps"


@dataclass(frozen=True)
class FilterSteps(FilterDiscretisation, saved_as="FilterSteps"):
    """Of a nonlinear filter; chosen by ``substeps``."""

    substeps: int
    """Steps of every cell, …"""
    finer: tuple[int, ...] = ()
    """… and by which factor there are more of them in each cell; empty where in none."""
    doublings: int = 2
    """Of the matrix exponential of a step."""
    newton: int = 0
    """Newton steps for algebraic unknowns at every point; zero in older files: as many as the filter begins with."""
    sizes: tuple[float, ...] = ()
    """Of the algebraic unknowns along the record."""
    restarts: tuple[tuple[int, tuple[float, ...]], ...] = ()
    """Cell boundary at which an input jumps, and where the algebraic unknowns begin again there (``roots``)."""

    def __str__(self) -> str:
        steps = f"{self.substeps}" if self.most == self.substeps else f"{self.substeps} to {self.most}"
        solved = f", {self.newton} Newton steps for algebraic unknowns" if self.sizes else ""
        return f"{steps} steps between samples{solved}"

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(self.substeps * f for f in self.finer or (1,))

    @property
    def is_uneven(self) -> bool:
        return bool(self.finer)

    @property
    def common(self) -> int:
        return self.substeps

    @property
    def to_refine(self) -> FilterSteps:
        return self

    @property
    def key(self) -> tuple[object, ...]:
        return self.substeps, self.doublings, self.newton, self.finer

    def halved(self) -> Self:
        return replace(self, substeps=2 * self.substeps)

    def everywhere(self) -> Self:
        return replace(self, substeps=self.most, finer=())

    @classmethod
    def _read_older(cls, data: Mapping[str, Plain]) -> Self | None:
        steps = data.get("filter")
        if not isinstance(steps, dict) or not steps:
            return None
        return cls(int(str(steps["substeps"])), doublings=int(str(steps["doublings"])))


def steps_of(found: Discretisation | None) -> FilterDiscretisation:
    """Return the discretisation of a filtered experiment, where it has one; ``NoSteps`` otherwise."""
    return NoSteps() if found is None else cast(FilterDiscretisation, found)
