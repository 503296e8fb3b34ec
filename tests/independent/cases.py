"""What an independent case consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import grisaille as gr


@dataclass(frozen=True)
class Case:
    """A model, and its trajectories by other code.

    exact : at the given times, by variable; None where the equations have no solution at some instant
    margin : largest error allowed, relative to the largest size of each variable; at rtol = 1e-8
    implicit_margin, frozen_margin : the same for the implicit method and for frozen steps, which do not end where a
        relation of states switches
    words : of which one occurs in every refusal: the relation or the equation concerned
    refused : methods that may refuse by such words; the others have to agree
    """

    model: Callable[[], gr.Model]
    times: np.ndarray
    exact: Callable[[np.ndarray], dict[str, np.ndarray]] | None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    margin: float = 1e-6
    implicit_margin: float = 1e-6
    frozen_margin: float = 1e-5
    words: tuple[str, ...] = ()
    refused: frozenset[str] = frozenset()
