"""Consistent start values from demands and wishes.

Unknown is w = (x, z) at the first instant. Hard are the hidden constraints, the implicit equations, the equations of
the first instant (``initial``) and the demands (``fixed=True``, given starts, ``"steady"``: all rates zero, which takes
the place of the two others). Soft, in this order, are the declared starts of
variables that the user differentiates, of those that only index reduction differentiates, zero for states that nothing
was declared for, the declared starts of algebraic variables, and to stay near the guess:

    minimise |(y_wish(w) − start) / nominal|   subject to   H(w, p) = 0,

level by level (``search``). Derivatives of the answer come from the optimality conditions, curvature included
where a wish could not be met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from grisaille.cache import IdentityKey
from grisaille.numerics.flat_functions import FlatEvaluation, flat_function
from grisaille.structure.reduction import Structure
from grisaille.structure.starts.declared_start_values import DeclaredStarts, declared_starts
from grisaille.structure.starts.nearest_root import MAX_UNKNOWNS
from grisaille.structure.starts.problem import StartProblem, base_name, nominal_of
from grisaille.structure.starts.refusal import check_guesses
from grisaille.structure.starts.start_search import solve_start
from grisaille.structure.starts.start_sensitivity import differentiate_start, independent_starts
from grisaille.structure.starts.undecided import undecided_sentence, undecided_unknowns
from grisaille.structure.switch_sides import sides_of

T = TypeVar("T")


@dataclass(frozen=True)
class ConsistentStart:
    """A consistent point."""

    x: np.ndarray
    z: np.ndarray
    residual: float
    """Largest scaled residual of the hard equations."""
    guesses_missed: dict[str, tuple[float, float]]
    """Variable → (wished, got), where the two differ by more than a rounding error."""
    undeclared: dict[str, float] = field(default_factory=dict)
    """State without a declared start → its value, where that could not be zero."""
    note: str = ""
    """Two solutions between which nothing that was declared decides; empty otherwise."""
    undecided: str = ""
    """What the initial equations leave open although there are enough of them, in words."""


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
        self.functions = structure.start_functions
        self.declared: DeclaredStarts = self.cached_value(
            "declared", lambda: declared_starts(structure.model, structure.equations.parameters)
        )
        self.observed_position = {n: k for k, n in enumerate(self.system.observed_names)}
        self.may_have_several_roots = 0 < self.system.nz <= MAX_UNKNOWNS
        """Unless the first search for other roots of the implicit equations has found none beside Newton's."""
        self._has_searched = False

    def cached_value(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return a value that follows from the model and its equations, computed once for all their initializers."""
        return self.structure.model.cached_value((IdentityKey(self.functions), what), make)

    def parameters_of_starts(self, named: Collection[str], *, steady: bool) -> NDArray[np.int64]:
        """Return places of the parameters that a start depends on, where these names are declared or demanded."""
        system = self.system
        observed = [system.observed[k] for n, k in self.observed_position.items() if n in named]
        parts = [
            system.constraints,
            system.residual,
            system.initial,
            self.declared.formulas,
            *observed,
            *([system.rhs] * steady),
        ]
        parts += self.structure.written_check.formulas(system)
        return np.array(sorted(set(ca.jacobian_sparsity(ca.vertcat(*parts), system.p).get_col())), dtype=np.int64)

    def remember(self, *, is_single: bool) -> None:
        """Keep what the first search found for all that follow, so that starts do not depend on those solved before."""
        if not self._has_searched:
            self.may_have_several_roots, self._has_searched = not is_single, True

    @cached_property
    def nominal(self) -> np.ndarray:
        """Scale of each entry of w: its own, of a variable merged with it (``v == der(x)``), or of x for der(x)."""
        return self.cached_value("nominal", self._nominal)

    @cached_property
    def has_nominal(self) -> NDArray[np.bool_]:
        """Return whether the scale of each entry of w is declared."""
        return self.cached_value("has nominal", lambda: ~np.isnan(self._declared_nominal(np.nan)))

    def _nominal(self) -> np.ndarray:
        return self._declared_nominal(1.0)

    def _declared_nominal(self, otherwise: float) -> np.ndarray:
        variables = self.structure.model.variables
        declared = {n: nominal_of(v) for n, v in variables.items() if v.nominal}
        entries = (*self.system.state_names, *self.system.implicit_names)
        named = [
            (entry, *(n for n, _ in equal), base_name(entry))
            for entry, equal in zip(entries, self.equal_names, strict=True)
        ]
        return np.array([next((declared[n] for n in names if n in declared), otherwise) for names in named])

    @property
    def equal_names(self) -> list[list[tuple[str, float]]]:
        """For each entry of w the names merged into it or eliminated by it, with their sign; its own comes first."""
        return self.functions.equal_names

    @cached_property
    def sides(self) -> ca.Function:
        """(t, x, z, u, p) → the gaps of all switches of z in the implicit equations."""
        return self.cached_value("sides", self._sides)

    @property
    def rates(self) -> FlatEvaluation:
        """(t, x, z, u, p) → x'."""
        return self.cached_value("rates", self._rates)

    def _rates(self) -> FlatEvaluation:
        s = self.system
        return flat_function(ca.Function("rates", [s.t, s.x, s.z, s.u, s.p], [ca.densify(s.rhs)]))

    def _sides(self) -> ca.Function:
        s = self.system
        gaps = sides_of(s.residual, s.z)
        return ca.Function("sides", [s.t, s.x, s.z, s.u, s.p], [ca.densify(gaps)])

    def undeclared_states(self, demands: Mapping[str, float]) -> list[str]:
        """Return states that no demand and no declared start names, under any of their names; without those that
        equations give, and that are states for the sake of sparse matrices only.
        """
        wanted = {*demands, *self.declared.names}
        names = zip(self.system.state_names, self.equal_names, strict=False)
        given = self.structure.given_states
        return [
            name for name, equal in names if base_name(name) not in given and not any(n in wanted for n, _ in equal)
        ]

    def is_implicit(self, name: str) -> bool:
        """Return whether the formula of an observed name contains an implicit unknown."""
        return self.observed_position[name] in self._implicit

    @cached_property
    def _implicit(self) -> frozenset[int]:
        """Return observed formulas with implicit unknowns: all at once, each by itself would look at all unknowns."""
        observed, z = self.system.observed, self.system.z
        return (
            frozenset(ca.jacobian_sparsity(observed, z).row()) if self.system.nz and observed.numel() else frozenset()
        )

    @cached_property
    def start_values(self) -> ca.Function:
        return self.cached_value("start values", self._start_values)

    def _start_values(self) -> ca.Function:
        declared = self.declared
        arguments = [self.system.p, declared.is_given, declared.given]
        slopes = [ca.densify(ca.jacobian(declared.formulas, by)) for by in (self.system.p, declared.given)]
        return ca.Function("starts", arguments, [ca.densify(declared.formulas), *slopes])

    @cached_property
    def declared_values(self) -> FlatEvaluation:
        return self.cached_value("declared values", lambda: flat_function(self.start_values))

    def solve(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        demands: Mapping[str, float] | None = None,
        *,
        steady: bool = False,
        guess: np.ndarray | None = None,
    ) -> ConsistentStart:
        """Return a consistent start; raises ``StructureError`` naming the worst equation and its residual.

        guess : a point to continue from; without one, of several solutions that nearest to the wishes is taken
        """
        problem = StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = solve_start(problem, problem.first_guess() if guess is None else guess, among_several=guess is None)
        problem.undecided = undecided_unknowns(problem, w)
        if problem.undecided:
            w = solve_start(problem, w, among_several=False)
        check_guesses(problem, w)
        self.structure.written_check.require(self.system, t, w, u, p)
        nx = self.system.nx
        return ConsistentStart(
            w[:nx], w[nx:], problem.worst(w)[0], problem.missed(w), problem.lifted(w), problem.note,
            undecided_sentence(problem.undecided),
        )  # fmt: skip

    def sensitivity(
        self,
        t: float,
        u: np.ndarray,
        p: np.ndarray,
        start: ConsistentStart,
        directions: np.ndarray,
        demands: Mapping[str, float] | None = None,
        demand_directions: Mapping[str, np.ndarray] | None = None,
        *,
        steady: bool = False,
    ) -> StartSensitivity:
        """Return dw for each row of ``directions`` (derivative of p) and of the demanded starts."""
        problem = StartProblem(self, t, u, p, dict(demands or {}), steady)
        w = np.concatenate([start.x, start.z])
        problem.undecided = undecided_unknowns(problem, w)
        s = differentiate_start(problem, w, directions, dict(demand_directions or {}))
        nx = self.system.nx
        return StartSensitivity(np.ascontiguousarray(s[:nx].T), np.ascontiguousarray(s[nx:].T))

    def independent(
        self, t: float, u: np.ndarray, p: np.ndarray, start: ConsistentStart, names: list[str]
    ) -> list[str]:
        """Return those of ``names`` whose starts can be chosen together, the first ones preferred."""
        problem = StartProblem(self, t, u, p, {}, False)
        problem.demands = {}
        return independent_starts(problem, np.concatenate([start.x, start.z]), names)

    def algebraic_missed(
        self, t: float, u: np.ndarray, p: np.ndarray, start: ConsistentStart
    ) -> dict[str, tuple[float, float]]:
        """Return declared starts of algebraic variables that the equations do not confirm: (declared, got)."""
        return StartProblem(self, t, u, p, {}, False).missed(np.concatenate([start.x, start.z]), 1)

    def observe(self, t: float, start: ConsistentStart, u: np.ndarray, p: np.ndarray) -> dict[str, float]:
        """Return every name the user knows at a start."""
        values = self.functions.values(t, np.concatenate([start.x, start.z]), u, p)
        return dict(zip(self.system.observed_names, values.tolist(), strict=True))
