"""The discretisation of a filtered record: how finely a nonlinear filter steps and iterates between samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from grisaille.trial.discretisation import Discretisation, Plain


@dataclass(frozen=True)
class Exact(Discretisation):
    """Of the exact filter of a linear model: there is nothing to choose."""

    def __str__(self) -> str:
        return "exact from sample to sample"


@dataclass(frozen=True)
class FilterSteps(Discretisation):
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
    def most(self) -> int:
        """Steps of the cell that has the most."""
        return self.substeps * max(self.finer, default=1)

    @property
    def key(self) -> tuple[int, int, int, tuple[int, ...]]:
        """Equal where two step alike."""
        return self.substeps, self.doublings, self.newton, self.finer

    def halved(self) -> FilterSteps:
        """With steps half as long."""
        return replace(self, substeps=2 * self.substeps)

    def everywhere(self) -> FilterSteps:
        """With the most steps of a cell in every cell."""
        return replace(self, substeps=self.most, finer=())

    @classmethod
    def _read_older(cls, data: Mapping[str, Plain]) -> Self | None:
        steps = data.get("filter")
        if not isinstance(steps, dict) or not steps:
            return None
        return cls(int(str(steps["substeps"])), doublings=int(str(steps["doublings"])))
