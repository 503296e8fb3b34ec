"""What a user gave to ``simulate`` as points of trials, with disturbances at zero."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.bound_experiment.dead_times import refuse_rough_past
from grisaille.errors import ModelError
from grisaille.experiment.piecewise_polynomials import split_signal
from grisaille.experiment.switching_times import refuse_moving_thresholds
from grisaille.simulation.point_directions import expanded_names, moving_point
from grisaille.simulation.simulation_arguments import (
    as_number,
    checked_breaks,
    checked_times,
    fixed_starts_of,
    refuse_driven,
)
from grisaille.simulation.vector_names import by_name, names_of, spread_over_elements
from grisaille.structure.starts.description import LARGE_DEVIATION, NOTABLE_DEVIATION, missed_sentence
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    from grisaille.model.classes import Model


class SimulationSetup:
    """A model with instants and inputs: posed at one set of numbers after another.

    What does not depend on the numbers is checked and made once, for each set of names that are given.
    """

    def __init__(
        self,
        model: Model,
        times: Sequence[float] | np.ndarray,
        inputs: Mapping[str, Any] | None,
        *,
        hold: Mapping[str, str] | str | None,
        breaks: Any = (),
    ) -> None:
        self.model, self.times = model, checked_times(times)
        self.structure = structure_of(model)
        self._given = {"inputs": inputs, "hold": hold, "breaks": breaks}
        self._signals: dict[str, Any] | None = None
        self._trials: dict[tuple[object, ...], BoundExperiment] = {}

    def pose(
        self,
        parameters: Mapping[str, float] | None,
        start: Mapping[str, float] | str | None,
        sensitivities: Sequence[object] = (),
    ) -> ExperimentPoint:
        """Return the point at these numbers, with derivatives by names."""
        flat = self.structure.model
        named = by_name(self.model, "parameters", parameters, spread_over_elements)
        constants, scales = split_scales(flat.name, flat.disturbances, named)
        signals = self.read()
        demands, steady = fixed_starts_of(self.structure, self.model, start)
        key = (steady, *constants, "and", *demands)
        if key not in self._trials:
            self._trials[key] = BoundExperiment(
                self.model, self.times, **signals, constants=constants, scales=scales, demands=demands, steady=steady
            )
        point = self._trials[key].with_values_of(constants, scales, demands).at()
        names, candidates = expanded_names(point.structure, names_of(self.model, "sensitivities", sensitivities))
        return _moving(point, names, candidates) if names else point

    def read(self, *, own: bool = False) -> dict[str, Any]:
        """Return inputs, holds and breaks as they are used; checked at the first call.

        own : copy what could be changed later
        """
        if self._signals is None:
            hold = self._given["hold"]
            signals = by_name(self.model, "inputs", self._given["inputs"], split_signal)
            refuse_driven(self.structure, self.model, signals)
            self._signals = {
                "inputs": {n: _copied(s) for n, s in signals.items()} if own else signals,
                "hold": by_name(self.model, "hold", hold, spread_over_elements) if hasattr(hold, "items") else hold,
                "breaks": checked_breaks(self._given["breaks"], self.times),
            }
        return self._signals


def _copied(signal: object) -> object:
    if isinstance(signal, list | tuple):
        return type(signal)(_copied(part) for part in signal)
    return signal.copy() if hasattr(signal, "copy") and not callable(signal) else signal


def _moving(point: ExperimentPoint, names: list[str], candidates: list[str]) -> ExperimentPoint:
    moving = moving_point(point, names, candidates)
    places = moving.trial.moves.places("parameter")
    refuse_moving_thresholds(moving.structure, moving.dp[places], moving.trial.moves.targets("parameter"))
    moving.refuse_moving_jumps()
    refuse_rough_past(moving)
    return moving


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
) -> ExperimentPoint:
    """Return one point; every check of what a user gave, except the method's own options."""
    return SimulationSetup(model, times, inputs, hold=hold, breaks=breaks).pose(parameters, start, sensitivities)


def split_scales(
    label: str, disturbances: Mapping[str, object], given: Mapping[str, float]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return parameters and scales of disturbances, distinguished by their names."""
    named = {n: n[6:-1] for n in given if n.startswith("scale(") and n.endswith(")")}
    for name, inner in named.items():
        if inner not in disturbances:
            hint = f"Its disturbances: {', '.join(disturbances) or 'none'}."
            raise ModelError(f"parameters= names '{name}', but {label} has no disturbance '{inner}'. {hint}")
    scales = {inner: as_number(name, given[name]) for name, inner in named.items()}
    return {n: v for n, v in given.items() if n not in named}, scales


def missed_starts(point: ExperimentPoint, least: float = NOTABLE_DEVIATION) -> str:
    """Return which declared starts are not met, in words; a steady state takes their place."""
    return "" if point.trial.steady else missed_sentence(point.start, least)


def unmet_starts(point: ExperimentPoint) -> str:
    """Return which declared starts are not met because the equations do not allow it, and what to do, in words.

    Empty where they are met to the few digits that they were written with, and where starts are guesses: beside
    demanded ones, beside initial equations or in Modelica.
    """
    are_guesses = (
        bool(point.demands) or bool(point.structure.model.initial) or point.trial.model._content.starts_are_guesses
    )
    missed = "" if are_guesses else missed_starts(point, LARGE_DEVIATION)
    if not missed:
        return ""
    return (
        f"{missed}. The equations do not allow all of them at once: declare fewer, with values that fit together; "
        f"with fixed=True a start is met or refused."
    )


def warn_of_missed_starts(point: ExperimentPoint) -> None:
    """Warn where declared starts are not met; other starts are in the status."""
    unmet = unmet_starts(point)
    if unmet:
        warnings.warn(f"{point.structure.model.name}: {unmet}", UserWarning, stacklevel=5)
