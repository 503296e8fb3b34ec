"""Hard equations, rates and observed quantities over w = (x, z), each with its derivatives in w and p."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.numerics.flat_functions import FlatEvaluation, flat_function
from grisaille.structure.starts.rounding import rounding_of
from grisaille.structure.system import System

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array


class StartFunctions:
    """Built on first use, shared by all models of one structure."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.arguments = [system.t, ca.vertcat(system.x, system.z), system.u, system.p]
        self._quick: dict[str, FlatEvaluation] = {}
        self._patterns: dict[str, ca.Sparsity] = {}
        self._roundings: dict[str, ca.Function] = {}

    @cached_property
    def equal_names(self) -> list[list[tuple[str, float]]]:
        """For each entry of w the names merged into it or eliminated by it, with their sign; its own comes first."""
        system = self.system
        found: dict[int, list[tuple[str, float]]] = {}
        for name, formula in zip(system.observed_names, ca.vertsplit(system.observed), strict=True):
            is_negative = formula.n_dep() == 1 and ca.is_equal(formula, -formula.dep(0), 2)
            symbol = formula.dep(0) if is_negative else formula
            found.setdefault(symbol.element_hash(), []).append((name, -1.0 if is_negative else 1.0))
        names = (*system.state_names, *system.implicit_names)
        symbols = ca.vertsplit(ca.vertcat(system.x, system.z))
        equal = [found.get(symbol.element_hash(), []) for symbol in symbols] if names else []
        own = [[pair for pair in pairs if pair[0] == name] for name, pairs in zip(names, equal, strict=True)]
        others = [[pair for pair in pairs if pair[0] != name] for name, pairs in zip(names, equal, strict=True)]
        return [first + rest for first, rest in zip(own, others, strict=True)]

    def linearized(self, name: str, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
        """Return values of one of these, and derivatives in w and p."""
        value, by_w, by_p = self._called(name)(t, w, u, p)
        n = len(value)
        return [value, np.ascontiguousarray(by_w.reshape(len(w), n).T), np.ascontiguousarray(by_p.reshape(len(p), n).T)]

    def values(self, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the values of everything that is observed."""
        return self._called("observed_values")(t, w, u, p)[0]

    def sparse(self, name: str, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, csr_array]:
        """Return values of one of these, and their derivatives in w by those entries that may differ from zero."""
        value, entries = self._sparse(name, 1)(t, w, u, p)
        return value, self._matrix(name, 1, entries)

    def sparse_by_p(self, name: str, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> csr_array:
        """Return derivatives in p by those entries that may differ from zero."""
        return self._matrix(name, 3, self._sparse(name, 3)(t, w, u, p)[1])

    def _sparse(self, name: str, by: int) -> FlatEvaluation:
        key = f"{name} by {by}"
        if key not in self._quick:
            formula = self._formulas[name]
            slopes = ca.jacobian(formula, self.arguments[by])
            self._patterns[key] = slopes.sparsity()
            self._quick[key] = flat_function(ca.Function("s", self.arguments, [ca.densify(formula), slopes]))
        return self._quick[key]

    def _matrix(self, name: str, by: int, entries: np.ndarray) -> csr_array:
        from scipy.sparse import csc_array, csr_array

        pattern = self._patterns[f"{name} by {by}"]
        places = np.array(pattern.row(), dtype=np.int32), np.array(pattern.colind(), dtype=np.int32)
        return csr_array(csc_array((entries, *places), shape=pattern.shape))

    @cached_property
    def _formulas(self) -> dict[str, ca.SX]:
        system = self.system
        hard = ca.vertcat(system.constraints, system.residual)
        return {"hard": hard, "initial": system.initial, "rates": system.rhs, "observed": system.observed}

    def entries(self, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
        """Return the hard equations, and the entries of their derivatives in w that may differ from zero."""
        return self._called("hard_entries")(t, w, u, p)

    def slopes(self, entries: np.ndarray) -> csc_array:
        """Return the derivatives of the hard equations in w, from their entries."""
        from scipy.sparse import csc_array

        pattern = self.hard_entries.sparsity_out(1)
        return csc_array((entries, self._pattern[0], self._pattern[1]), shape=pattern.shape)

    @cached_property
    def _pattern(self) -> tuple[np.ndarray, np.ndarray]:
        pattern = self.hard_entries.sparsity_out(1)
        return np.array(pattern.row(), dtype=np.int32), np.array(pattern.colind(), dtype=np.int32)

    def _called(self, name: str) -> FlatEvaluation:
        if name not in self._quick:
            self._quick[name] = flat_function(getattr(self, name))
        return self._quick[name]

    @cached_property
    def hard(self) -> ca.Function:
        return self._with_jacobian(ca.vertcat(self.system.constraints, self.system.residual))

    @cached_property
    def implicit(self) -> ca.Function:
        """Return the implicit equations with their derivative in z; takes many columns at once."""
        residual, z = self.system.residual, self.system.z
        return ca.Function("r", self.arguments, [ca.densify(residual), ca.densify(ca.jacobian(residual, z))])

    @cached_property
    def initial(self) -> ca.Function:
        """Return the residuals that must vanish at the first instant only."""
        return self._with_jacobian(self.system.initial)

    @cached_property
    def rates(self) -> ca.Function:
        return self._with_jacobian(self.system.rhs)

    @cached_property
    def observed(self) -> ca.Function:
        return self._with_jacobian(self.system.observed)

    @cached_property
    def hard_entries(self) -> ca.Function:
        """Return the hard equations and the entries of their derivatives that may differ from zero."""
        formula = ca.vertcat(self.system.constraints, self.system.residual)
        return ca.Function("e", self.arguments, [ca.densify(formula), ca.jacobian(formula, self.arguments[1])])

    def rounding(self, name: str, t: float, w: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """By how much the values of one of these may be wrong where each operation is right to the last bit."""
        if name not in self._roundings:
            self._roundings[name] = rounding_of(self._formulas[name], self.arguments, exact=1)
        amount = np.array(self._roundings[name](t, w, u, p).full()).ravel()
        return np.asarray(np.nan_to_num(amount, posinf=0.0))

    @cached_property
    def observed_values(self) -> ca.Function:
        return ca.Function("o", self.arguments, [ca.densify(self.system.observed)])

    def _with_jacobian(self, formula: ca.SX) -> ca.Function:
        w, p = self.arguments[1], self.arguments[3]
        jacobians = [ca.densify(ca.jacobian(formula, w)), ca.densify(ca.jacobian(formula, p))]
        return ca.Function("h", self.arguments, [ca.densify(formula), *jacobians])
