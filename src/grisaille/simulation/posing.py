"""What a user gave to ``simulate`` as a point of a trial, with disturbances at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.experiment.interpolation import split_signal
from grisaille.experiment.switching import refuse_moving_thresholds
from grisaille.simulation.arguments import as_number, checked_breaks, checked_times, demanded_starts, refuse_driven
from grisaille.simulation.directions import expanded_names, moving_point
from grisaille.simulation.naming import by_name, deal, names_of
from grisaille.structure.prepared import structure_of
from grisaille.trial import Point, Trial

if TYPE_CHECKING:
    from grisaille.model.classes import Model


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
) -> Point:
    """Every check of what a user gave, except the method's own options."""
    at = checked_times(times)
    structure = structure_of(model)
    flat = structure.model
    given, scales = split_scales(flat.name, flat.disturbances, by_name(model, "parameters", parameters, deal))
    signals = by_name(model, "inputs", inputs, split_signal)
    refuse_driven(structure, model, signals)
    hold = by_name(model, "hold", hold, deal) if hasattr(hold, "items") else hold
    demands, steady = demanded_starts(structure, model, start)
    trial = Trial(
        model, at, inputs=signals, hold=hold, constants=given, scales=scales, demands=demands, steady=steady,
        breaks=checked_breaks(breaks, at),
    )  # fmt: skip
    point = trial.at()
    names, candidates = expanded_names(point.structure, names_of(model, "sensitivities", sensitivities))
    if names:
        point = moving_point(point, names, candidates)
        places = point.trial.moves.places("parameter")
        refuse_moving_thresholds(point.structure, point.dp[places], point.trial.moves.targets("parameter"))
        point.refuse_moving_jumps()
    return point


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
