"""Starts that can be read off: those of models without implicit equations, hidden constraints or initial equations.

    x_k(t₀) = demanded value, or the declared formula of the parameters (and of demanded starts), or zero

Nothing has to be solved; x₀ and its derivatives by θ are formulas, evaluated in microseconds. The consistent start of
every other model comes from ``starts.initialization``, at many times the cost; a search that simulates in a tenth of
a millisecond feels it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.compilation.casadi_evaluation import flat_function
from grisaille.structure.starts.initialization import Initializer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StartSymbols:
    """What a trial's numbers are formulas of."""

    theta: ca.SX
    given: ca.SX
    """Constants, then demanded starts."""
    p: ca.SX
    """All parameters, as formulas of both."""
    demands: dict[str, ca.SX]
    """Demanded starts that do not move."""


class ExplicitStart:
    """θ and what is given → x₀ and its derivatives by θ."""

    def __init__(self, initializer: Initializer, symbols: StartSymbols, demands: Mapping[str, ca.SX]) -> None:
        self.count = symbols.theta.numel()
        x = _formulas(initializer, symbols.p, demands)
        slopes = ca.densify(ca.jacobian(x, symbols.theta))
        self._function = flat_function(ca.Function("start", [symbols.theta, symbols.given], [x, slopes]))

    def at(self, theta: Floats, given: Floats) -> tuple[Floats, Floats]:
        """Return (nx,) and (ns, nx)."""
        x, slopes = self._function(theta, given)
        return x, slopes.reshape(self.count, len(x))


def start_is_explicit(initializer: Initializer, demanded: frozenset[str]) -> bool:
    """Return whether nothing ties the states, and nothing but a state has a start that competes with theirs."""
    system, declared = initializer.system, initializer.declared
    states = set(system.state_names)
    fixed = {n for n, f in zip(declared.names, declared.fixed, strict=True) if f}
    if system.nz or system.nc or system.initial_texts or not (fixed | demanded) <= states:
        return False
    return _others_are_algebraic(initializer, states)


def _others_are_algebraic(initializer: Initializer, states: set[str]) -> bool:
    """Return whether no declared start besides those of the states competes with them (``v == der(x)``, merged
    names).
    """
    structure = initializer.structure
    equations = structure.equations
    for name in set(initializer.declared.names) - states:
        root = equations.aliases.get(name, name).lstrip("-")
        if structure.order_of(root) > 0:
            return False
    return True


def _formulas(initializer: Initializer, p: ca.SX, demands: Mapping[str, ca.SX]) -> ca.SX:
    declared = initializer.declared
    is_given = ca.DM([float(n in demands) for n in declared.referred])
    values = ca.vertcat(*(demands.get(n, ca.SX(0)) for n in declared.referred)) if declared.referred else ca.SX(0, 1)
    formulas = initializer.start_values(p, is_given, values)[0]
    known = {n: formulas[k] for k, n in enumerate(declared.names)} | dict(demands)
    states = initializer.system.state_names
    return ca.densify(ca.vertcat(*(known.get(n, ca.SX(0)) for n in states))) if states else ca.SX(0, 1)
