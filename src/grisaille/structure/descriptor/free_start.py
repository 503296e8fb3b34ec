"""Which start values may be chosen: the part of z(t₀) that inputs and disturbances do not dictate.

    z(t₀) = T₁ x_s(t₀) + (what u, w and their derivatives give),        eqs. (8) and (13)

A variable whose row of T₁ vanishes (a constraint force, a variable tied to an input) has no start of its own; the rank
of T₁ is the number of start values that can be chosen together. Nonlinear models are linearised at their start.

Reference: M. Gerdin, T. Schön, T. Glad, F. Gustafsson, L. Ljung, On parameter and state estimation for linear
differential-algebraic equations (2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grisaille.structure.descriptor.linearization import Linearizer
from grisaille.structure.descriptor.operating_point import jet_values, start_point
from grisaille.structure.descriptor.pencil import RANK_TOLERANCE, Matrix
from grisaille.structure.descriptor.standard_form import separate_modes
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.prepared import structure_of

if TYPE_CHECKING:
    from grisaille.model.classes import Model


@dataclass(frozen=True)
class FreeStart:
    """The freedom of the start, variable by variable."""

    names: tuple[str, ...]
    basis: Matrix
    """One row per variable, one column per degree of freedom: how the variable moves with it."""

    @property
    def degrees_of_freedom(self) -> int:
        return int(self.basis.shape[1])

    @property
    def free(self) -> tuple[str, ...]:
        """Variables whose start can be moved."""
        return tuple(n for n, row in zip(self.names, self.basis, strict=True) if np.any(row))

    @property
    def dictated(self) -> tuple[str, ...]:
        """Variables whose start is given by inputs and disturbances alone."""
        return tuple(n for n, row in zip(self.names, self.basis, strict=True) if not np.any(row))

    def can_choose(self, names: tuple[str, ...]) -> bool:
        """Whether these starts can be chosen together, independently of each other."""
        rows = self.basis[[self.names.index(n) for n in names]]
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.all(size):
            return not names
        return bool(np.linalg.matrix_rank(rows / size, tol=RANK_TOLERANCE) == len(names))


def free_start(model: Model, parameters: Mapping[str, float] | None = None) -> FreeStart:
    """What of the start of a model's variables may be chosen."""
    values = evaluate_parameters(structure_of(model).model, parameters).values
    structure = structure_of(model, values)
    names = tuple(structure.model.variables)
    linearizer = Linearizer(structure.equations, names)
    if linearizer.is_linear:
        linear = linearizer.at(values)
    else:
        point = start_point(structure, values)
        linear = linearizer.at(values, jet_values(structure.system, point, values, linearizer.needed), point.t)
    linear.require_finite(
        f"at the start of {structure.model.name}, inputs at their defaults: give inputs defaults and "
        "variables starts inside the model's domain."
    )
    parts = separate_modes(linear.E, linear.F)
    columns = parts.staircase.scaling.columns
    basis, size = linear.H @ parts.free_basis, np.abs(linear.H) @ columns[:, None]
    return FreeStart(names, np.where(np.abs(basis) > RANK_TOLERANCE * size, basis, 0.0))
