"""Trajectories to start from: through the data for states that are measured, by simulation for the others.

A state that is an output by itself takes the measurements, joined by lines, at the averages of its knots (this smooths
like a spline of that order). The others are simulated at the guess with disturbances at zero; where that fails they
keep their start values. States of disturbances start from zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from grisaille.collocation.array_types import Floats
from grisaille.collocation.spline_mesh import SplineMesh
from grisaille.collocation.spline_options import states_named
from grisaille.collocation.trial_record import CollocationRecord, outputs_that_are_states
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError

if TYPE_CHECKING:
    import xarray as xr


def measured_states(record: CollocationRecord) -> dict[int, int]:
    """Return state → the first output that is this state and was measured twice or more."""
    found: dict[int, int] = {}
    for column, state in outputs_that_are_states(record.stochastic.X, record.stochastic.measured).items():
        if np.isfinite(record.y[:, column]).sum() >= 2:
            found.setdefault(state, column)
    return found


def starting_coefficients(
    record: CollocationRecord,
    mesh: SplineMesh,
    q: Floats,
    simulated: Callable[[], Floats],
    wished: Mapping[str, xr.DataArray] | None = None,
) -> Floats:
    """Return β of the starting trajectories; ``wished``: states or disturbances by name with a number or (times,
    values).

    simulated : gives the states of the plant at the sample times, (times, nx); called where something is not measured
    """
    model, seen = record.stochastic, measured_states(record)
    states: list[Floats] = [np.zeros(s.count) for s in mesh.splines]
    told = _measured_courses(model, wished or {}, q)
    _refuse_outside(record, wished or {})
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


def _measured_courses(model: StochasticModel, wished: Mapping[str, xr.DataArray], q: Floats) -> dict[int, Any]:
    """Return the given course of each state; a disturbance w has the least filter state x_w with C x_w = w."""
    told: dict[int, Any] = {}
    for name in sorted(wished, key=lambda n: n in model.names):
        places, value = states_named(model, name, "trajectories"), wished[name]
        if name in model.structure.model.disturbances:
            row = ca.jacobian(model.observed[model.observed_names.index(name)], model.X)[0, places]
            C = np.array(ca.Function("output", [model.q], [ca.densify(row)])(q)).ravel()
            shares = C / float(C @ C)
        else:
            shares = np.ones(len(places))
        for k, share in zip(places, shares, strict=True):
            told[k] = _scaled(value, float(share))
    return told


def _refuse_outside(record: CollocationRecord, wished: Mapping[str, xr.DataArray]) -> None:
    """Refuse trajectories whose times all lie outside a record; values are held beyond the first and the last time
    given.
    """
    first, last = record.times[0], record.times[-1]
    for name, value in wished.items():
        if np.ndim(value) and (value[0][-1] < first or value[0][0] > last):
            raise EstimationError(
                f"trajectories['{name}'] lasts from {value[0][0]:g} to {value[0][-1]:g}, outside experiment "
                f"'{record.name}' ({first:g} to {last:g}): give times inside it, in the same unit."
            )


def _scaled(value: Any, share: float) -> Any:
    return share * float(value) if np.ndim(value) == 0 else (value[0], share * np.asarray(value[1], dtype=float))
