"""Trajectories as a labelled ``xarray.Dataset``, in the user's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.compilation.task import Status, Task
from grisaille.simulation.event_texts import event_sentences, times_of
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import ConsistentStart
from grisaille.structure.system import System

if TYPE_CHECKING:
    import xarray as xr

    from grisaille.bound_experiment import ExperimentPoint
    from grisaille.simulation.ensembles.ensemble import Ensemble
    from grisaille.simulation.ensembles.ensemble_options import EnsembleOptions
    from grisaille.simulation.ensembles.reducers import Statistic


class Labels:
    """Names, units and descriptions of one model's trajectories, looked up once.

    structure : says what is observed
    system : that integrators ran, with modes where relations are held
    directions : names of the derivatives
    """

    def __init__(self, structure: Structure, system: System, directions: tuple[str, ...]) -> None:
        self.names, self.system, self.directions = structure.system.observed_names, system, directions
        self._described = {n: described(structure, n) for n in self.names}
        self._last: xr.Dataset | None = None

    def dataset(
        self, structure: Structure, task: Task, start: ConsistentStart, solver: str, sentence: str
    ) -> xr.Dataset:
        """Return rows that were written, one variable per user name; attributes are flat so that netCDF can hold
        them.
        """
        result = self._labelled(task)
        result.attrs = _statistics(structure, task, start, solver, sentence)
        if self.system.modes:
            result.attrs |= {"events": task.n_events, "event_times": times_of(task)}
            result.attrs["event_list"] = "\n".join(event_sentences(task, self.system))
        return result

    def values(self, task: Task) -> dict[str, np.ndarray]:
        """Return the same numbers by name."""
        rows = slice(0, task.written)
        found = {n: np.ascontiguousarray(task.y[rows, k]) for k, n in enumerate(self.names)}
        if self.directions:
            found |= {f"d({n})": np.ascontiguousarray(task.sy[rows, :, k]) for k, n in enumerate(self.names)}
        return found

    def _labelled(self, task: Task) -> xr.Dataset:
        values, times = self.values(task), np.array(task.times[: task.written])
        if self._last is None or not np.array_equal(self._last["time"].values, times):
            self._last = self._new(values, times)
            return self._last.copy()
        # merging costs a millisecond, a copy a twentieth of it
        return self._last.copy(data=values)

    def _new(self, values: dict[str, np.ndarray], times: np.ndarray) -> xr.Dataset:
        import xarray as xr

        variables = {n: _variable(("time",), values[n], self._described[n]) for n in self.names}
        coordinates = {"time": _variable(("time",), times)}
        if self.directions:
            variables |= {f"d({n})": _variable(("time", "parameter"), values[f"d({n})"]) for n in self.names}
            coordinates["parameter"] = _variable(("parameter",), np.array(self.directions))
        return xr.Dataset(variables, coordinates)


def _variable(dims: tuple[str, ...], values: np.ndarray, attrs: Mapping[str, object] | None = None) -> xr.Variable:
    """Return an array with its dimensions, taken as it is.

    Without ``fastpath``, xarray imports dask where it is installed (0.2 s), to see that the array is none of dask's.
    """
    import xarray as xr

    return xr.Variable(dims, values, attrs, fastpath=True)


def as_ensemble(posed: ExperimentPoint, options: EnsembleOptions, found: Ensemble) -> xr.Dataset:
    """Return every realization (dimensions ``realization``, ``time``), or statistics under the names that ``reduce``
    gives.
    """
    import xarray as xr

    from grisaille.simulation.ensembles.reducers import Statistic

    structure, directions = posed.structure, posed.names
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {"time": ("time", np.array(posed.times))}
    if directions:
        coordinates["parameter"] = ("parameter", np.array(directions))
    if found.y is not None and found.sy is not None:
        coordinates["realization"] = ("realization", np.arange(options.realizations))
        all_values = Statistic(("realization",), found.y, found.sy if directions else None)
        _add(variables, coordinates, structure, found.names, "", all_values)
    for suffix, statistic in found.statistics.items():
        _add(variables, coordinates, structure, found.names, f"_{suffix}" if suffix else "", statistic)
    return xr.Dataset(variables, coordinates, _ensemble_statistics(posed, options, found))


def _add(
    variables: dict[str, Any], coordinates: dict[str, Any], structure: Structure, names: tuple[str, ...], suffix: str,
    statistic: Statistic,
) -> None:  # fmt: skip
    for k, name in enumerate(names):
        values = np.ascontiguousarray(statistic.values[..., k])
        variables[name + suffix] = ((*statistic.dims, "time"), values, described(structure, name))
        if statistic.slopes is not None and "parameter" in coordinates:
            slopes = np.ascontiguousarray(statistic.slopes[..., k])
            variables[f"d({name + suffix})"] = ((*statistic.dims, "time", "parameter"), slopes)
    coordinates.update({n: (n, v) for n, v in statistic.coordinates.items()})


def _ensemble_statistics(posed: ExperimentPoint, options: EnsembleOptions, found: Ensemble) -> dict[str, Any]:
    steps = np.diff(found.grid.points)
    reduced = options.reduce if isinstance(options.reduce, str) else ", ".join(found.statistics)
    failures = sorted(found.failed)
    return {
        "model": posed.structure.model.name,
        "status": (f"{len(failures)} of {options.realizations} realizations failed" if failures else "completed")
        + (f", but {found.passed}" if found.passed else ""),
        "completed": int(not failures),
        "solver": found.solver,
        "device": found.device,
        "index": posed.structure.index,
        "realizations": int(options.realizations),
        "failed_realizations": np.array(failures, dtype=np.int64),
        "reduce": reduced,
        "seed": str(options.seed),
        "antithetic": int(options.antithetic),
        "between": options.between,
        "disturbance_step": float(steps.max()) if steps.size else 0.0,
        "linear_loss": found.linear_loss,
        "cells": int(steps.size),
        "substeps": found.substeps,
        "rtol": options.rtol,
        "error_estimate": found.error_estimate,
        "start_residual": posed.start.residual,
        "white_noise": found.remark,
    }


def described(structure: Structure, name: str) -> dict[str, str]:
    """Return unit and description of a name, where it has them."""
    model = structure.model
    for table in (model.variables, model.discretes, model.outputs, model.inputs, model.disturbances):
        if name in table:
            entry = table[name]
            found = {"units": entry.unit, "description": entry.description}
            return {k: v for k, v in found.items() if v}
    return {}


def _statistics(structure: Structure, task: Task, start: ConsistentStart, solver: str, sentence: str) -> dict[str, Any]:
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
        "solution_jumps": task.snaps,
        "worst_constraint": task.worst_constraint,
        "frozen_step": task.fixed_step,
        "error_estimate": task.error_estimate,
        "start_residual": start.residual,
        "adjusted_starts": "; ".join(f"{n}: declared {a:g}, got {b:g}" for n, (a, b) in start.guesses_missed.items()),
        "start_note": start.note,
    }
