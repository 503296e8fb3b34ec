"""Options of splines: which are refused for any model, and which trajectories their names stand for.

A name is that of a state, or of a variable equal to it; a vector or a disturbance by its name stands for all its
states. The states of a disturbance are those of its filter: w = C x_w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.collocation.quadrature import refuse_quadrature
from grisaille.collocation.splines import refuse_order
from grisaille.disturbance.stochastic_model import StochasticModel, plant_states
from grisaille.errors import EstimationError
from grisaille.model.names import suggestion

MAX_LISTED_STATES = 8
"""States that a message lists; of more it gives the nearest."""


@dataclass(frozen=True)
class SplineOptions:
    """See ``gr.Collocation``."""

    order: Any = 4
    knots: Any = "auto"
    kinks: str = "inputs"
    """Where slopes may jump: where inputs step, or at ``"observations"`` too."""
    quadrature: str | int = "gauss"
    trajectories: Any = None
    """Where states start: ``{state: number | (times, values)}``."""


def refuse_spline_options(order: int, knots: Any, quadrature: str, trajectories: Any) -> None:
    """Check orders, knots, Gauss points and starting trajectories, each for all states or ``{state: …}``."""
    for value in order.values() if isinstance(order, Mapping) else [order]:
        refuse_order(value)
    for label, value in _named("knots", knots).items():
        _refuse_knots(label, value)
    refuse_quadrature(quadrature)
    if trajectories is not None and not isinstance(trajectories, Mapping):
        raise EstimationError(
            f"trajectories is {_short(trajectories)}; give them by state: trajectories={{'x': (times, values)}}."
        )
    for name, value in (trajectories or {}).items():
        _refuse_path(name, value)


def refuse_limits(tolerance: Any, max_iterations: Any) -> None:
    """Check the options by which a search stops."""
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


def _named(option: str, given: Any) -> dict[str, Any]:
    return {f"{option}['{n}']": v for n, v in given.items()} if isinstance(given, Mapping) else {option: given}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _refuse_path(name: str, value: Any) -> None:
    """Refuse a trajectory that is neither a finite number nor increasing times with as many values."""
    problem = _fault(value)
    if problem:
        raise EstimationError(
            f"trajectories['{name}'] {problem}; give a number, or (times, values) with one value for every time."
        )


def _fault(value: Any) -> str:
    paired = isinstance(value, tuple | list) and len(value) == 2
    try:
        t, x = (np.atleast_1d(np.asarray(part, dtype=float)) for part in (value if paired else (0.0, value)))
    except (TypeError, ValueError):
        return f"is {value!r}, which are not numbers" if paired else f"is {value!r}, which is not a number"
    if t.ndim != 1 or t.shape != x.shape:
        return f"has {t.size} times for {x.size} values" if paired else f"has {x.size} values and no times"
    if not (np.isfinite(t).all() and np.isfinite(x).all()):
        return "holds something that is not a finite number"
    return "" if (np.diff(t) > 0).all() else "has times that do not increase"


def states_named(model: StochasticModel, name: str, option: str) -> list[int]:
    """Return the places of the states that a name stands for."""
    if name in model.names:
        return [model.names.index(name)]
    merged = plant_states(model)
    if name in merged:
        return [merged[name]]
    found = [k for k, state in enumerate(model.names) if state.startswith(f"{name}[")]
    if not found:
        raise EstimationError(_refusal(model, name, option))
    return found


def by_state(model: StochasticModel, given: Any, option: str, default: Any) -> tuple[Any, ...]:
    """Return an option for every state: one for all, or ``{name: …}`` with a default for those that are not named."""
    if not isinstance(given, Mapping):
        return (given,) * model.n
    chosen = [default] * model.n
    # what names fewer states is meant more exactly, and comes last
    named = {name: states_named(model, name, option) for name in given}
    _refuse_contradictions(given, named, option)
    for name in sorted(named, key=lambda n: -len(named[n])):
        for k in named[name]:
            chosen[k] = given[name]
    return tuple(chosen)


def _refuse_contradictions(given: Mapping[str, Any], named: Mapping[str, list[int]], option: str) -> None:
    """Refuse two names of one state, merged because the equations make them equal, with different options."""
    first: dict[tuple[int, ...], str] = {}
    for name, places in named.items():
        other = first.setdefault(tuple(places), name)
        if repr(given[other]) != repr(given[name]):
            raise EstimationError(
                f"{option}= gives '{other}' {given[other]!r} and '{name}' {given[name]!r}, but the equations make them "
                f"the same state: name one of them."
            )


def known_names(model: StochasticModel) -> list[str]:
    """Return states as a user calls them: those of a disturbance by its name."""
    own = list(model.names[: model.nx])
    return [*own, *dict.fromkeys(state.rpartition("[")[0] for state in model.names[model.nx :])]


def _refusal(model: StochasticModel, name: str, option: str) -> str:
    flat, states = model.structure.model, known_names(model)
    what = "which is not a state"
    if name in flat.disturbances:
        what = "a disturbance that is white noise and has no trajectory"
    elif name in model.observed_names:
        what = "which is a formula of the states and has no trajectory of its own"
    elif name in model.quantities:
        what = "which is a parameter"
    return (
        f"{option}= names '{name}', {what}. "
        + (f"The states of {flat.name} are {', '.join(states)}." if len(states) <= MAX_LISTED_STATES
        else suggestion(name, states))
    )  # fmt: skip
