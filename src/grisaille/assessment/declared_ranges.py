"""Says where estimated trajectories touch or leave the ranges that variables declare, ``gr.Variable(bounds=…)``.

A range is what makes sense physically. Trajectories of collocation are kept inside, those of filters and simulations
are not: whichever it was, a fit says where the range mattered. Of fits that estimate states the smoothed means are
looked at, of others the simulation, at the samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from grisaille.errors import GrisailleError
from grisaille.estimation.fitted import Fitted
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import xarray as xr

BOUND_TOLERANCE = 1e-6
"""Of the size of a variable or its bound: nearer is at the bound, further out is beyond it."""
MAX_VARIABLES = 4


def range_notes(fit: Fitted) -> tuple[str, ...]:
    """Return a sentence for each variable that is not well inside its declared range, the first few of them."""
    variables = structure_of(fit.initial_model).model.variables
    ranges = {
        name: (-np.inf if v.bounds[0] is None else v.bounds[0], np.inf if v.bounds[1] is None else v.bounds[1])
        for name, v in variables.items()
        if v.bounds is not None
    }
    if not ranges:
        return ()
    courses = [(e.name or "", found) for e in fit.experiments if (found := _course(fit, e.name or "")) is not None]
    notes = [note for name, (low, high) in ranges.items() for note in _about(fit, name, low, high, courses)]
    return tuple(notes[:MAX_VARIABLES])


def _course(fit: Fitted, experiment: str) -> xr.Dataset | None:
    """Return the trajectories of an experiment over ``time`` alone; None where there are none."""
    try:
        if fit.method.states is not None:
            found = fit.method.states.of(fit, experiment, None, 0.95)
            return found.isel(given=-1).sel(statistic="mean")
        found = fit.simulated(fit.find_experiment(experiment))
    except GrisailleError:
        return None
    return found.mean("realization") if "realization" in found.dims else found


def _about(fit: Fitted, name: str, low: float, high: float, courses: list[tuple[str, xr.Dataset]]) -> Iterator[str]:
    """Say how one variable lies in its range: the worst of all experiments."""
    parts = [(e, c["time"].values, c[name].values) for e, c in courses if name in c and c[name].dims == ("time",)]
    if not parts:
        return
    size = max(float(np.nanmax(np.abs(x), initial=0.0)) for _, _, x in parts)
    ends = [abs(b) for b in (low, high) if np.isfinite(b)]
    tolerance = BOUND_TOLERANCE * max(size, *ends, 1e-300)
    total = sum(len(x) for _, _, x in parts)
    beyond = sum(int(np.sum((x < low - tolerance) | (x > high + tolerance))) for _, _, x in parts)
    near = sum(int(np.sum((x <= low + tolerance) | (x >= high - tolerance))) for _, _, x in parts)
    range_ = f"[{low:g}, {high:g}]"
    if beyond:
        distances = [(float(np.nanmax(np.maximum(low - x, x - high))), e, t, x) for e, t, x in parts]
        _, experiment, times, values = max(distances, key=lambda d: d[0])
        at = int(np.nanargmax(np.maximum(low - values, values - high)))
        where = f" of {experiment}" if len(courses) > 1 else ""
        yield (
            f"range: {name} leaves its declared bounds {range_} at {beyond} of {total} samples, {values[at]:.3g} at "
            f"t = {times[at]:.4g}{where}: {_not_kept(fit)}"
        )
    elif near and _follows_data(fit):
        yield f"range: {name} is held at its declared bounds {range_} at {near} of {total} samples."


def _follows_data(fit: Fitted) -> bool:
    return fit.method.states is not None and fit.method.states.follow_data


def _not_kept(fit: Fitted) -> str:
    if fit.method.ahead is not None:
        return "filters do not keep states inside; gr.Collocation() does, and then has no likelihood."
    if _follows_data(fit):
        return "this criterion does not keep trajectories inside."
    return "simulations do not keep states inside: check the equations and the estimates."
