"""Formulas of (t, u, q) evaluated at many instants at once, with derivatives by q in given directions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.filtering.duals import Floats
from grisaille.filtering.record import Cells
from grisaille.filtering.stochastic import StochasticModel
from grisaille.filtering.transition import polynomial_nodes

SMOOTH = 6
"""Degree of the polynomials that stand for formulas of time and for nonlinear formulas of inputs, on each cell."""


class Formula:
    """A matrix of formulas, free of the states."""

    def __init__(self, model: StochasticModel, formula: ca.SX) -> None:
        self.shape = formula.shape
        rows = ca.densify(ca.vec(ca.densify(formula).T))
        arguments = [model.t, model.u, model.q]
        self._function = ca.Function("f", arguments, [rows, ca.densify(ca.jacobian(rows, model.q))])
        self.signals = sorted(set(ca.jacobian_sparsity(rows, model.u).get_col()))
        self.depends_on_time = bool(ca.depends_on(rows, model.t))
        self.power = SMOOTH if self.depends_on_time else _power(rows, model.u)
        """Degree as a polynomial of inputs: 1, 2, or what stands for more."""

    @property
    def is_fixed(self) -> bool:
        """The same at every instant."""
        return not self.signals and not self.depends_on_time

    def degree(self, cells: Cells) -> int:
        """Of the polynomial that stands for it on each cell; zero where it is constant there."""
        moving = np.flatnonzero((cells.coefficients[:, self.signals, 1:] != 0).any(axis=(0, 1)))
        if not self.depends_on_time and not moving.size:
            return 0
        inside = int(moving[-1]) + 1 if moving.size else 0
        return inside * self.power if self.power <= 2 else max(SMOOTH, inside)

    def at(self, t: Floats, u: Floats, q: Floats, dq: Floats) -> Floats:
        """Duals (N, 1 + ns, rows, columns) at N instants."""
        N = len(t)
        value, slope = self._function(t[None, :], u.T, np.repeat(q[:, None], N, axis=1))
        size = self.shape[0] * self.shape[1]
        dual = np.empty((N, 1 + len(dq), size))
        dual[:, 0] = np.array(value.full()).reshape(size, N).T
        dual[:, 1:] = np.einsum("inq,sq->nsi", np.array(slope.full()).reshape(size, N, len(q)), dq)
        return np.asarray(dual.reshape(N, 1 + len(dq), *self.shape))

    def once(self, nu: int, q: Floats, dq: Floats) -> Floats:
        """The dual of a fixed formula, (1 + ns, rows, columns)."""
        return np.asarray(self.at(np.zeros(1), np.zeros((1, nu)), q, dq)[0])

    def shared_on_cells(self, cells: Cells, q: Floats, dq: Floats) -> Floats:
        """The same in its own degree; one entry for all cells where it is the same at every instant."""
        if self.is_fixed:
            return self.once(cells.coefficients.shape[1], q, dq)[None, None]
        return self.on_cells(cells, self.degree(cells), q, dq)

    def on_cells(self, cells: Cells, degree: int, q: Floats, dq: Floats) -> Floats:
        """Coefficients (K, degree + 1, 1 + ns, rows, columns) of polynomials in s on every cell."""
        nodes, fit = polynomial_nodes(degree)
        t, u = cells.at(nodes)
        values = self.at(t.ravel(), u.reshape(t.size, -1), q, dq)
        return np.asarray(np.einsum("js,ks...->kj...", fit, values.reshape(*t.shape, *values.shape[1:])))


def _power(rows: ca.SX, u: ca.SX) -> int:
    slopes = ca.simplify(ca.jacobian(rows, u))
    if not ca.depends_on(slopes, u):
        return 1
    return SMOOTH if ca.depends_on(ca.simplify(ca.jacobian(slopes.nz[:], u)), u) else 2
