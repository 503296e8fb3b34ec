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
from grisaille.collocation.state_names import states_named
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError

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
    record: Record, mesh: Mesh, q: Floats, simulated: Callable[[], Floats], wished: Mapping[str, Any] | None = None
) -> Floats:
    """β of the starting trajectories; ``wished`` names states or disturbances with a number or (times, values).

    simulated : gives the states of the plant at the sample times, (times, nx); called where something is not measured
    """
    model, seen = record.stochastic, measured_states(record)
    states: list[Floats] = [np.zeros(s.count) for s in mesh.splines]
    told = _told(model, wished or {}, q)
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


def _told(model: StochasticModel, wished: Mapping[str, Any], q: Floats) -> dict[int, Any]:
    """What is said of each state; a disturbance w has the least filter state x_w with C x_w = w."""
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


def _refuse_outside(record: Record, wished: Mapping[str, Any]) -> None:
    """Values hold on beyond the first and the last time given, but not for all of a record."""
    first, last = record.times[0], record.times[-1]
    for name, value in wished.items():
        if np.ndim(value) and (value[0][-1] < first or value[0][0] > last):
            raise EstimationError(
                f"trajectories['{name}'] lasts from {value[0][0]:g} to {value[0][-1]:g}, outside experiment "
                f"'{record.name}' ({first:g} to {last:g}): give times inside it, in the same unit."
            )


def _scaled(value: Any, share: float) -> Any:
    return share * float(value) if np.ndim(value) == 0 else (value[0], share * np.asarray(value[1], dtype=float))


def refuse_path(name: str, value: Any) -> None:
    """A trajectory is a finite number, or increasing times with as many values."""
    problem = _fault(value)
    if problem:
        raise EstimationError(
            f"trajectories['{name}'] {problem}; give a number, or (times, values) with one value for every time."
        )


def _fault(value: Any) -> str:
    paired = isinstance(value, tuple | list) and len(value) == 2
    try:
        t, x = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (value if paired else (0.0, value)))
    except (TypeError, ValueError):
        return f"is {value!r}, which are not numbers" if paired else f"is {value!r}, which is not a number"
    if t.ndim != 1 or t.shape != x.shape:
        return f"has {t.size} times for {x.size} values" if paired else f"has {x.size} values and no times"
    if not (np.isfinite(t).all() and np.isfinite(x).all()):
        return "holds something that is not a finite number"
    return "" if (np.diff(t) > 0).all() else "has times that do not increase"
