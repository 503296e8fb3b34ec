"""Trajectories to start from: through the data for states that are measured, by simulation for the others.

A state that is an output by itself takes the measurements, joined by lines, at the averages of its knots (this smooths
like a spline of that order). The others are simulated at the guess with disturbances at zero; where that fails they
keep their start values. States of disturbances start from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.collocation.mesh import Mesh
from grisaille.collocation.record import Record
from grisaille.errors import EstimationError
from grisaille.model.names import suggestion

Floats = NDArray[np.float64]


def measured_states(record: Record) -> dict[int, int]:
    """State → the output that is this state."""
    model = record.stochastic
    places = {s.element_hash(): k for k, s in enumerate(ca.vertsplit(model.X))}
    found: dict[int, int] = {}
    for column, formula in enumerate(ca.vertsplit(model.measured)):
        state = places.get(formula.element_hash())
        if state is not None and np.isfinite(record.y[:, column]).sum() >= 2:
            found.setdefault(state, column)
    return found


def starting_coefficients(
    record: Record, mesh: Mesh, simulated: Callable[[], Floats], wished: Mapping[str, Any] | None = None
) -> Floats:
    """β of the starting trajectories; ``wished`` names states with a number or (times, values).

    simulated : gives the states of the plant at the sample times, (times, nx); called where something is not measured
    """
    model, seen = record.stochastic, measured_states(record)
    states: list[Floats] = [np.zeros(s.count) for s in mesh.splines]
    told = _told(model.names, wished or {})
    if any(i not in seen and i not in told for i in range(model.nx)):
        paths = simulated()
        for i in range(model.nx):
            states[i] = np.interp(mesh.splines[i].averages, record.times, paths[:, i])
    for i, column in seen.items():
        rows = np.isfinite(record.y[:, column])
        states[i] = np.interp(mesh.splines[i].averages, record.times[rows], record.y[rows, column])
    for i, value in told.items():
        at = mesh.splines[i].averages
        states[i] = np.full(len(at), float(value)) if np.ndim(value) == 0 else np.interp(at, value[0], value[1])
    return mesh.interpolated(states)


def _told(names: tuple[str, ...], wished: Mapping[str, Any]) -> dict[int, Any]:
    for name in wished:
        if name not in names:
            raise EstimationError(f"trajectories= names '{name}', which is not a state. {suggestion(name, names)}")
    return {names.index(name): value for name, value in wished.items()}
