"""Where pictures are drawn: on a new figure, or on the user's own axes (``ax=``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from grisaille.experiment.times.clock import Clock

    Canvas = Axes | Iterable[Axes] | np.ndarray
    """What may be given as ``ax=``."""


def panels(
    ax: Canvas | None, rows: int, columns: int = 1, *, size: tuple[float, float], title: str = "", **options: Any
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes, (rows, columns).

    ax : None for a new figure of ``size`` with ``title`` above; otherwise matplotlib axes, one for each panel
    options : of ``Figure.subplots``
    """
    if ax is None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        if title:
            figure.suptitle(title, fontsize="medium")
        return figure, np.asarray(figure.subplots(rows, columns, squeeze=False, **options))
    given = np.array(ax, dtype=object).reshape(-1)
    for one in given:
        if not hasattr(one, "plot") or not hasattr(one, "figure"):
            raise DataError(f"ax= holds {one!r}, which is no matplotlib axes; plt.subplots() makes them.")
    if len(given) != rows * columns:
        shape = f"{rows}" if columns == 1 else f"{rows}, {columns}"
        raise DataError(
            f"This picture has {rows * columns} panels, but ax= has {len(given)} axes. "
            f"Give as many: figure, ax = plt.subplots({shape})."
        )
    return given[0].figure, given.reshape(rows, columns)


def abscissae(clock: Clock | None, times: Any) -> Any:
    """Return times as they are drawn: dates, in UTC, where the data had dates."""
    dates = None if clock is None else clock.dates(times)
    if dates is None:
        return times
    return np.asarray(dates if dates.tz is None else dates.tz_convert(None))


def label_time(axes: Axes, clock: Clock | None, *, name: bool = True) -> None:
    """Ticks and the label below an axis of time: numbers with their unit, or dates of the data's own zone.

    clock : None where rows are numbered
    name : whether the label is written too
    """
    if clock is not None and clock.origin is not None:
        from matplotlib import dates

        untyped: Any = dates
        locator = untyped.AutoDateLocator(minticks=3, maxticks=8, tz=clock.origin.tz)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator, tz=clock.origin.tz))
    if name:
        axes.set_xlabel("row" if clock is None else clock.label)


def labelled(name: str, unit: str) -> str:
    """Return ``phi [rad]``."""
    return f"{name} [{unit}]" if unit else name
