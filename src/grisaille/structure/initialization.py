"""Consistent start values from demands and wishes.

Unknown is w = (x, z) at the first instant. Hard are the hidden constraints, the implicit equations and the demands
(``fixed=True``, given starts, ``"steady"``: all rates zero). Soft, in this order, are the wishes for differentiated
variables, the wishes for algebraic ones, and to stay near the guess:

    minimise |(y_wish(w) − start) / nominal|   subject to   H(w, p) = 0,

by a damped Gauss–Newton iteration on the hierarchy, with a homotopy H(w) = (1 − λ) H(w₀) as fallback. Derivatives of
the answer come from the optimality conditions, curvature included where a wish could not be met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.structure.reduction import Structure
from grisaille.structure.start_problem import StartProblem, base_name, nominal_of
from grisaille.structure.start_sensitivity import differentiate_start, independent_starts
from grisaille.structure.starts import DeclaredStarts, declared_starts


@dataclass(frozen=True)
class Start:
    """A consistent point."""

    x: np.ndarray
    z: np.ndarray
    residual: float
    """Largest scaled residual of the hard equations."""
    wishes_missed: dict[str, tuple[float, float]]
    """Variable → (wished, got), where the two differ by more than a rounding error."""


@dataclass(frozen=True)
class StartSensitivity:
    """Derivatives of a start: one row per direction."""

    sx: np.ndarray
    sz: np.ndarray


class Initializer:
    """Solves the start of one structure again and again, for different parameters, inputs and demands."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.system = structure.system
        model = structure.model
        self.functions = structure.start_functions
        self.declared: DeclaredStarts = declared_starts(model, structure.equations.parameters)
        self.observed_position = {n: k for k, n in enumerate(self.system.observed_names)}

    @cached_property
    def nominal(self) -> np.ndarray:
        """Scale of each entry of w: its own, of a variable merged with it (``v == der(x)``), or of x for der(x)."""
        variables = self.structure.model.variables
        declared = {n: nominal_of(v) for n, v in variables.items() if v.nominal}
        named = [(entry, *equal, base_name(entry)) for entry, equal in self._equal_variables()]
        return np.array([next((declared[n] for n in names if n in declared), 1.0) for names in named])

    def _equal_variables(self) -> Iterator[tuple[str, list[str]]]:
        """Each entry of w with the variables that were merged into it or eliminated by it, up to sign."""
        system = self.system
        found: dict[int, list[str]] = {}
        for name, formula in zip(system.observed_names, ca.vertsplit(system.observed), strict=True):
            symbol = formula.dep(0) if formula.n_dep() == 1 and ca.is_equal(formula, -formula.dep(0), 2) else formula
            found.setdefault(symbol.element_hash(), []).append(name)
        names = (*system.state_names, *system.implicit_names)
        for name, symbol in zip(names, ca.vertsplit(ca.vertcat(system.x, system.z)), strict=True):
            yield name, found.get(symbol.element_hash(), [])

    @cached_property
    def start_values(self) -> ca.Function:
        declared = self.declared
        arguments = [self.system.p, declared.is_given, declared.given]
        slopes = [ca.densify(ca.jacobian(declared.formulas, by)) for by in (self.system.p, declared.given)]
        return ca.Function("starts", arguments, [declared.formulas, *slopes])

    def solve(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        demands: Mapping[str, float] | None = None,
        *,
        steady: bool = False,
        guess: np.ndarray | None = None,
    ) -> Start:
        """A consistent start; raises ``StructureError`` naming the worst equation and its residual."""
        problem = StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = problem.solve(problem.first_guess() if guess is None else guess)
        nx = self.system.nx
        return Start(w[:nx], w[nx:], problem.worst(w)[0], problem.missed(w))

    def sensitivity(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        start: Start,
        directions: np.ndarray,
        demands: Mapping[str, float] | None = None,
        demand_directions: Mapping[str, np.ndarray] | None = None,
        *,
        steady: bool = False,
    ) -> StartSensitivity:
        """dw for each row of ``directions`` (derivative of p) and of the demanded starts."""
        problem = StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = np.concatenate([start.x, start.z])
        s = differentiate_start(problem, w, directions, dict(demand_directions or {}))
        nx = self.system.nx
        return StartSensitivity(np.ascontiguousarray(s[:nx].T), np.ascontiguousarray(s[nx:].T))

    def independent(self, t: float, u: np.ndarray, p: np.ndarray, start: Start, names: list[str]) -> list[str]:
        """Those of ``names`` whose starts can be chosen together, the first ones preferred."""
        problem = StartProblem(self, t, u, p, {}, False)
        problem.demands = {}
        return independent_starts(problem, np.concatenate([start.x, start.z]), names)

    def observe(self, t: float, start: Start, u: np.ndarray, p: np.ndarray) -> dict[str, float]:
        """Every name the user knows at a start."""
        values = self.functions.observed(t, np.concatenate([start.x, start.z]), u, p)[0]
        return dict(zip(self.system.observed_names, np.array(values.full()).ravel().tolist(), strict=True))
