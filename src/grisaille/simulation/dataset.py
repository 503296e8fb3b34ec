"""Trajectories as a labelled ``xarray.Dataset``, in the user's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.structure.initialization import Start
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    import xarray as xr


def as_dataset(
    structure: Structure, task: Task, directions: tuple[str, ...], start: Start, solver: str, sentence: str
) -> xr.Dataset:
    """Rows that were written, one variable per user name; attributes are flat so that netCDF can hold them."""
    import xarray as xr

    rows = slice(0, task.written)
    variables: dict[str, Any] = {}
    for k, name in enumerate(structure.system.observed_names):
        variables[name] = ("time", np.ascontiguousarray(task.y[rows, k]), _attributes(structure, name))
    for k, name in enumerate(structure.system.observed_names if directions else ()):
        variables[f"d({name})"] = (("time", "parameter"), np.ascontiguousarray(task.sy[rows, :, k]))
    coordinates: dict[str, Any] = {"time": ("time", np.array(task.times[rows]))}
    if directions:
        coordinates["parameter"] = ("parameter", np.array(directions))
    return xr.Dataset(variables, coordinates, _statistics(structure, task, start, solver, sentence))


def _attributes(structure: Structure, name: str) -> dict[str, str]:
    model = structure.model
    for table in (model.variables, model.outputs, model.inputs, model.disturbances):
        if name in table:
            entry = table[name]
            found = {"units": entry.unit, "description": entry.description}
            return {k: v for k, v in found.items() if v}
    return {}


def _statistics(structure: Structure, task: Task, start: Start, solver: str, sentence: str) -> dict[str, Any]:
    return {
        "model": structure.model.name,
        "status": sentence,
        "completed": int(task.status == Status.DONE),
        "solver": solver,
        "index": structure.index,
        "rtol": task.rtol,
        "steps": task.steps,
        "rejected_steps": task.rejected,
        "evaluations": task.evaluations,
        "jacobians": task.jacobians,
        "factorizations": task.factorizations,
        "newton_iterations": task.newton_iterations,
        "worst_constraint": task.worst_constraint,
        "frozen_step": task.fixed_step,
        "error_estimate": task.error_estimate,
        "start_residual": start.residual,
        "adjusted_starts": "; ".join(f"{n}: wished {a:g}, got {b:g}" for n, (a, b) in start.wishes_missed.items()),
    }
