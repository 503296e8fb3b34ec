"""Formulas of (t, u, q) evaluated at many instants at once, with derivatives by q in given directions.

Where a formula is a polynomial of the inputs of degree one or two and free of time, its coefficients are evaluated once
for all instants,

    f(u, q) = Σ_i c_i(q) m_i(u),        m = 1, u_j, u_j u_k,

and a matrix product does the rest. A formula with relations of the inputs or of time, where(u > 1, …), sign(u) or
where(time > 4, …), is no polynomial: it is evaluated instant by instant.
"""

from __future__ import annotations

from functools import cached_property

import casadi as ca
import numpy as np

from grisaille.compilation.casadi_evaluation import FlatEvaluation, flat_function
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.experiment.record_cells import RecordCells
from grisaille.filtering.exact.transition import polynomial_nodes
from grisaille.structure.switching_pieces import relations_of

POLYNOMIAL_DEGREE = 6
"""Degree of the polynomials that stand for formulas of time and for nonlinear formulas of inputs, on each cell."""
MAX_MONOMIALS = 64
KINKED_OPERATIONS = frozenset(
    getattr(ca, f"OP_{name}")
    for name in (
        "FABS", "FMIN", "FMAX", "SIGN", "COPYSIGN", "FLOOR", "CEIL", "FMOD", "LT", "LE", "EQ", "NE", "NOT",
        "IF_ELSE_ZERO",
    )
)  # fmt: skip
"""Operations whose slope jumps, so that a second derivative that vanishes says nothing."""


class Formula:
    """A matrix of formulas, free of the states."""

    def __init__(self, model: StochasticModel, formula: ca.SX) -> None:
        self.shape = formula.shape
        self._model = model
        self._rows = ca.densify(ca.vec(ca.densify(formula).T))
        self.signals = sorted(set(ca.jacobian_sparsity(self._rows, model.u).get_col()))
        self.depends_on_time = bool(ca.depends_on(self._rows, model.t))
        self.switches = bool(self.signals) and (
            self._holds_switches() or bool(relations_of(self._rows, model.u)) or has_kinks(self._rows, model)
        )
        """Whether it has pieces: relations, |u| or max(u, …) of the inputs, or relations of time (a signal that is 0 or
        1, and chooses)."""
        self.power = POLYNOMIAL_DEGREE if self.depends_on_time or self.switches else _power(self._rows, model.u)
        """Degree as a polynomial of inputs: 1, 2, or what stands for more."""
        m = len(self.signals)
        self._count = 1 + m if self.power == 1 else (1 + m) * (2 + m) // 2
        self.is_polynomial = self.power <= 2 and self._count <= MAX_MONOMIALS

    def _holds_switches(self) -> bool:
        signals = self._model.structure.system.signals
        return any(signals[k].kind == "switch" for k in self.signals)

    @property
    def is_fixed(self) -> bool:
        """Return the same at every instant."""
        return not self.signals and not self.depends_on_time

    @property
    def is_affine(self) -> bool:
        """In the inputs, and free of time."""
        return self.is_polynomial and self.power == 1

    def degree(self, cells: RecordCells) -> int:
        """Return the degree of the polynomial that approximates a formula on each cell; zero where it is constant
        there.
        """
        moving = np.flatnonzero((cells.coefficients[:, self.signals, 1:] != 0).any(axis=(0, 1)))
        if not self.depends_on_time and not moving.size:
            return 0
        inside = int(moving[-1]) + 1 if moving.size else 0
        return inside * self.power if self.power <= 2 else max(POLYNOMIAL_DEGREE, inside)

    def at(self, t: Floats, u: Floats, q: Floats, dq: Floats) -> Floats:
        """Return duals (N, 1 + ns, rows, columns) at N instants."""
        if not self.is_polynomial:
            return self._one_by_one(t, u, q, dq)
        coefficients = self.coefficients(q, dq)
        if self._count == 1:
            return np.repeat(coefficients, len(t), axis=0) if len(t) != 1 else coefficients
        monomials = self._monomials(u[:, self.signals])
        dual = monomials @ coefficients.reshape(self._count, coefficients[0].size)
        return np.asarray(dual.reshape(len(t), 1 + len(dq), *self.shape))

    def coefficients(self, q: Floats, dq: Floats) -> Floats:
        """Return c_i as duals, (monomials, 1 + ns, rows, columns); of a polynomial."""
        size = self.shape[0] * self.shape[1]
        value, slope = self._expansion(q)
        c = value.reshape(self._count, 1, size)
        moved = (slope.reshape(len(q), len(value)).T @ dq.T).reshape(self._count, size, len(dq)).transpose(0, 2, 1)
        return np.concatenate([c, moved], axis=1).reshape(len(c), 1 + len(dq), *self.shape)

    def shared_on_cells(self, cells: RecordCells, q: Floats, dq: Floats) -> Floats:
        """Return the same in its own degree; one entry for all cells where it is the same at every instant."""
        if self.is_fixed:
            return self.coefficients(q, dq)[None]
        return self.on_cells(cells, self.degree(cells), q, dq)

    def on_cells(self, cells: RecordCells, degree: int, q: Floats, dq: Floats) -> Floats:
        """Return coefficients (K, degree + 1, 1 + ns, rows, columns) of polynomials in s on every cell."""
        nodes, fit = polynomial_nodes(degree)
        t, u = cells.at(nodes)
        values = self.at(t.ravel(), u.reshape(t.size, u.shape[-1]), q, dq)
        found = np.einsum("js,ks...->kj...", fit, values.reshape(*t.shape, *values.shape[1:]))
        return np.asarray(found)

    def _one_by_one(self, t: Floats, u: Floats, q: Floats, dq: Floats) -> Floats:
        N = len(t)
        value, slope = self._pointwise(t[None, :], u.T, np.repeat(q[:, None], N, axis=1))
        size = self.shape[0] * self.shape[1]
        dual = np.empty((N, 1 + len(dq), size))
        dual[:, 0] = np.array(value.full()).reshape(size, N).T
        dual[:, 1:] = np.einsum("inq,sq->nsi", np.array(slope.full()).reshape(size, N, len(q)), dq)
        return np.asarray(dual.reshape(N, 1 + len(dq), *self.shape))

    @cached_property
    def _pointwise(self) -> ca.Function:
        m = self._model
        return ca.Function("f", [m.t, m.u, m.q], [self._rows, ca.densify(ca.jacobian(self._rows, m.q))])

    @cached_property
    def _expansion(self) -> FlatEvaluation:
        """c_i one after another, and their derivatives by q."""
        m = self._model
        own = ca.vertcat(*(m.u[k] for k in self.signals)) if self.signals else ca.SX(0, 1)
        slopes = ca.densify(ca.jacobian(self._rows, own)) if self.signals else ca.SX(self._rows.numel(), 0)
        parts = [self._rows, *(slopes[:, j] for j in range(len(self.signals)))]
        if self.power == 2:
            for j in range(len(self.signals)):
                bends = ca.densify(ca.jacobian(slopes[:, j], own))
                parts += [bends[:, k] * (0.5 if k == j else 1.0) for k in range(j, len(self.signals))]
        flat = ca.substitute([ca.densify(ca.vertcat(*parts))], [m.u, m.t], [ca.SX.zeros(m.u.shape), ca.SX(0)])[0]
        return flat_function(ca.Function("c", [m.q], [flat, ca.densify(ca.jacobian(flat, m.q))]))

    def _monomials(self, u: Floats) -> Floats:
        """Return (N, monomials) in the order of ``_expansion``."""
        columns = [np.ones(len(u)), *u.T]
        if self.power == 2:
            columns += [u[:, j] * u[:, k] for j in range(u.shape[1]) for k in range(j, u.shape[1])]
        return np.stack(columns, axis=1)


def has_kinks(rows: ca.SX, model: StochasticModel) -> bool:
    """Tell whether a formula holds |·|, max, min or another function of the inputs whose slope jumps."""
    free = ca.symvar(ca.veccat(rows, model.u))
    own = {s.element_hash() for s in ca.vertsplit(model.u)}
    function = ca.Function("f", free, [rows])
    moves: dict[int, bool] = {}
    for k in range(function.n_instructions()):
        operation, given, into = (
            function.instruction_id(k),
            function.instruction_input(k),
            function.instruction_output(k),
        )
        if operation == ca.OP_INPUT:
            moves[into[0]] = free[given[0]].element_hash() in own
        elif operation == ca.OP_CONST:
            moves[into[0]] = False
        elif operation != ca.OP_OUTPUT:
            depends = any(moves[i] for i in given)
            if depends and operation in KINKED_OPERATIONS:
                return True
            moves[into[0]] = depends
    return False


def _power(rows: ca.SX, u: ca.SX) -> int:
    slopes = ca.simplify(ca.jacobian(rows, u))
    if not ca.depends_on(slopes, u):
        return 1
    return POLYNOMIAL_DEGREE if ca.depends_on(ca.simplify(ca.jacobian(slopes.nz[:], u)), u) else 2
