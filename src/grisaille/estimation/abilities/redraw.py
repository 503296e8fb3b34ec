"""What a bootstrap draws again from a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Redraw:
    """Redraw records: ``"noise"`` around the predictions, or ``"model"``: starts, disturbances and noise from a filter.

    refused : kinds of bootstrap, ``"parametric"`` or ``"residual"``, that would not draw what the fit takes for true,
        with the sentence that says why and what to do instead
    """

    words: ClassVar[str] = "Records that a bootstrap draws again"
    instead: ClassVar[str] = "draw disturbances and noise by gr.monte_carlo(fit.model, fit.experiments, …)"

    what: Literal["noise", "model"]
    refused: Mapping[str, str] = field(default_factory=dict)
