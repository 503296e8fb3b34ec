"""The last settings of ``simulate``, so that the same model, times and inputs are not prepared again.

A setting is found again by its content: that of the model, and the numbers of times and inputs bit by bit. Functions
may answer otherwise the next time, so that settings with functions are not kept; nor are very long ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.cache import Cache
from grisaille.model.classes import Model, content_key
from grisaille.model.flattening.flatten import flatten
from grisaille.simulation.posing import SimulationSetup
from grisaille.simulation.simulation_runs import IntegratorOptions, SimulationRuns

if TYPE_CHECKING:
    pass

MAX_KEPT_NUMBERS = 1_000_000
"""Numbers in what is given, above which a setting is not kept."""
_known: Cache[SimulationRuns] = Cache(8)


def cached_runs(
    model: Model, times: Any, inputs: Any, hold: Any, breaks: Any, solver: IntegratorOptions, sensitivities: Any
) -> SimulationRuns:
    """Return runs of this setting; those of an equal one where it was among the last."""

    def make() -> SimulationRuns:
        return SimulationRuns(SimulationSetup(model, times, inputs, hold=hold, breaks=breaks), solver, sensitivities)

    parts = (times, inputs, hold, breaks, solver.__dict__, sensitivities)
    key = tuple(_content(part) for part in parts)
    if not isinstance(model, Model) or any(k is None for k in key):
        return make()
    flatten(model)  # refuses what cannot be read
    return _known.get((content_key(model), *key), make)


def _content(given: Any) -> Hashable | None:
    """Return a key that is equal for equal settings, bit by bit; None where there is no such key."""
    if given is None or isinstance(given, str | bool | int):
        return (type(given), given)
    if isinstance(given, float):
        return given.hex()  # 0.0 and -0.0 are two
    if isinstance(given, np.ndarray):
        kept = given.dtype.kind in "fiub" and given.size <= MAX_KEPT_NUMBERS
        return (given.dtype.str, given.shape, given.tobytes()) if kept else None
    if isinstance(given, Mapping) and all(isinstance(k, str) for k in given):
        parts = [_content(v) for v in given.values()]
        return None if None in parts else ("by name", tuple(given), tuple(parts))
    if isinstance(given, list | tuple) and len(given) <= MAX_KEPT_NUMBERS:
        parts = [_content(v) for v in given]
        return None if None in parts else (type(given), tuple(parts))
    return None
