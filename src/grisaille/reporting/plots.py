"""Trajectories as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grisaille.errors import DataError

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

MOST_PANELS = 16


def trajectories(result: xr.Dataset, variables: Sequence[str] | None = None) -> Figure:
    """One panel per variable over time, in the order of declaration; sensitivities are left out unless named."""
    from matplotlib.figure import Figure

    chosen = _chosen(result, variables)
    figure = Figure(figsize=(8, 1.6 * len(chosen) + 0.8), layout="constrained")
    panels = figure.subplots(len(chosen), 1, sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, chosen, strict=True):
        data = result[name]
        for label, line in _lines(data):
            axes.plot(result["time"], line, linewidth=1.2, label=label)
        unit = data.attrs.get("units", "")
        axes.set_ylabel(f"{name} [{unit}]" if unit else name)
        axes.grid(alpha=0.3)
        if data.ndim > 1:
            axes.legend(fontsize="small")
    panels[-1].set_xlabel("time")
    figure.suptitle(str(result.attrs.get("model", "")), fontsize="medium")
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
