"""One free number of an estimation: what it is, where it may be, and on which scale it is searched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from grisaille.trial.movement import Kind

FAR = 100.0
"""Standard errors that an unknown without a magnitude may be away from its guess."""


@dataclass(frozen=True)
class Unknown:
    """One free number."""

    name: str
    """As in tables: ``"k"``, ``"k@A"``, ``"start(x)@A"``."""
    kind: Kind
    target: str
    """The parameter, the variable, the disturbance or the output."""
    experiment: str | None
    """None: shared by all experiments."""
    guess: float
    lower: float = -np.inf
    upper: float = np.inf
    logarithmic: bool = False
    unit: str = ""
    prior: Any = None
    logit: bool = False
    """Searched by log((θ − lower)/(upper − θ)): a bound is never reached."""
    reach: float = 0.0
    """The standard error that the data at the first guess would leave to it alone; 0 before that is known."""

    @property
    def size(self) -> float:
        """A typical magnitude, for scaling: the guess, unless it is zero or less than what the data leave open.

        Then curvature and bounds tell it; one where nothing does.
        """
        if self.guess != 0 and abs(self.guess) >= self.reach:
            return abs(self.guess)
        span = self.upper - self.lower
        if self.reach:
            return min(FAR * self.reach, span / 4)
        return span / 4 if np.isfinite(span) else 1.0

    def inner(self, value: float) -> float:
        """ξ of a value."""
        if self.logit:
            return float(np.log((value - self.lower) / (self.upper - value)))
        return float(np.log(value)) if self.logarithmic else value / self.size

    def outer(self, xi: float) -> float:
        """The value of ξ."""
        if self.logit:
            return self.lower + (self.upper - self.lower) * (0.5 + 0.5 * float(np.tanh(xi / 2)))
        return float(np.exp(xi)) if self.logarithmic else xi * self.size

    def slope(self, value: float) -> float:
        """d value / dξ."""
        if self.logit:
            return (value - self.lower) * (self.upper - value) / (self.upper - self.lower)
        return value if self.logarithmic else self.size

    @property
    def local_name(self) -> str:
        """What it is called inside its experiment: ``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        return self.target if self.kind == "parameter" else f"{self.kind}({self.target})"

    def applies_to(self, experiment: str) -> bool:
        return self.experiment is None or self.experiment == experiment
