"""The functions of a reduced system and their Jacobians."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compilation.systems import PENDULUM, implicit_decay, pendulum

from grisaille.compilation import PARAMETER_DERIVATIVES, PLAIN_FUNCTIONS, differentiate, jacobian

POINT = {
    "pendulum": (0.3, [0.4, -6.1, 0.7, 0.2], [], [0.5, 0.3], PENDULUM),
    "decay": (0.3, [1.2], [0.8], [0.4], [0.9]),
}
SYSTEMS = {"pendulum": pendulum(), "decay": implicit_decay()}


def value(function: ca.Function, arguments: list) -> np.ndarray:
    return np.array(ca.DM(function(*arguments)).full())


@pytest.mark.parametrize("which", SYSTEMS)
@pytest.mark.parametrize(
    ("name", "of", "by"),
    [("J", "F", "xz"), ("CJ", "C", "x"), ("FP", "F", "p"), ("CP", "C", "p"), ("OJ", "O", "xz"), ("OP", "O", "p")],
)
def test_jacobians_equal_finite_differences(which, name, of, by):
    functions = differentiate(SYSTEMS[which], sensitive=True)
    point = dict(zip("txzup", (np.atleast_1d(np.array(v, float)) for v in POINT[which]), strict=True))
    columns = []
    for variable in by:
        for i in range(point[variable].size):
            ends = []
            for sign in (1, -1):
                moved = {k: v.copy() for k, v in point.items()}
                moved[variable][i] += sign * 1e-6
                ends.append(value(functions[of], [moved[k] for k in "txzup"])[:, 0])
            columns.append((ends[0] - ends[1]) / 2e-6)
    exact = value(functions[name], [point[k] for k in "txzup"])
    assert exact.shape == (functions[of].size1_out(0), len(columns))
    np.testing.assert_allclose(exact, np.array(columns).T.reshape(exact.shape), rtol=1e-7, atol=1e-7)


def test_outputs_are_dense_and_parameter_derivatives_on_request():
    system = pendulum()
    plain, full = differentiate(system), differentiate(system, sensitive=True)
    assert tuple(plain) == PLAIN_FUNCTIONS and tuple(full) == (*PLAIN_FUNCTIONS, *PARAMETER_DERIVATIVES)
    assert all(f.sparsity_out(0).is_dense() for f in full.values())


def test_the_branch_not_taken_leaves_no_trace():
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    formula = ca.vertcat(
        ca.if_else(x[0] > 0, x[0] ** p, 0),
        ca.sin(ca.if_else(ca.logic_and(x[0] > 0, x[1] > 0), ca.exp(ca.sqrt(x[0])) + ca.log(x[0]) * x[1], x[1])),
    )
    slopes = ca.Function("f", [x, p], [jacobian(formula, ca.vertcat(x, p))])
    np.testing.assert_allclose(value(slopes, [[-1.0, 2.0], 0.5]), [[0, 0, 0], [0, np.cos(2.0), 0]], rtol=1e-15)


def test_an_empty_jacobian_has_its_shape():
    assert jacobian(ca.SX(0, 1), ca.SX.sym("x", 3)).shape == (0, 3)
    assert jacobian(ca.SX.sym("x", 3), ca.SX(0, 1)).shape == (3, 0)
