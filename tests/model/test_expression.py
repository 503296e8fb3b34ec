"""The expression graph: what it builds and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.model import Call, Condition, Constant, Equation, Name, Rewriter, postorder, same

x, y = Name("x"), Name("y")


def test_numbers_of_every_kind_become_constants():
    for number in (2, 2.0, np.float64(2), np.int32(2), np.array(2.0)):
        product = number * x if not isinstance(number, np.ndarray) else x * number
        assert isinstance(product, Call) and str(product) in ("2*x", "x*2")


def test_equations_and_conditions():
    equation = x == y + 1
    assert isinstance(equation, Equation) and str(equation) == "x == y + 1"
    assert equation.source.startswith("test_expression.py:")
    assert str(3 == x) == "x == 3"
    assert isinstance(x < 3, Condition) and str(3 > x) == "x < 3"
    assert str((x > 0) | (y > 0)) == "(x > 0) | (y > 0)"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: bool(x), "no truth value.*gr.where"),
        (lambda: 1 if x > 0 else 2, "condition `x > 0` has no truth value.*gr.where"),
        (lambda: 0 < x < 1, r"split a < b < c into \(a < b\) & \(b < c\)"),
        (lambda: float(x), "`x` is not a number.*gr.sin"),
        (lambda: int(x), "is not a number"),
        (lambda: complex(x), "is not a number"),
        (lambda: math.sin(x), "math.sin and its like cannot take it: use gr.sin"),
        (lambda: x != y, "`x != …` has no meaning.*equations use =="),
        (lambda: len(x), "single quantity and has no length; declare vectors with size=n"),
        (lambda: list(x), "cannot be iterated"),
        (lambda: x + math.nan, "NaN cannot stand in a formula"),
        (lambda: x * math.inf, "inf cannot stand in a formula"),
        (lambda: x + 1j, "complex number 1j cannot stand in a formula"),
        (lambda: x + "m", "The text 'm' cannot stand in a formula; use the member itself, without quotes"),
        (lambda: x * None, "None cannot stand in a formula"),
        (lambda: x + True, "True is not a number"),
        (lambda: x == x, "`x == x` is always true"),
        (lambda: x + y == x + y, "always true"),
        (lambda: Constant(1.0) == 2, "numbers only"),
        (lambda: x == [1, 2], "type list cannot stand in a formula"),
        (lambda: (x == y) + 1 if (x == y) else 0, "equation `x == y` has no truth value"),
        (lambda: x == y == 0, "Do not chain a == b == c"),
        (lambda: gr.where(x == 0, 1, 2), "needs a condition with <, <=, > or >=; `x == 0` is an equation"),
        (lambda: gr.where(x, 1, 2), "A condition such as x > 0 is needed"),
        (lambda: (x > 0) * 2, r"cannot be used as a number; write gr.where\(x > 0, 1, 0\)"),
        (lambda: x & y, "combine conditions"),
        (lambda: x // 2, "gr.floor"),
        (lambda: x in [y], "no truth value"),
        (lambda: gr.sin("x"), "without quotes"),
        (lambda: gr.smooth_abs(x, 0.0), "width of a smoothed kink must be positive"),
    ],
)
def test_refusals(action, words):
    with pytest.raises(ModelError, match=words):
        action()


def test_walks_visit_each_node_once_and_rewrites_share():
    shared = gr.sin(x) + 1
    formula = shared * shared + shared
    assert len(list(postorder([formula]))) == 6
    renamed = Rewriter(lambda n: Name("z") if isinstance(n, Name) else None)(formula)
    assert str(renamed) == "(sin(z) + 1)*(sin(z) + 1) + sin(z) + 1"
    assert len(list(postorder([renamed]))) == 6
    assert Rewriter(lambda n: None)(formula) is formula


def test_same_compares_by_content():
    assert same(gr.sin(Name("x")) + 1, gr.sin(x) + 1)
    assert not same(gr.sin(x) + 1, gr.sin(x) + 2)
    assert not same(gr.der(x), gr.der(x, 2))


def test_functions_on_numbers_compute():
    assert gr.sin(0.5) == math.sin(0.5)
    assert gr.maximum(1, 2) == 2
    assert gr.where(True, 1, 2) == 1
    np.testing.assert_allclose(gr.exp(np.array([0.0, 1.0])), [1.0, math.e])


@pytest.mark.parametrize(
    ("name", "ufunc"),
    [("sin", np.sin), ("asin", np.arcsin), ("atan", np.arctan), ("tanh", np.tanh), ("exp", np.exp), ("log", np.log),
     ("sqrt", np.sqrt), ("sign", np.sign), ("floor", np.floor), ("abs", np.abs), ("abs", np.fabs)],
)  # fmt: skip
def test_numpy_functions_mean_the_same(name, ufunc):
    assert str(ufunc(x)) == f"{name}(x)"


def test_numpy_functions_of_two_arguments():
    assert str(np.arctan2(x, y)) == "atan2(x, y)"
    assert str(np.maximum(x, 0)) == "maximum(x, 0)"
    assert str(np.float64(2) + x) == "2 + x"
    assert str(np.hypot(x, y)) == "sqrt(x**2 + y**2)"
    with pytest.raises(ModelError, match=r"np\.spacing is not known"):
        np.spacing(x)


def test_derivatives():
    p = gr.Parameter(1.0)
    v = gr.Variable()
    assert str(gr.der(x * y)) == "der(x*y)"
    assert gr.der(gr.der(v, 2)).data == 3
    for action, words in [
        (lambda: gr.der(p), "is a parameter, constant in time"),
        (lambda: gr.der(p * 2 + 1), "parameters and numbers only"),
        (lambda: gr.der(3.0), "derivative of a number"),
        (lambda: gr.der(v, 0), "order of a derivative must be a whole number from 1"),
        (lambda: gr.der(v, 1.5), "whole number"),
    ]:
        with pytest.raises(ModelError, match=words):
            action()


def test_powers_written_otherwise_are_told_apart():
    x = gr.Variable()
    for wrong in (lambda: x ^ 2, lambda: 2 ^ x):
        with pytest.raises(gr.ModelError, match="Python writes powers with two stars"):
            wrong()
