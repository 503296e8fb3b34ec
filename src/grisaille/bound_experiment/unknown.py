"""One free number of an estimation: what it is, where it may be, and on which scale it is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grisaille.bound_experiment.estimated_quantities import Kind

MAX_STANDARD_ERRORS = 100.0
"""Standard errors that an unknown without a magnitude may be away from its guess."""
MAX_NAMED = 12
"""Unknowns whose values a sentence about a point gives."""


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
    is_reached: bool = False
    """Whether ``guess`` is a value that a search came to, not the one that the fit began with."""

    def starting_from(self, value: float) -> Unknown:
        """Return the same unknown for a search from another value."""
        return replace(self, guess=float(value), is_reached=self.is_reached or float(value) != self.guess)

    @property
    def size(self) -> float:
        """Return a typical magnitude, for scaling: the guess, unless it is zero or less than what the data leave open.

        Then curvature and bounds tell it; one where nothing does.
        """
        if self.guess != 0 and abs(self.guess) >= self.reach:
            return abs(self.guess)
        span = self.upper - self.lower
        if self.reach:
            return min(MAX_STANDARD_ERRORS * self.reach, span / 4)
        return span / 4 if np.isfinite(span) and span > 0 else 1.0

    def inner(self, value: float) -> float:
        """Return ξ of a value."""
        if self.logit:
            return float(np.log((value - self.lower) / (self.upper - value)))
        return float(np.log(value)) if self.logarithmic else value / self.size

    def outer(self, xi: float) -> float:
        """Return the value of ξ."""
        if self.logit:
            return self.lower + (self.upper - self.lower) * (0.5 + 0.5 * float(np.tanh(xi / 2)))
        return float(np.exp(xi)) if self.logarithmic else xi * self.size

    def slope(self, value: float) -> float:
        """Return d value / dξ."""
        if self.logit:
            return (value - self.lower) * (self.upper - value) / (self.upper - self.lower)
        return value if self.logarithmic else self.size

    @property
    def local_name(self) -> str:
        """Return what it is called inside its experiment: ``"k"``, ``"scale(w)"``, ``"noise(y)"``, ``"start(x)"``."""
        return self.target if self.kind == "parameter" else f"{self.kind}({self.target})"

    def applies_to(self, experiment: str) -> bool:
        return self.experiment is None or self.experiment == experiment


def describe_start(unknowns: Sequence[Unknown]) -> str:
    """Say where a search starts: "the guess (k = 1)" where the fit began, "a point of the search (k = 2)" elsewhere."""
    place = "a point of the search" if any(u.is_reached for u in unknowns) else "the guess"
    return f"{place} ({describe_values([u.name for u in unknowns], [u.guess for u in unknowns])})"


def describe_values(names: Sequence[str], values: Sequence[float]) -> str:
    """Write names with their values: "k = 1, scale(w) = 30"."""
    said = [f"{n} = {v:g}" for n, v in zip(names[:MAX_NAMED], values, strict=False)]
    more = [f"{len(names) - MAX_NAMED} others"] if len(names) > MAX_NAMED else []
    return ", ".join([*said, *more])
