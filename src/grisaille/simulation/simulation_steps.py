"""The discretisation of one simulation: the method, and the length of its frozen steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from grisaille.bound_experiment.discretisation import Discretisation, Plain
from grisaille.compilation.schemes import Scheme, find_scheme


@dataclass(frozen=True)
class SimulationSteps(Discretisation, saved_as="Steps"):
    """Equal steps between the instants at which one must end."""

    method: str
    """The name of a scheme under error control, which is taken with steps of this length, or as it is."""
    step: float
    """The longest; zero where steps stay adaptive, with a tighter tolerance."""
    sizes: tuple[float, ...] = ()
    """Nominal sizes of states and implicit unknowns that absolute tolerances belong to; empty where those of the model
    do (``sizes.py``)."""
    tolerance: float = 0.0
    """Relative tolerance that the steps keep; zero where that is the one that was asked for."""

    @property
    def scheme(self) -> Scheme:
        return find_scheme(self.method)

    def __str__(self) -> str:
        return f"{self.method} steps of at most {self.step:.4g}" if self.step else f"adaptive {self.method} steps"

    def refined(self, excess: float) -> Self:
        """Return shorter steps, by more than a half where they are much too long; adaptive ones keep their
        tolerance.
        """
        # the estimate is of fourth order or higher
        return replace(self, step=self.step * min(0.5, 0.8 * excess**-0.25))

    @classmethod
    def _read_older(cls, data: Mapping[str, Plain]) -> Self | None:
        method, step = data.get("method"), data.get("step")
        is_chosen = isinstance(method, str) and method and isinstance(step, int | float)
        return cls(str(method), float(str(step))) if is_chosen else None


@dataclass(frozen=True)
class StaticRows(Discretisation, saved_as="Rows"):
    """Of a static experiment: every row is solved for itself, followed from its root at given parameters."""

    parameters: tuple[float, ...] = ()
    roots: tuple[tuple[float, ...], ...] = ()
    """Implicit unknowns, row by row; none where there are only formulas."""

    def __str__(self) -> str:
        return f"{len(self.roots)} roots, row by row" if self.roots else "formulas, row by row"
