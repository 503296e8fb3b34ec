"""Experiments as ``xarray.Dataset`` and back: flat attributes and plain arrays, so that netCDF files can hold them.

Signals with equal times share a dimension; the first is called ``time``, others ``time(signal)``. What is not an array
stands in the attribute ``experiment`` as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError
from grisaille.experiment.rows import PLAIN_ROWS
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.experiment.times.clock import UNSTATED_UNIT, Clock
from grisaille.laws.law_content import from_data, to_data
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

    from grisaille.experiment.experiment import Experiment
    from grisaille.laws.law import Law

FORMAT, MARKED = 1, 2
"""Of datasets without marks, which older versions read as well, and of those with them."""


def to_dataset(experiment: Experiment) -> xr.Dataset:
    """Return everything that is in an experiment."""
    import xarray as xr

    axes = _Axes("row" if experiment.is_static else "time")
    variables: dict[str, Any] = {}
    for role, signals in (("output", experiment.outputs), ("input", experiment.inputs)):
        for name, signal in signals.items():
            attributes = {"role": role, "units": experiment.units.get(name, "")}
            if role == "input":
                attributes["hold"] = experiment.hold[name]
            if isinstance(signal, SampledSignal):
                variables[name] = (axes.dimension(name, signal.times), signal.values, attributes)
            else:
                variables[name] = ((), signal, attributes)
    for name, weight in experiment.weights.items():
        dimension: Any = axes.dimension(name, experiment.outputs[name].times) if isinstance(weight, np.ndarray) else ()
        variables[f"weight({name})"] = (dimension, weight, {"role": "weight", "of": name})
    for name, marks in experiment.marks.items():
        times = experiment.outputs[name].times
        variables[f"mark({name})"] = (axes.dimension(name, times), marks, {"role": "mark", "of": name})
    return xr.Dataset(variables, axes.coordinates(experiment.clock.unit), {"experiment": json.dumps(_rest(experiment))})


class _Axes:
    """Names of dimensions, one for each different array of times."""

    def __init__(self, first: str) -> None:
        self.first = first
        self.known: dict[str, np.ndarray] = {}

    def dimension(self, signal: str, times: np.ndarray) -> str:
        for name, axis in self.known.items():
            if axis is times or np.array_equal(axis, times):
                return name
        name = f"{self.first}({signal})" if self.known else self.first
        self.known[name] = times
        return name

    def coordinates(self, unit: str) -> dict[str, Any]:
        # "unit", not "units": xarray would decode numbers with units of time into dates
        return {name: (name, times, {"unit": unit}) for name, times in self.known.items()}


def _rest(experiment: Experiment) -> dict[str, Any]:
    origin = experiment.clock.origin
    zone = None if origin is None or origin.tz is None else str(origin.tz)
    return {
        "format": MARKED if experiment.marks else FORMAT,
        "name": experiment.name,
        "static": experiment.is_static,
        "constants": dict(experiment.constants),
        "start": {name: _pack_start(value) for name, value in experiment.start.items()},
        "t0": experiment.t0,
        "skip": experiment.skip,
        "unit": experiment.clock.unit,
        "is_said": experiment.clock.is_said,
        "origin": None
        if origin is None
        else origin.tz_localize(None).isoformat()
        if zone is None
        else origin.isoformat(),
        "zone": zone,
    }


def _pack_start(value: float | Law | None) -> Any:
    return value if value is None or isinstance(value, float) else to_data(value)


def restore_dataset(cls: type[Experiment], dataset: xr.Dataset, changes: Mapping[str, str]) -> Experiment:
    """Restore the content that :func:`to_dataset` wrote."""
    if "experiment" not in getattr(dataset, "attrs", {}):
        raise DataError(
            "The dataset was not written by Experiment.to_dataset: name its variables, as in from_dataset(dataset, "
            "inputs=['u'], outputs=['y'])."
        )
    rest = json.loads(dataset.attrs["experiment"])
    if rest["format"] not in (FORMAT, MARKED):
        raise DataError(f"The dataset has the format {rest['format']}; this version reads {FORMAT} and {MARKED}.")
    roles = {str(name): variable for name, variable in dataset.data_vars.items()}
    inputs = {n: v for n, v in roles.items() if v.attrs["role"] == "input"}
    outputs = {n: v for n, v in roles.items() if v.attrs["role"] == "output"}
    weights = {v.attrs["of"]: v.values for v in roles.values() if v.attrs["role"] == "weight"}
    marks = {v.attrs["of"]: v.values for v in roles.values() if v.attrs["role"] == "mark"}
    arguments = {
        "marks": marks,
        "inputs": {n: _signal(v, rest["static"]) for n, v in inputs.items()},
        "outputs": {n: _signal(v, rest["static"]) for n, v in outputs.items()},
        "hold": {n: v.attrs["hold"] for n, v in inputs.items()},
        "weights": {n: w if w.ndim else float(w) for n, w in weights.items()},
        "start": {n: _unpack_start(value) for n, value in rest["start"].items()},
        "units": {n: v.attrs["units"] for n, v in (inputs | outputs).items()},
        **{key: rest[key] for key in ("name", "constants", "t0", "skip")},
    }
    return cls._remade(_clock(rest), PLAIN_ROWS, **{**arguments, **changes})


def _clock(rest: Mapping[str, Any]) -> Clock:
    import pandas as pd

    if rest["origin"] is None:
        return Clock(rest["unit"], is_said=rest.get("is_said", False))
    origin = pd.Timestamp(rest["origin"])
    origin = origin if rest["zone"] is None else origin.tz_convert(rest["zone"])
    return Clock(rest["unit"], origin, rest.get("is_said", False))


def _signal(variable: xr.DataArray, is_static: bool) -> float | np.ndarray | tuple[np.ndarray, np.ndarray]:
    if not variable.dims:
        return float(variable)
    return variable.values if is_static else (variable[variable.dims[0]].values, variable.values)


def _unpack_start(value: Any) -> Any:
    return from_data(value) if isinstance(value, list) else value


def read_dataset(
    cls: type[Experiment],
    dataset: xr.Dataset,
    inputs: Sequence[str],
    outputs: Mapping[str, str] | Sequence[str],
    time: str,
    options: Mapping[str, Any],
) -> Experiment:
    """Return variables of any Dataset, by name or by a dict from names in the model to variables."""
    if time not in dataset.coords:
        raise DataError(f"The dataset has no coordinate '{time}' (time=). {suggestion(time, map(str, dataset.coords))}")
    wanted = [_named(dataset, columns, time, what) for columns, what in ((inputs, "inputs"), (outputs, "outputs"))]
    found = {name: dataset[v].attrs.get("units", "") for names in wanted for name, v in names.items()}
    units = {**{n: str(u) for n, u in found.items() if u}, **options.get("units", {})}
    axis = dataset[time]
    unit = axis.attrs.get("unit", UNSTATED_UNIT)
    signals = [{n: dataset[v].values for n, v in names.items()} for names in wanted]
    arguments = {"unit": unit if unit is UNSTATED_UNIT else str(unit), **options, "units": units}
    return cls._remade(None, PLAIN_ROWS, time=axis.values, inputs=signals[0], outputs=signals[1], **arguments)


def _named(dataset: xr.Dataset, columns: Mapping[str, str] | Sequence[str], time: str, what: str) -> dict[str, str]:
    if isinstance(columns, str):
        raise DataError(
            f"{what}={columns!r}: give a list of variables, [{columns!r}], or a dict of names to variables."
        )
    names = dict(columns) if isinstance(columns, Mapping) else {name: name for name in columns}
    for variable in names.values():
        if variable not in dataset:
            known = [str(name) for name in dataset.data_vars]
            raise DataError(f"The dataset has no variable '{variable}' ({what}=). {suggestion(str(variable), known)}")
        if dataset[variable].dims != (time,):
            other = next((d for d in dataset[variable].dims if d != time), None)
            hint = f"Choose one of '{other}', as in dataset.sel({other}=…)." if other else "It does not vary in time."
            raise DataError(
                f"Variable '{variable}' has the dimensions {dataset[variable].dims}, not ('{time}',). {hint}"
            )
    return names
