"""Quantities and start of a record as one function of what moves, where every state starts freely.

Without constraints and implicit unknowns, and with a start for each state under its own name, a consistent start is
what was declared or demanded: nothing is to be solved. Then q and x₀, with their derivatives, are formulas of the
moved values, evaluated in microseconds. Other starts are solved by ``structure.initialization``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from grisaille.compilation.evaluation import flat_function
from grisaille.disturbance.duals import Floats
from grisaille.structure.initialization import Initializer
from grisaille.structure.parameters import ParameterFormulas


class FreeStart:
    """(moved values) → q, dq, x₀ with derivatives."""

    def __init__(
        self,
        initializer: Initializer,
        formulas: ParameterFormulas,
        constants: Mapping[str, float],
        demands: Mapping[str, float],
        parameters: Sequence[str],
        levels: Sequence[str],
        starts: Sequence[str],
    ) -> None:
        self.names = (*parameters, *levels, *(f"start({n})" for n in starts))
        v = ca.SX.sym("v", len(self.names))
        symbol = dict(zip(self.names, ca.vertsplit(v) if self.names else [], strict=True))
        p = formulas.symbolic(
            {**{n: ca.SX(float(x)) for n, x in constants.items()}, **{n: symbol[n] for n in parameters}}
        )
        q = ca.densify(ca.vertcat(p, *(symbol[n] for n in levels)))
        given = {**{n: ca.SX(float(x)) for n, x in demands.items()}, **{n: symbol[f"start({n})"] for n in starts}}
        x = _starts(initializer, p, given)
        slopes = [ca.densify(ca.jacobian(f, v)) for f in (q, x)]
        self._function = flat_function(ca.Function("posed", [v], [q, x, *slopes]))

    def at(self, values: Mapping[str, float], sensitive: bool) -> tuple[Floats, Floats, Floats]:
        """q, dq (ns, nq) and x₀ (1 + ns, nx)."""
        q, x, dq, dx = self._function(np.array([values[n] for n in self.names], dtype=float))
        ns = len(self.names)
        if not sensitive:
            return q, np.zeros((0, len(q))), x[None]
        return q, dq.reshape(ns, len(q)), np.concatenate([x[None], dx.reshape(ns, len(x))])


def starts_freely(initializer: Initializer, demanded: Sequence[str]) -> bool:
    """Whether every state has a start of its own, and nothing else has one."""
    system, declared = initializer.system, initializer.declared
    if system.nz or system.nc:
        return False
    states = set(system.state_names)
    unknowns, aliases = initializer.structure.equations.unknowns, initializer.structure.equations.aliases
    movable = {n for n in declared.names if aliases.get(n, n).lstrip("-") in unknowns}
    return states <= {*movable, *demanded} and {*movable, *demanded} <= states


def _starts(initializer: Initializer, p: ca.SX, given: Mapping[str, ca.SX]) -> ca.SX:
    declared = initializer.declared
    is_given = ca.DM([float(n in given) for n in declared.referred])
    values = ca.vertcat(*(given.get(n, ca.SX(0)) for n in declared.referred)) if declared.referred else ca.SX(0, 1)
    formulas = initializer.start_values(p, is_given, values)[0]
    known = {n: formulas[k] for k, n in enumerate(declared.names)} | dict(given)
    return ca.densify(ca.vertcat(*(known[n] for n in initializer.system.state_names)))
