"""A run posed: structure, values, signals and a consistent start, with disturbances at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.experiment.interpolation import SignalTable, make_table, split_signal
from grisaille.experiment.switching import (
    find_switches,
    refuse_jumps,
    refuse_moving_jumps,
    refuse_moving_thresholds,
)
from grisaille.simulation.arguments import as_number, checked_breaks, checked_times, demanded_starts, refuse_driven
from grisaille.simulation.directions import Directions, resolve_directions
from grisaille.simulation.naming import by_name, deal, names_of
from grisaille.structure.initialization import Initializer, Start
from grisaille.structure.parameters import ParameterValues, evaluate_parameters
from grisaille.structure.prepared import structure_of
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.model.classes import Model


@dataclass(frozen=True)
class Posed:
    """What a run knows before it has a method."""

    times: np.ndarray
    structure: Structure
    values: ParameterValues
    scales: dict[str, float]
    """Disturbance → scale given instead of the declared one."""
    table: SignalTable
    initializer: Initializer
    demands: dict[str, float]
    steady: bool
    start: Start
    u: np.ndarray
    """Signals at the first instant."""
    directions: Directions

    @property
    def known(self) -> dict[str, float]:
        """Every parameter by name."""
        return dict(zip(self.values.names, self.values.values.tolist(), strict=True))


def pose(
    model: Model,
    times: Sequence[float] | np.ndarray,
    inputs: Mapping[str, Any] | None,
    parameters: Mapping[str, float] | None,
    start: Mapping[str, float] | str | None,
    *,
    hold: Mapping[str, str] | str | None,
    sensitivities: Sequence[object],
    breaks: Any = (),
) -> Posed:
    """Every check of what a user gave, except the method's own options."""
    at = checked_times(times)
    flat = structure_of(model).model
    given, scales = split_scales(flat.name, flat.disturbances, by_name(model, "parameters", parameters, deal))
    values = evaluate_parameters(flat, given)
    structure = structure_of(model, values.values)
    system = structure.system
    defaults = {n: i.default for n, i in flat.inputs.items()}
    signals = by_name(model, "inputs", inputs, split_signal)
    refuse_driven(structure, model, signals)
    hold = by_name(model, "hold", hold, deal) if hasattr(hold, "items") else hold
    switches, bends = find_switches(system, values.values, at)
    refuse_jumps(system, switches, values.values)
    bends = np.union1d(bends, checked_breaks(breaks, at))
    table = make_table(system.signals, signals, hold, at, defaults, switches, bends)
    initializer = Initializer(structure)
    demands, steady = demanded_starts(structure, model, start)
    directions = resolve_directions(structure, values, names_of(model, "sensitivities", sensitivities))
    u = table.at(float(at[0]))
    found = initializer.solve(float(at[0]), u, values.values, demands, steady=steady)
    if directions.candidates:
        free = initializer.independent(float(at[0]), u, values.values, found, list(directions.starts))
        directions = directions.without([n for n in directions.candidates if n not in free])
    refuse_moving_thresholds(structure, directions.parameters, directions.names[: len(directions.parameters)])
    if switches and directions.names:
        w = np.concatenate([found.x, found.z])
        refuse_moving_jumps(system, switches, values.values, directions.parameters, directions.names, w)
    # differentiating by a start makes it a demand, at the value it has
    now = initializer.observe(float(at[0]), found, u, values.values) if directions.starts else {}
    demands = {**{n: now[n] for n in directions.starts}, **demands}
    return Posed(at, structure, values, scales, table, initializer, demands, steady, found, u, directions)


def split_scales(
    label: str, disturbances: Mapping[str, object], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Parameters and scales of disturbances, told apart by their names."""
    named = {n: n[6:-1] for n in given if n.startswith("scale(") and n.endswith(")")}
    for name, inner in named.items():
        if inner not in disturbances:
            hint = f"Its disturbances: {', '.join(disturbances) or 'none'}."
            raise ModelError(f"parameters= names '{name}', but {label} has no disturbance '{inner}'. {hint}")
    scales = {inner: as_number(name, given[name]) for name, inner in named.items()}
    return {n: v for n, v in given.items() if n not in named}, scales
