"""Slow parts computed once; the rest the same function."""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.compilation import hoist

X, P = ca.SX.sym("x", 2), ca.SX.sym("p", 3)


def codes(function: ca.Function) -> list[int]:
    return [function.instruction_id(k) for k in range(function.n_instructions())]


def test_values_are_kept_and_slow_work_is_gone():
    shared = ca.exp(P[0]) / P[1]
    formulas = [
        ca.vertcat(X[0] / P[1] + shared, X[1] * shared / 3, ca.sqrt(P[2])),
        ca.horzcat(X[0] * X[1], X[1] * X[0]),
    ]
    split = hoist([X], [P], formulas)
    once = ca.Function("once", [P], [split.once])
    rest = ca.Function("rest", [X, P, split.constants], split.formulas)
    assert not {ca.OP_EXP, ca.OP_DIV, ca.OP_SQRT, ca.OP_INV} & set(codes(rest))
    assert codes(rest).count(ca.OP_MUL) == 4
    x, p = [0.3, -0.7], [0.4, 2.5, 9.0]
    expected = ca.Function("whole", [X, P], formulas)(x, p)
    for found, wanted in zip(rest(x, p, once(p)), expected, strict=True):
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-15)


def test_fast_divisors_stay_and_sparsity_is_kept():
    formula = ca.SX(2, 2)
    formula[0, 1] = P[0] / X[0]
    split = hoist([X], [P], [formula])
    assert split.once.numel() == 0 and split.formulas[0].sparsity() == formula.sparsity()
    assert float(ca.Function("f", [X, P], split.formulas)([4.0, 0.0], [2.0, 0, 0])[0, 1]) == 0.5


def test_nothing_at_all():
    split = hoist([X], [P], [ca.SX(0, 1)])
    assert split.formulas[0].shape == (0, 1) and split.constants.shape == (0, 1)
