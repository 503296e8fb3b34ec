"""What an ensemble is asked for."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grisaille.bound_experiment import ExperimentPoint
from grisaille.disturbance import Purpose
from grisaille.errors import DataError
from grisaille.simulation.ensembles.devices import check_device
from grisaille.simulation.ensembles.ensemble_methods import AUTO, FUSED, GENERAL, METHODS, WHITE, EnsembleMethod
from grisaille.simulation.ensembles.reducers import make_reducers
from grisaille.simulation.simulation_arguments import as_positive

Floats = NDArray[np.float64]
BETWEEN_CHOICES = ("linear", "spline", "exact")


@dataclass(frozen=True)
class EnsembleOptions:
    """How an ensemble is made; see ``simulate`` for what the options mean."""

    realizations: int
    seed: int = 0
    purpose: Purpose = Purpose.DATA
    first: int = 0
    """Number of the first realization: others than those of an earlier ensemble have no random number in common."""
    reduce: Any = None
    antithetic: bool = False
    between: str = "linear"
    step: float | None = None
    substeps: int | None = None
    """Steps per cell; found by a pilot when not given."""
    inner_step: float | None = None
    """Of models that stay implicit, or are stiff; found with the first realization when not given."""
    rtol: float = 1e-6
    enough_across_jumps: float = 0.0
    """Relative error of a path that will do where steps cross jumps of the equations and cannot meet ``rtol``."""
    method: str = AUTO.name
    threads: int | None = None
    strict: bool = True
    """Refuse statistics that the steps get wrong by more than ``TOO_FAR`` tolerances."""
    observed: tuple[str, ...] | None = None
    """Names to keep or reduce; everything that has a value when not given."""
    effort: int = 0
    """How hard algebraic unknowns are solved under white noise, at least (``carried``)."""
    start_covariance: Floats | None = None
    """(nx, nx) of the states at the start, tangent to hidden constraints; none when not given."""
    device: str = "cpu"
    """Where realizations run; pilots always run on the processor."""
    may_reduce: bool = False
    """Whether who asks can ask for statistics instead: what is advised where trajectories do not fit into memory."""

    @property
    def made(self) -> EnsembleMethod:
        return METHODS[self.method]


def check_options(options: EnsembleOptions) -> None:
    """Refuse options that no ensemble can be made with."""
    count = options.realizations
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise DataError(f"realizations is {count!r}; give a whole number above zero, or None for no disturbances.")
    check_device(options.device)
    if options.between not in BETWEEN_CHOICES:
        raise DataError(f"between is {options.between!r}; it must be one of {', '.join(map(repr, BETWEEN_CHOICES))}.")
    if options.method not in METHODS:
        raise DataError(
            f"method is {options.method!r}; realizations are made with fixed steps: {', '.join(map(repr, GENERAL))}; "
            f"with white noise also {', '.join(map(repr, WHITE))}."
        )
    as_positive("rtol", options.rtol, "a number between 0 and 1, such as 1e-6")
    if options.step is not None:
        as_positive("step", options.step)
    if options.threads is not None:
        as_positive("threads", options.threads, "a whole number above zero")
    make_reducers(copy.deepcopy(options.reduce) if options.reduce is not None else [])


def for_device(posed: ExperimentPoint, options: EnsembleOptions) -> EnsembleOptions:
    """Return the options for a graphics processor, which solves implicit unknowns inside its steps."""
    is_implicit = posed.structure.system.nz and not any(
        d.spectrum.is_white for d in posed.structure.model.disturbances.values()
    )
    wanted = options.device.startswith("cuda") and options.made.is_open and options.inner_step is None
    return replace(options, method=FUSED.name) if wanted and is_implicit else options
