"""Hard equations, rates and observed quantities over w = (x, z), each with its derivatives in w and p."""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from grisaille.structure.system import System


class StartFunctions:
    """Built on first use, shared by all models of one structure."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.arguments = [system.t, ca.vertcat(system.x, system.z), system.u, system.p]

    @cached_property
    def hard(self) -> ca.Function:
        return self._with_jacobian(ca.vertcat(self.system.constraints, self.system.residual))

    @cached_property
    def implicit(self) -> ca.Function:
        """The implicit equations with their derivative in z; takes many columns at once."""
        residual, z = self.system.residual, self.system.z
        return ca.Function("r", self.arguments, [ca.densify(residual), ca.densify(ca.jacobian(residual, z))])

    @cached_property
    def initial(self) -> ca.Function:
        """What must hold at the first instant only."""
        return self._with_jacobian(self.system.initial)

    @cached_property
    def rates(self) -> ca.Function:
        return self._with_jacobian(self.system.rhs)

    @cached_property
    def observed(self) -> ca.Function:
        return self._with_jacobian(self.system.observed)

    @cached_property
    def hard_entries(self) -> ca.Function:
        """The hard equations and the entries of their derivatives that may differ from zero."""
        formula = ca.vertcat(self.system.constraints, self.system.residual)
        return ca.Function("e", self.arguments, [ca.densify(formula), ca.jacobian(formula, self.arguments[1])])

    @cached_property
    def observed_values(self) -> ca.Function:
        return ca.Function("o", self.arguments, [ca.densify(self.system.observed)])

    def _with_jacobian(self, formula: ca.SX) -> ca.Function:
        w, p = self.arguments[1], self.arguments[3]
        jacobians = [ca.densify(ca.jacobian(formula, w)), ca.densify(ca.jacobian(formula, p))]
        return ca.Function("h", self.arguments, [ca.densify(formula), *jacobians])
