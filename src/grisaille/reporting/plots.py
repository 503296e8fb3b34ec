"""Trajectories as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from grisaille.drawing import labelled, panels
from grisaille.errors import DataError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MOST_PANELS = 16


def trajectories(result: xr.Dataset, variables: Sequence[str] | None = None, *, ax: Any = None) -> Figure:
    """One panel per variable over time, in the order of declaration; sensitivities are left out unless named.

    ax : axes to draw on instead of a new figure, one per variable
    """
    chosen = _chosen(result, variables)
    title = str(result.attrs.get("model", ""))
    figure, column = panels(ax, len(chosen), size=(8, 1.6 * len(chosen) + 0.8), title=title, sharex=True)
    for axes, name in zip(column[:, 0], chosen, strict=True):
        data = result[name]
        for label, line in _lines(data):
            axes.plot(result["time"], line, linewidth=1.2, label=label)
        axes.set_ylabel(labelled(name, data.attrs.get("units", "")))
        axes.grid(alpha=0.3)
        if data.ndim > 1:
            axes.legend(fontsize="small")
    column[-1, 0].set_xlabel(labelled("time", str(result["time"].attrs.get("units", ""))))
    return figure


def _chosen(result: xr.Dataset, variables: Sequence[str] | None) -> list[str]:
    if variables is not None:
        missing = [v for v in variables if v not in result]
        if missing:
            raise DataError(
                f"The result has no variable {missing[0]!r}; it has {', '.join(map(str, result.data_vars))}."
            )
        return list(variables)
    plain = [str(name) for name, data in result.data_vars.items() if data.dims == ("time",)]
    return plain[:MOST_PANELS]


def _lines(data: xr.DataArray) -> list[tuple[str, object]]:
    if data.ndim == 1:
        return [("", data.values)]
    other = next(d for d in data.dims if d != "time")
    return [(str(label), data.sel({other: label}).values) for label in data[other].values]
