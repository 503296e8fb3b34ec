"""The formulas of a stochastic model at many points at once, with first and second derivatives.

::

    drift       f, ∂f/∂X, ∂f/∂q         second   ∂²(λᵀf)/∂(X, q)²        bend   ∂⟨K, ∂f/∂X⟩/∂(X, q)

for given λ and K at every point, and the same for the measured outputs h. Derivatives by q are taken for the entries
``moved`` only. Each formula is evaluated at all points by one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import casadi as ca
import numpy as np

from grisaille.cache import Cache
from grisaille.collocation.array_types import Floats
from grisaille.collocation.vectorised import Vectorised
from grisaille.compilation.casadi_evaluation import flat_function
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.numerics.defined_points import at_defined_point, find_defined_points

NUMPY_FROM_POINTS = 100
"""Points from which on NumPy is faster than CasADi's virtual machine."""


class PointFormula:
    """Formulas of (t, X, u, q, …) evaluated at P points; q is common to all."""

    def __init__(self, arguments: Sequence[ca.SX], outputs: Sequence[ca.SX]) -> None:
        outputs = [ca.densify(o) for o in outputs]
        self.shapes = [o.shape for o in outputs]
        self.function = ca.Function("f", list(arguments), ca.cse(outputs))
        self._vectorised = Vectorised(self.function, (3,)) if Vectorised.can_do(self.function) else None
        self._mapped: Cache[Callable[..., list[Floats]]] = Cache(16)

    def __call__(self, *arguments: np.ndarray) -> list[Floats]:
        """Return arrays (P, …) of every output; arguments (P, size), q a vector."""
        count = len(arguments[0])
        found = self._evaluated(count, [a.reshape(count, -1) if i != 3 else a for i, a in enumerate(arguments)])
        # columns follow each other in memory: (P, columns, rows), turned to (P, rows, columns)
        return [
            v.reshape(count, columns, rows).swapaxes(1, 2) if columns != 1 else v.reshape(count, rows)
            for v, (rows, columns) in zip(found, self.shapes, strict=True)
        ]

    def _evaluated(self, count: int, arguments: list[Floats]) -> list[Floats]:
        if self._vectorised is not None and count >= NUMPY_FROM_POINTS:
            return self._vectorised(*arguments)
        mapped = self._mapped.get(count, lambda: flat_function(self.function.map("f", "serial", count, [3], [])))
        return mapped(*(np.ascontiguousarray(a) for a in arguments))


def formulas_of(model: StochasticModel, moved: Sequence[int]) -> Formulas:
    """Return the formulas of a model, which all problems of it share."""
    return model.cached_value(("splines", *moved), lambda: Formulas(model, moved))


class Formulas:
    """Everything a spline program evaluates; built when first needed."""

    def __init__(self, model: StochasticModel, moved: Sequence[int]) -> None:
        self.model, self.moved = model, tuple(moved)
        self.by = ca.vertcat(model.X, *(model.q[k] for k in moved))
        self._built: Cache[PointFormula] = Cache(None)
        self._levels: dict[str, list[int]] = {}

    def values(self, what: str, *arguments: np.ndarray) -> tuple[Floats, Floats, Floats]:
        """Return ``"drift"`` or ``"measured"``: v (P, r), ∂v/∂X (P, r, n), ∂v/∂q (P, r, moved)."""
        found = self._formula("values", what)(*arguments)
        rows = found[0].shape[1]
        slope = found[1].reshape(len(found[0]), rows, -1)
        return found[0], slope[:, :, : self.model.n], slope[:, :, self.model.n :]

    def second(self, what: str, *arguments: np.ndarray) -> Floats:
        """Return ∂²(λᵀv)/∂(X, q)², (P, n + moved, n + moved); λ is the last argument."""
        size = self.model.n + len(self.moved)
        return self._formula("second", what)(*arguments)[0].reshape(-1, size, size)

    def bend(self, what: str, *arguments: np.ndarray) -> Floats:
        """Return ∂⟨K, ∂v/∂X⟩/∂(X, q), (P, n + moved); K (P, rows·n), row by row, is the last argument."""
        return self._formula("bend", what)(*arguments)[0]

    def covariance(self, what: str, *arguments: np.ndarray) -> Floats:
        """Return W = B Bᵀ of what disturbs the ``"drift"``, or R of noise that is ``"measured"``, (P, size, size)."""
        size = self.model.n if what == "drift" else len(self.model.outputs)
        return self._formula("covariance", what)(*arguments)[0].reshape(-1, size, size)

    def levels(self, what: str) -> list[int]:
        """Return entries of q that W or R depends on."""
        if what not in self._levels:
            self._levels[what] = sorted(set(ca.jacobian_sparsity(self._matrix(what), self.model.q).get_col()))
        return self._levels[what]

    def covariance_slope(self, what: str, *arguments: np.ndarray) -> Floats:
        """Return ∂⟨Z, W⟩/∂q, (P, moved); Z (P, size²) is the last argument."""
        return self._formula("covariance_slope", what)(*arguments)[0].reshape(len(arguments[0]), len(self.moved))

    def _formula(self, kind: str, what: str) -> PointFormula:
        def make() -> PointFormula:
            more, outputs = self._symbols(kind, what)
            return PointFormula([*self.model.arguments, *more], outputs)

        return self._built.get((kind, what), make)

    def _matrix(self, what: str) -> ca.SX:
        m = self.model
        return ca.densify(ca.mtimes(m.noise, m.noise.T) if what == "drift" else m.variance)

    def _defined(self, measured: ca.SX, weight: ca.SX) -> ca.SX:
        """Return the outputs, at a point where they are defined where their weight is zero."""
        given, v = self.model.arguments, ca.SX(measured)
        function = ca.Function("measured", given, [measured])
        for k, point in find_defined_points(measured, given).items():
            v[k] = function(*at_defined_point(given, weight[k] != 0, point))[k]
        return v

    def _symbols(self, kind: str, what: str) -> tuple[list[ca.SX], list[ca.SX]]:
        """Return arguments beside those of the model, and results."""
        v, X, by = self.model.drift if what == "drift" else self.model.measured, self.model.X, self.by
        if kind == "values":
            return [], [v, ca.jacobian(v, by)]
        if kind == "second":
            weight = ca.SX.sym("l", v.numel())
            if what == "measured":
                v = self._defined(v, weight)
            return [weight], [ca.hessian(ca.dot(weight, v), by)[0]]
        if kind == "bend":
            K = ca.SX.sym("K", v.numel() * X.numel())
            return [K], [ca.gradient(ca.dot(K, ca.vec(ca.densify(ca.jacobian(v, X)).T)), by)]
        W, moved = self._matrix(what), by[X.numel() :]
        if kind == "covariance":
            return [], [ca.vec(W)]
        Z = ca.SX.sym("Z", W.numel())
        return [Z], [ca.gradient(ca.dot(Z, ca.vec(W)), moved) if moved.numel() else ca.SX(0, 1)]
