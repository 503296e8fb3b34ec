"""Bounds that variables declare, as bounds of the states and algebraic unknowns of direct collocation."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Floats, Mask
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.collocation.direct.path_newton import PathPoint
from grisaille.errors import EstimationError

Limits = tuple[Floats, Floats]
"""Lowest and highest values of (X, Z)."""


def state_limits(model: DirectModel, bounds: Mapping[str, tuple[float, float]]) -> Limits:
    """Return the limits of variables by their names; refuse those that are no unknowns after index reduction."""
    places = _places(model)
    lower, upper = np.full(model.n + model.nz, -np.inf), np.full(model.n + model.nz, np.inf)
    for name, limits in bounds.items():
        if name not in places:
            raise EstimationError(
                f"Bounds are given for '{name}', which is not a state of {model.structure.model.name} after index "
                f"reduction; there are {', '.join(places)}."
            )
        lower[places[name]], upper[places[name]] = limits
    return lower, upper


def _places(model: DirectModel) -> dict[str, int]:
    """Return the indices in (X, Z) of variables that are unknowns or equal to one."""
    system, unknowns = model.structure.system, ca.vertcat(model.X, model.Z)
    entries = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(unknowns))}
    hashes = [f.element_hash() for f in ca.vertsplit(model.observed)]
    named = {n: entries[h] for n, h in zip(system.observed_names, hashes, strict=True) if h in entries}
    return named | {n: k for k, n in enumerate((*model.state_names, *system.implicit_names))}


def violated(at: PathPoint, limits: Limits) -> Mask:
    """Return which of (X, Z) leave their bounds at some Radau point."""
    program, point = at.program, at.point
    jumped = [program.seen_points(point, r) for r in range(len(program.records))] if program.functions.after else []
    values = np.vstack([point.first, program.nodes(point.inner), *jumped])
    return np.asarray(((values < limits[0]) | (values > limits[1])).any(axis=0))
