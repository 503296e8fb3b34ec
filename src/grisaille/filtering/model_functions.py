"""The formulas of a stochastic model at many states in one call, for filters that are written in NumPy.

    dX = f(t, X, u, q) dt + B(t, X, u, q) dV        y = h(t, X, u, q) + e,  e ~ N(0, R)

Algebraic unknowns are solved inside, from ``z``, a guess for each state.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_over_points
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import EstimationError
from grisaille.filtering.algebraic_model import RESTART_NEWTON_STEPS, AlgebraicModel

SHARED_ARGUMENTS = (0, 3, 4)
"""Arguments that are the same at all states: time, signals and q."""


class ModelFunctions:
    """f, B, h and R of a model at M states X, (M, n), one time, signals u, (nu,), and q."""

    def __init__(self, model: StochasticModel) -> None:
        self.model = model

    def drift(self, t: float, X: Floats, u: Floats, q: Floats, z: Floats | None = None) -> Floats:
        """Return f, (M, n)."""
        return self._at("drift", t, X, u, q, z)[..., 0]

    def noise(self, t: float, X: Floats, u: Floats, q: Floats, z: Floats | None = None) -> Floats:
        """Return B, (M, n, disturbances)."""
        return self._at("noise", t, X, u, q, z)

    def measured(self, t: float, X: Floats, u: Floats, q: Floats, z: Floats | None = None) -> Floats:
        """Return h, (M, outputs)."""
        return self._at("measured", t, X, u, q, z)[..., 0]

    def variance(self, t: float, X: Floats, u: Floats, q: Floats, z: Floats | None = None) -> Floats:
        """Return R, (M, outputs, outputs)."""
        return self._at("variance", t, X, u, q, z)

    def _at(self, name: str, t: float, X: Floats, u: Floats, q: Floats, z: Floats | None) -> Floats:
        m = self.model
        if z is None and m.z.numel():
            unknowns = ", ".join(m.structure.system.implicit_names)
            raise EstimationError(f"{unknowns} are algebraic unknowns: give z=, a guess of them for every state.")
        formula, count = getattr(m, name), len(X)

        def make() -> FlatEvaluation:
            closed = AlgebraicModel(m, RESTART_NEWTON_STEPS)
            function = ca.Function(name, closed.plain_symbols, [ca.densify(closed.formula(ca.densify(formula)))])
            return flat_over_points(function, count, SHARED_ARGUMENTS)

        guess = np.zeros((count, 0)) if z is None else np.ascontiguousarray(z, dtype=float)
        function = m.cached_value(("at many states", name, count), make)
        found = function(float(t), np.ascontiguousarray(X, dtype=float), guess, np.asarray(u), np.asarray(q))[0]
        return np.asarray(found.reshape(count, formula.size2(), formula.size1()).transpose(0, 2, 1))
