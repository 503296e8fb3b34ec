"""``Trajectories``: what ``fit.states()`` and ``fit.predict()`` give, a Dataset that can be drawn.

An ``xarray.Dataset`` has a ``plot`` that cannot be called; here it can. Everything else is as it was, selections are
``Trajectories`` again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.plot.accessor import DatasetPlotAccessor

from grisaille.experiment.times.dating import DATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas


class Drawing(DatasetPlotAccessor):
    """``trajectories.plot()``, and the pictures that xarray itself draws, ``trajectories.plot.scatter(…)``."""

    __slots__ = ("_trajectories",)

    def __init__(self, trajectories: xr.Dataset) -> None:
        super().__init__(trajectories)
        self._trajectories = trajectories

    def __call__(self, names: str | Iterable[str] | None = None, *, ax: Canvas | None = None) -> Figure:  # type: ignore[override]
        """Return a panel for each quantity over time, with its band where it has one.

        Parameters
        ----------
        names : which quantities; the first sixteen by default
        ax : axes to draw on instead of a new figure, one per quantity

        Returns
        -------
        The figure.
        """
        from grisaille.reporting.plots import trajectories

        return trajectories(self._trajectories, names, ax=ax)


class Trajectories(xr.Dataset):  # type: ignore[no-untyped-call]
    """Quantities over ``time``, and ``date`` where data had dates, with units as attributes; ``plot()`` draws them."""

    __slots__ = ()

    @property
    def plot(self) -> Drawing:  # type: ignore[override]
        """Draws a panel for each quantity; ``plot(["drift"])`` some of them."""
        return Drawing(self)

    def to_netcdf(self, *arguments: Any, **options: Any) -> Any:
        """Write the trajectories as a netCDF file. Files know no time zones: dates are written in UTC.

        arguments, options : as of ``xarray.Dataset.to_netcdf``
        """
        return _without_zone(self).to_netcdf(*arguments, **options)


def as_trajectories(dataset: xr.Dataset) -> Trajectories:
    """Return the same content, as something that can be drawn."""
    return Trajectories(dataset.data_vars, dataset.coords, dataset.attrs)


def _without_zone(dataset: xr.Dataset) -> xr.Dataset:
    plain = xr.Dataset(dataset.data_vars, dataset.coords, dataset.attrs)
    if DATE not in plain.coords or plain[DATE].dtype.kind == "M":
        return plain
    utc = pd.to_datetime(pd.Series(np.ravel(plain[DATE].values), dtype=object), utc=True).dt.tz_convert(None)
    dates = utc.to_numpy().reshape(plain[DATE].shape)
    return plain.assign_coords({DATE: (plain[DATE].dims, dates, {"zone": "UTC"})})
