"""Starts that can be read off: models without algebraic equations or hidden constraints whose states all have a start.

    x_k(t₀) = demanded value, or the declared formula of the parameters (and of demanded starts)

Nothing has to be solved, and derivatives are those of the formulas. The consistent start of every other model comes
from ``structure.initialization``, at many times the cost; a search that simulates in a tenth of a millisecond feels it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grisaille.structure.initialization import Initializer, Start, StartSensitivity


class DirectStart:
    """The start of one structure as a formula, for a fixed set of demanded variables."""

    def __init__(self, initializer: Initializer, demanded: frozenset[str]) -> None:
        self.initializer, self.demanded = initializer, demanded
        declared, states = initializer.declared, initializer.system.state_names
        rows = {n: k for k, n in enumerate(declared.names)}
        self.free = [(k, rows[n]) for k, n in enumerate(states) if n not in demanded]
        self.given = [(k, n) for k, n in enumerate(states) if n in demanded]
        self.is_given = np.array([float(n in demanded) for n in declared.referred])

    @classmethod
    def of(cls, initializer: Initializer, demanded: frozenset[str]) -> DirectStart | None:
        """None where a start has to be solved for."""
        system, declared = initializer.system, initializer.declared
        states = set(system.state_names)
        fixed = {n for n, f in zip(declared.names, declared.fixed, strict=True) if f}
        known = {*declared.names, *demanded}
        if system.nz or system.nc or not states <= known or not (fixed | demanded) <= states:
            return None
        return cls(initializer, demanded) if cls._others_are_algebraic(initializer, states) else None

    @staticmethod
    def _others_are_algebraic(initializer: Initializer, states: set[str]) -> bool:
        """Whether no declared start besides those of the states competes with them (``v == der(x)``, merged names)."""
        structure = initializer.structure
        equations = structure.equations
        for name in set(initializer.declared.names) - states:
            root = equations.aliases.get(name, name).lstrip("-")
            if root in equations.unknowns and structure.offsets.unknowns[equations.unknowns.index(root)] > 0:
                return False
        return True

    def solve(
        self, p: np.ndarray, demands: Mapping[str, float], directions: np.ndarray, moved: Mapping[str, np.ndarray]
    ) -> tuple[Start, StartSensitivity] | None:
        """The start and its derivatives, one row per direction; None where a formula has no finite value."""
        referred = self.initializer.declared.referred
        numbers, slopes, given_slopes = (
            np.array(part.full())
            for part in self.initializer.start_values(
                p, self.is_given, np.array([demands.get(n, 0.0) for n in referred])
            )
        )
        if not np.isfinite(numbers).all():
            return None
        nx, ns = self.initializer.system.nx, directions.shape[0]
        x, sx = np.zeros(nx), np.zeros((ns, nx))
        for k, row in self.free:
            x[k], sx[:, k] = numbers[row, 0], directions @ slopes[row]
            for slope, other in zip(given_slopes[row], referred, strict=True):
                sx[:, k] += slope * moved.get(other, 0.0)
        for k, name in self.given:
            x[k] = demands[name]
            sx[:, k] = moved.get(name, 0.0)
        return Start(x, np.zeros(0), 0.0, {}), StartSensitivity(sx, np.zeros((ns, 0)))
