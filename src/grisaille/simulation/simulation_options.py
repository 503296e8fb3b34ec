"""The options of ``gr.simulate`` by name, for callers that pass them on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np


class SimulationOptions(TypedDict, total=False):
    """What ``gr.simulate`` takes beside model, times and inputs."""

    parameters: Mapping[str, float] | None
    start: Mapping[str, float] | str | None
    hold: Mapping[str, str] | str | None
    breaks: Sequence[float] | np.ndarray
    sensitivities: Sequence[object]
    rtol: float
    atol: float | Mapping[str, float] | None
    method: str
    step: float | None
    max_step: float | None
    max_steps: int | None
    compiled: bool | None
    strict: bool
    progress: bool
    realizations: int | None
    seed: int
    reduce: object
    antithetic: bool
    between: str
    noise: bool
    threads: int | None
    device: str
