"""The estimated trajectory of a state beside data and, where it is known, the true path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    import grisaille as gr

MEASURED = {"C_A": "y_C", "T": "y_T"}
"""State → its output."""


def state_band(fit: gr.Fit, name: str) -> xr.DataArray:
    """Mean and 95 % band over time."""
    return fit.states(names=[name])[name].sel(given="smoothed")


def draw_state(axis: Axes, fit: gr.Fit, name: str, true: tuple[np.ndarray, np.ndarray] | None = None) -> None:
    """Band, mean, truth and samples."""
    band, record = state_band(fit, name), fit.experiments[0]
    at = band["time"].values
    low, high = (band.sel(statistic=s) for s in ("lower", "upper"))
    axis.fill_between(at, low, high, color="tab:blue", alpha=0.2, linewidth=0)
    axis.plot(at, band.sel(statistic="mean"), color="tab:blue", label="fitted")
    if true is not None:
        axis.plot(*true, "--", color="0.3", linewidth=0.8, label="true")
    if MEASURED.get(name) in record.outputs:
        samples = record.measurements(MEASURED[name])
        axis.plot(samples.times, samples.values, "k.", markersize=2, label="measured")
    axis.set(xlabel="time [min]", ylabel=name)
    axis.legend(fontsize=8)
