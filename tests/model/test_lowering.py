"""Lowering to CasADi: values against NumPy, derivatives finite and right."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, RegularGridInterpolator

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.model import Name
from grisaille.model.lowering import evaluate, lower

x, y, p = Name("x"), Name("y"), Name("p")


def function(formula, *names):
    symbols = {name: ca.SX.sym(name) for name in names}
    (value,) = lower([formula], symbols.__getitem__)
    arguments = [symbols[name] for name in names]
    gradient = ca.jacobian(value, ca.vertcat(*arguments))
    return ca.Function("f", arguments, [value]), ca.Function("g", arguments, [gradient])


@pytest.mark.parametrize(
    "name",
    ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "exp", "log", "log10",
     "sqrt", "sign", "floor", "ceil"],
)  # fmt: skip
def test_elementary_functions(name):
    f = getattr(gr, name)
    assert evaluate([f(x)], {"x": 0.37})[0] == pytest.approx(float(f(0.37)), rel=1e-14)


def test_other_operations():
    values = {"x": 1.7, "y": -0.6}
    formulas = [
        (gr.acosh(x), np.arccosh(1.7)), (gr.atan2(y, x), np.arctan2(-0.6, 1.7)), (gr.minimum(x, y), -0.6),
        (gr.maximum(x, y), 1.7), (abs(y), 0.6), (x**y, 1.7**-0.6), (gr.smooth_abs(y, 0.1), np.hypot(0.6, 0.1)),
        (gr.smooth_sign(y, 0.1), -0.6 / np.hypot(0.6, 0.1)), (gr.where((x > 1) & (y < 0), 1, 2), 1),
        (gr.where((x < 1) | ~(y < 0), 1, 2), 2), (gr.where(x >= 1.7, x, y) - gr.where(x <= 1.6, x, y), 2.3),
    ]  # fmt: skip
    for formula, expected in formulas:
        assert evaluate([formula], values)[0] == pytest.approx(expected, rel=1e-14), formula


@pytest.mark.parametrize("at", [-2000.0, -300.0, -1.0, 0.5, 300.0, 2000.0])
def test_logistic_functions_have_slopes_everywhere(at):
    """1 / (1 + exp(x)): the exponential overflows above 710, its square above 355."""
    for formula, sign in ((2 / (1 + gr.exp(x)), 1), (2 / (gr.exp(-x) + 1), -1)):
        value, gradient = function(formula, "x")
        e = np.exp(-abs(at))
        assert float(value(at)) == pytest.approx(2 * (e if sign * at > 0 else 1) / (1 + e), rel=1e-14, abs=1e-150)
        assert float(gradient(at)) == pytest.approx(-sign * 2 * e / (1 + e) ** 2, rel=1e-13, abs=1e-150)


@pytest.mark.parametrize("at", [-800.0, 0.5, 400.0, 700.0])
def test_quotients_of_exponentials_keep_their_value(at):
    value, gradient = function(gr.exp(x) / (1 + gr.exp(x)), "x")
    assert float(value(at)) == pytest.approx(1 / (1 + np.exp(-at)) if at > -700 else 0.0, rel=1e-13)
    assert float(gradient(at)) == pytest.approx(np.exp(-abs(at)) / (1 + np.exp(-abs(at))) ** 2, abs=1e-15)


def test_der_needs_a_meaning():
    with pytest.raises(ModelError, match=r"der.* has no meaning"):
        evaluate([gr.der(x)], {"x": 1.0})
    a, da = ca.SX.sym("a"), ca.SX.sym("da")
    (value,) = lower([gr.der(x**2)], lambda _: a, lambda f: ca.jtimes(f, a, da))
    assert float(ca.Function("f", [a, da], [value])(3.0, 2.0)) == 12.0


@pytest.mark.parametrize("r", [-2.0, -1e-300, 0.0, 1e-8, 1.5])
@pytest.mark.parametrize("power", [0.5, 1.5, 0.3])
def test_powers_behind_where_have_finite_gradients(r, power):
    value, gradient = function(gr.where(x > 0, x**p, 0), "x", "p")
    expected = r**power if r > 0 else 0.0
    slope = power * r ** (power - 1) if r > 0 else 0.0
    by_power = np.log(r) * r**power if r > 0 else 0.0
    assert float(value(r, power)) == pytest.approx(expected)
    np.testing.assert_allclose(np.array(gradient(r, power)).ravel(), [slope, by_power], rtol=1e-12)


@pytest.mark.parametrize(
    ("formula", "bad", "good"),
    [
        (gr.where(x > 0, gr.sqrt(x), 0), -1.0, 4.0),
        (gr.where(x > 0, gr.log(x), 0), 0.0, 4.0),
        (gr.where(x > 0, 1 / x, 0), 0.0, 4.0),
        (gr.where(x <= 0, 0, 1 / x), 0.0, 4.0),
        (gr.where(abs(x) < 1, gr.asin(x), 0), 2.0, 0.5),
        (gr.where(x < 100, gr.exp(x), 0), 1e4, 2.0),
        (gr.where(x > 0, gr.where(x > 1, gr.sqrt(x - 1), 0) / x, 0), 0.0, 3.0),
        (gr.where(x > 0, gr.sqrt(gr.log(1 + gr.sqrt(x))), 0), -1.0, 3.0),
        (gr.where(x > 0, gr.atan2(x, x), 0), 0.0, 3.0),
        (gr.where(x > 1, gr.acosh(x), 0), 1.0, 3.0),
        (gr.sqrt(2 + gr.where(x > 0, x**0.5, 0)), 0.0, 3.0),
    ],
)
def test_untaken_branches_do_not_spoil_derivatives(formula, bad, good):
    value, gradient = function(formula, "x")
    assert np.isfinite(float(value(bad))) and float(gradient(bad)) == 0.0
    h = 1e-6
    difference = (float(value(good + h)) - float(value(good - h))) / (2 * h)
    assert float(gradient(good)) == pytest.approx(difference, rel=1e-6)


def test_second_derivatives_behind_where_are_finite():
    a = ca.SX.sym("a")
    (value,) = lower([gr.where(x > 0, x**1.5, 0)], lambda _: a)
    hessian = ca.Function("h", [a], [ca.hessian(value, a)[0]])
    assert float(hessian(-1.0)) == 0.0 and float(hessian(0.0)) == 0.0
    assert float(hessian(4.0)) == pytest.approx(0.375)


def chain(depth):
    """Branches inside branches that share everything: each step asks for the one before in its condition and twice."""
    formula, plain = x, lambda v: v
    for k in range(depth):
        bound = 0.1 * (k % 5) + 0.05
        formula = gr.where(formula > bound, gr.sqrt(formula - bound) + 0.3, gr.log(bound - formula + 1) / (2 + formula))

        def plain(v, inner=plain, bound=bound):
            u = inner(v)
            return np.sqrt(u - bound) + 0.3 if u > bound else np.log(bound - u + 1) / (2 + u)

    return formula, plain


@pytest.mark.parametrize("depth", [3, 40])
def test_branches_inside_branches_grow_with_their_number_and_not_with_its_power(depth):
    formula, plain = chain(depth)
    value, gradient = function(formula, "x")
    assert value.n_nodes() < 120 * depth
    for at in (-0.4, 0.0, 0.2, 0.7, 3.0):
        assert float(value(at)) == pytest.approx(plain(at), rel=1e-12)
        difference = (plain(at + 1e-7) - plain(at - 1e-7)) / 2e-7
        assert float(gradient(at)) == pytest.approx(difference, rel=1e-4, abs=1e-7)


def test_what_no_branch_needs_does_no_harm_where_branches_share_it():
    shared = gr.sqrt(x)  # needed for x > 0 only, by two roots under two conditions
    formula, _ = chain(30)
    big = gr.where(formula > 10, formula, 0)  # large enough that one guard has to serve all
    roots = [gr.where(x > 0, shared, 0) + big, gr.where(x > 1, shared * 2, 0)]
    a = ca.SX.sym("a")
    values = ca.vertcat(*lower(roots, lambda _: a))
    slopes = ca.Function("g", [a], [values, ca.jacobian(values, a)])
    np.testing.assert_array_equal(np.hstack([m.full() for m in slopes(-0.5)]), 0.0)
    np.testing.assert_allclose(slopes(4.0)[1], [[0.25], [0.5]])


KNOTS, HEIGHTS = [0.0, 1.0, 2.5, 3.0, 7.0], [1.0, -1.0, 2.0, 2.5, 0.0]


@pytest.mark.parametrize("at", [-3.0, 0.0, 0.4, 1.0, 2.2, 2.5, 2.9, 6.0, 7.0, 9.0])
def test_linear_tables(at):
    held, slope = function(gr.table(x, KNOTS, HEIGHTS), "x")
    assert float(held(at)) == pytest.approx(np.interp(at, KNOTS, HEIGHTS), abs=1e-14)
    extended, _ = function(gr.table(x, KNOTS, HEIGHTS, outside="extend"), "x")
    beyond = 1.0 - 2.0 * at if at < 0 else 0.0 - 0.625 * (at - 7.0) if at > 7 else np.interp(at, KNOTS, HEIGHTS)
    assert float(extended(at)) == pytest.approx(beyond, abs=1e-14)
    assert np.isfinite(float(slope(at)))


def test_cubic_tables():
    spline = CubicSpline(KNOTS, HEIGHTS)
    value, slope = function(gr.table(x, KNOTS, HEIGHTS, kind="cubic", outside="extend"), "x")
    for at in np.linspace(0, 6.99, 23):
        assert float(value(at)) == pytest.approx(float(spline(at)), abs=1e-12)
        assert float(slope(at)) == pytest.approx(float(spline(at, 1)), abs=1e-11)
    assert float(value(9.0)) == pytest.approx(float(spline(7.0) + 2 * spline(7.0, 1)))
    held, flat = function(gr.table(x, KNOTS, HEIGHTS, kind="cubic"), "x")
    assert float(held(9.0)) == pytest.approx(0.0, abs=1e-12) and float(flat(9.0)) == 0.0


def test_two_dimensional_tables():
    xs, ys = [0.0, 1.0, 3.0], [-1.0, 0.0, 2.0, 5.0]
    values = np.arange(12.0).reshape(3, 4) ** 1.5
    reference = RegularGridInterpolator((xs, ys), values)
    value, _ = function(gr.table2(x, y, xs, ys, values), "x", "y")
    rng = np.random.default_rng(0)
    for a, b in zip(rng.uniform(-1, 4, 40), rng.uniform(-2, 6, 40), strict=True):
        expected = reference((np.clip(a, 0, 3), np.clip(b, -1, 5)))
        assert float(value(a, b)) == pytest.approx(float(expected), rel=1e-12)
    extended, _ = function(gr.table2(x, y, xs, ys, values, outside="extend"), "x", "y")
    assert float(extended(4.0, 0.0)) == pytest.approx(values[2, 1] + (values[2, 1] - values[1, 1]) / 2)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: gr.table(x, [0, 2, 1], [0, 0, 0]), r"increasing: entry 2 \(1\) is not above entry 1 \(2\)"),
        (lambda: gr.table(x, [0, 1], [0, 0, 0]), "xs has 2 entries and ys has shape"),
        (lambda: gr.table(x, [0], [0]), "at least two numbers"),
        (lambda: gr.table(x, [0, np.nan], [0, 1]), "xs must be finite; entry 1 is not"),
        (lambda: gr.table(x, [0, 1], [0, "y"]), "must be numbers"),
        (lambda: gr.table(x, [0, 1], [0, 1], kind="spline"), "kind must be one of 'linear', 'cubic', 'monotone'"),
        (lambda: gr.table(x, [0, 1], [0, 1], kind="cubic"), "at least 4 points"),
        (lambda: gr.table(x, [0, 1], [0, 1], outside="wrap"), "outside must be one of 'hold', 'extend'"),
        (lambda: gr.table2(x, y, [0, 1], [0, 1], [[1, 2]]), r"values must have shape \(2, 2\)"),
    ],
)
def test_wrong_tables(action, words):
    with pytest.raises(ModelError, match=words):
        action()


def test_unflattened_formulas_are_refused():
    with pytest.raises(ModelError, match="has no full name yet"):
        evaluate([gr.Variable() + 1], {})
