"""The content of an experiment: what :class:`Experiment` shows and every operation on it reads."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

import numpy as np

from grisaille.experiment.sampled_signals import SampledSignal, Signal
from grisaille.experiment.times.clock import Clock

Start = float | None | Any
"""A number: known. None: unknown. A prior: unknown, but believed to be near."""


ALL_STATES = "*"
"""Among starts: all states, ``{"*": None}``."""


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentContent:
    """Checked content; arrays cannot be written to."""

    name: str | None
    is_static: bool
    """Rows are independent samples; times are row numbers."""
    inputs: Mapping[str, Signal]
    """A number, or ``(times, values)``."""
    outputs: Mapping[str, SampledSignal]
    """``(times, values)`` of each output, with NaN where it was not measured."""
    hold: Mapping[str, str]
    """``"zoh"``, ``"foh"`` or ``"spline"`` for each input."""
    constants: Mapping[str, float]
    """Values of parameters in this run."""
    start: Mapping[str, Start]
    """Variables at ``t0``: a number (known), None (unknown) or a prior (unknown, believed to be near)."""
    t0: float | None
    """When the start holds; None for static experiments."""
    weights: Mapping[str, float | np.ndarray]
    """Factor of the residuals of each output: a number, or one per sample."""
    skip: int
    """How many first samples of each output are not compared with the model."""
    units: Mapping[str, str]
    """Units of signals, as far as they were given."""
    clock: Clock
    """Unit of time, and the date of time zero when times were given as dates."""
    marks: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    """Of outputs with samples that are known by a limit alone: −1 at or below the value, 1 at or above, 0 measured."""


def content(record: ExperimentContent) -> dict[str, Any]:
    """Return the fields as plain dicts and arrays, to be copied or packed."""
    values = {f.name: getattr(record, f.name) for f in fields(ExperimentContent)}
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}


def compared_rows(record: ExperimentContent, output: str) -> np.ndarray:
    """Return the rows of an output that are compared with a model: measured, not skipped, of a weight above zero."""
    values = record.outputs[output].values
    weights = np.broadcast_to(record.weights[output], values.shape)
    compared = np.isfinite(values) & (weights > 0)
    return np.asarray(np.flatnonzero(compared[record.skip :]) + record.skip)


def digest(record: ExperimentContent) -> str:
    """Return SHA-256 of the content; the order in which signals were given does not matter, every NaN counts the
    same.
    """
    sha = hashlib.sha256()

    def add(value: object) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                add(key)
                add(value[key])
            add("}")
        elif isinstance(value, SampledSignal):
            add(value.times)
            add(value.values)
        elif isinstance(value, np.ndarray):
            sha.update(f"{value.shape}".encode())
            sha.update(np.where(np.isnan(value), np.nan, value + 0.0).tobytes())
        else:
            sha.update(f"{type(value).__name__}:{value!r};".encode())

    add({k: v for k, v in content(record).items() if k != "marks" or v})
    return sha.hexdigest()
