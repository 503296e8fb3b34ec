"""Options of collocation that cannot be right, whatever the model: refused when they are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grisaille.collocation.quadrature import KINDS
from grisaille.collocation.splines import refuse_order
from grisaille.collocation.starting import refuse_path
from grisaille.errors import EstimationError

MOST_POINTS = 20


def refuse_spline_options(order: Any, knots: Any, quadrature: Any, trajectories: Any) -> None:
    """Orders, knots, Gauss points and starting trajectories, each for all states or ``{state: …}``."""
    for value in order.values() if isinstance(order, Mapping) else [order]:
        refuse_order(value)
    for label, value in _named("knots", knots).items():
        _refuse_knots(label, value)
    _refuse_quadrature(quadrature)
    if trajectories is not None and not isinstance(trajectories, Mapping):
        raise EstimationError(
            f"trajectories is {_short(trajectories)}; give them by state: trajectories={{'x': (times, values)}}."
        )
    for name, value in (trajectories or {}).items():
        refuse_path(name, value)


def refuse_limits(tolerance: Any, max_iterations: Any) -> None:
    """When a search stops."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance < 1:
        raise EstimationError(f"tolerance is {tolerance!r}; give a small positive number, such as 1e-11.")
    if not _is_whole(max_iterations) or max_iterations < 1:
        raise EstimationError(f"max_iterations is {max_iterations!r}; give a whole number from 1, such as 300.")


def _refuse_knots(label: str, value: Any) -> None:
    ways = "give 'auto', a whole number of knots, or their times"
    if isinstance(value, str):
        if value != "auto":
            raise EstimationError(f"{label} is {value!r}; {ways}.")
        return
    if not isinstance(value, list | tuple) and np.ndim(value) == 0:
        if not _is_whole(value):
            raise EstimationError(f"{label} is {value!r}; {ways}.")
        if value < 2:
            raise EstimationError(f"{label} is {value}; at least the two ends are needed.")
        return
    try:
        times = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        times = np.full(1, np.nan)
    if times.ndim != 1 or not times.size or not np.isfinite(times).all():
        raise EstimationError(f"{label} is {_short(value)}, which are not times; {ways}.")


def _refuse_quadrature(value: Any) -> None:
    if value in KINDS if isinstance(value, str) else (_is_whole(value) and 1 <= value <= MOST_POINTS):
        return
    raise EstimationError(
        f"quadrature is {value!r}; it must be one of {', '.join(map(repr, KINDS))}, or a number of Gauss points from 1 "
        f"to {MOST_POINTS}."
    )


def _named(option: str, given: Any) -> dict[str, Any]:
    return {f"{option}['{n}']": v for n, v in given.items()} if isinstance(given, Mapping) else {option: given}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
