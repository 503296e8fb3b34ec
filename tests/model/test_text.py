"""Formulas read as they were written, with as few parentheses as possible; the text means the same formula."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille.model import Name
from grisaille.model.lowering import evaluate

a, b, c, x = (Name(name) for name in "abcx")


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (a + b + c, "a + b + c"),
        (a - (b - c), "a - (b - c)"),
        (a - b + c, "a - b + c"),
        (a * (b + c), "a*(b + c)"),
        (a / (b * c), "a/(b*c)"),
        (a / b / c, "a/b/c"),
        (a * b / c, "a*b/c"),
        (a / (b / c), "a/(b/c)"),
        (-(a**2), "-a**2"),
        ((-a) ** 2, "(-a)**2"),
        (-(a * b), "-a*b"),
        (-(a + b), "-(a + b)"),
        (a - (-b), "a - (-b)"),
        (a * (-b), "a*(-b)"),
        (a**-2, "a**-2"),
        (a ** (b + 1), "a**(b + 1)"),
        ((a**b) ** c, "(a**b)**c"),
        (a ** (b**c), "a**b**c"),
        (2 * a + 0.5, "2*a + 0.5"),
        (a + (-3), "a + (-3)"),
        (1e-6 * a, "1e-06*a"),
        (gr.sin(a + b) * c, "sin(a + b)*c"),
        (gr.der(a), "der(a)"),
        (gr.der(gr.der(a)), "der(a, 2)"),
        (gr.der(a, 3), "der(a, 3)"),
        (abs(a - b), "abs(a - b)"),
        (gr.where((a > 0) & ~(b <= c), a, -b), "where((a > 0) & (~(b <= c)), a, -b)"),
        (gr.smooth_abs(a, 0.1), "smooth_abs(a, 0.1)"),
        (gr.table(a, [0, 1], [2, 3]), "table(a, 2 points)"),
    ],
)
def test_texts(formula, text):
    assert str(formula) == text


def test_text_means_the_same_formula():
    rng = np.random.default_rng(3)
    values = {"a": 1.3, "b": 0.7, "c": 2.1, "x": 0.4}
    symbols = {name: Name(name) for name in values}
    operations = [
        lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: -p,
        lambda p, q: p**2, lambda p, q: p - 3.5, lambda p, q: p * -2.0, lambda p, q: -2.0 / q,
    ]  # fmt: skip
    for _ in range(200):
        pool = list(symbols.values())
        for _ in range(6):
            p, q = (pool[rng.integers(len(pool))] for _ in range(2))
            pool.append(operations[rng.integers(len(operations))](p, q))
        number = evaluate([pool[-1]], values)[0]
        assert eval(str(pool[-1]), {}, values) == pytest.approx(number, rel=1e-9)


def test_shared_formulas_do_not_explode():
    formula = a
    for _ in range(60):
        formula = formula + formula
    assert len(str(formula)) < 20_000
