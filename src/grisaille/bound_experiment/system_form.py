"""A structure of the model with what is made of it once: initializer, divisors, signals, starts that can be read off.

A model has one form, unless a divisor of its tearing vanishes at some values: there another form takes its place.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grisaille.cache import Cache
from grisaille.compilation.casadi_evaluation import Evaluation, numpy_vector
from grisaille.experiment.piecewise_polynomials import PiecewisePolynomial, SignalTable
from grisaille.structure.delays.moving_breaks import on_standing_steps
from grisaille.structure.elimination_growth import growing_pivots
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.initialization import ConsistentStart, Initializer, StartSensitivity

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FormSignals:
    """The table of u, and the formulas of time that switch."""

    table: SignalTable
    switches: Mapping[str, PiecewisePolynomial]


class SystemForm:
    """One structure."""

    def __init__(self, structure: Structure, p: Floats | None = None) -> None:
        self.structure = structure
        self._judged = None if p is None else np.array(p)
        """Parameters at which rounding is known not to grow in its formulas."""
        self.initializer = Initializer(structure)
        self.start, self.start_slopes = Cache[ConsistentStart](1), Cache[StartSensitivity](1)
        """Those of the last θ: they are the same at others that do not move what they depend on."""
        self._needed = Cache[NDArray[np.int64]](1)
        self.kept: tuple[bytes, FormSignals] | None = None
        """Signals, and the parameters they were made at (empty where they do not depend on them)."""

    def with_structure(self, structure: Structure, initializer: Initializer) -> SystemForm:
        """Return the same signals with other equations."""
        other = copy.copy(self)
        other.structure, other.initializer = structure, initializer
        other.start, other.start_slopes, other._needed = Cache(1), Cache(1), Cache(1)
        other.__dict__.pop("standing", None)
        return other

    def start_parameters(self, demanded: Collection[str], steady: bool) -> NDArray[np.int64]:
        """Return the indices of the parameters that a consistent start depends on, where these names have fixed
        starts.
        """

        def find() -> NDArray[np.int64]:
            return self.initializer.parameters_of_starts({*self.initializer.declared.names, *demanded}, steady=steady)

        return self._needed.get((*demanded, steady), find)

    @cached_property
    def _pivots(self) -> Evaluation:
        return numpy_vector(self.structure.system.pivot_function)

    def holds(self, p: Floats) -> bool:
        """Return whether no divisor vanishes at these parameter values; not asked where there are none."""
        values = self._pivots(p)
        return bool(np.isfinite(values).all() and values.all())

    def suits(self, p: Floats) -> bool:
        """Return whether no divisor vanishes at these parameter values, and rounding does not grow in the formulas; the
        latter is asked again where a value has moved by more than a power of ten.
        """
        if not self.structure.depends_on_values:
            return True
        if self.structure.system.has.divisors and not self.holds(p):
            return False
        if self._judged is not None and _is_within_ten(p, self._judged):
            return True
        if growing_pivots(self.structure, p):
            return False
        self._judged = np.array(p)
        return True

    @cached_property
    def standing(self) -> SystemForm:
        """Return the form for steps that do not follow moving breaks; itself where there are none."""
        moving = self.structure.system.moving
        if moving is None or not moving.follows:
            return self
        structure = on_standing_steps(self.structure)
        return self.with_structure(structure, Initializer(structure))

    @cached_property
    def tau_slopes(self) -> Evaluation:
        """Values of parameters → derivatives of the dead times by parameters, one parameter after the other."""
        return numpy_vector(self.structure.system.dead_time_slopes)

    @cached_property
    def taus(self) -> Evaluation:
        """Values of parameters → the dead time of each delayed signal."""
        return numpy_vector(self.structure.system.dead_times)


def _is_within_ten(p: Floats, other: Floats) -> bool:
    """Return whether every value has kept its sign, and its size but for a power of ten."""
    low, high = np.minimum(0.1 * other, 10.0 * other), np.maximum(0.1 * other, 10.0 * other)
    return bool(((low <= p) & (p <= high)).all())
