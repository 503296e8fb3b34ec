"""Formulas as MathML: well-formed, with the parentheses that are needed and no others."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import grisaille as gr
from grisaille import der
from grisaille.markup import Html
from grisaille.model import Expression, Name
from grisaille.model.notation import equation, formula, identifier, row, symbol

a, b, c, x, y = (Name(n) for n in "abcxy")


def words(markup: Html) -> str:
    """The text in reading order: fractions as {above/below}, raised and lowered parts by ^ and _."""

    def read(node: ElementTree.Element) -> str:
        inner = [read(child) for child in node]
        if node.tag == "mfrac":
            return f"{{{inner[0]}/{inner[1]}}}"
        if node.tag in ("msup", "msub"):
            return f"{inner[0]}{'^' if node.tag == 'msup' else '_'}{inner[1]}"
        if node.tag == "msqrt":
            return f"√{{{''.join(inner)}}}"
        return ((node.text or "") + "".join(inner)).replace("\u2062", "").strip()

    return read(ElementTree.fromstring(f"<math>{markup}</math>"))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (a + b * c, "a+bc"),
        ((a + b) * c, "(a+b)c"),
        (a - (b + c), "a−(b+c)"),
        (a - (b - c), "a−(b−c)"),
        (a + (b - c), "a+b−c"),
        (a * (-b), "a(−b)"),
        (-a * b, "−ab"),
        (-(a + b), "−(a+b)"),
        (a - (-b), "a−(−b)"),
        (a / b * c, "{a/b}c"),
        (a / (b + c), "{a/b+c}"),
        ((a / b) ** 2, "({a/b})^2"),
        ((-a) ** 2, "(−a)^2"),
        (a**2, "a^2"),
        ((a**2) ** 3, "(a^2)^3"),
        (a ** (b + 1), "a^b+1"),
        (2 * a * 3, "2a·3"),
        (2.5e-7 * a, "2.5·10^−7a"),
        (-2 * a, "(−2)a"),
        (abs(a - b), "|a−b|"),
        (gr.sqrt(a + 1), "√{a+1}"),
        (gr.log(a), "ln(a)"),
        (gr.log10(a), "log_10(a)"),
        (gr.atan2(a, -b), "atan2(a,−b)"),
        (gr.sin(a) ** 2, "sin(a)^2"),
        (gr.floor(a), "⌊a⌋"),
        (gr.smooth_abs(a, 0.1), "|a|_0.1"),
        (gr.smooth_sign(a, 0.1), "sgn_0.1(a)"),
        (gr.maximum(a, 0), "max(a,0)"),
        (der(x), "x˙"),
        (der(x, 2), "x¨"),
        (der(x, 3), "{d^3x/dt^3}"),
        (der(x * y), "{d/dt}(xy)"),
        (der(Name("level")), "{dlevel/dt}"),
        (gr.time * a, "ta"),
        (gr.where((a > 1) & (b <= 2), x, -y), "{xifa>1∧b≤2−yotherwise"),
        (gr.where(~(a > 1) | (b < 2), x, y), "{xif(¬(a>1))∨b<2yotherwise"),
    ],
    ids=str,
)  # fmt: skip
def test_formulas(expression: Expression, expected: str) -> None:
    assert words(row(expression)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", "x"), ("phi", "φ"), ("k_p0", "k_p0"), ("sigma0", "σ_0"), ("v_max", "v_max"), ("r[2]", "r_2"),
        ("R[0,1]", "R_0,1"), ("legs[0].m", "legs_0.m"), ("tension", "tension"), ("x1_out", "x_1,out"),
        ("lambda_", "λ"), ("T_omega", "T_ω"),
    ],
)  # fmt: skip
def test_names(name: str, expected: str) -> None:
    assert words(identifier(name)) == expected


def test_unknowns_of_experiments() -> None:
    assert words(Html(symbol("start(x)@A"))) == "start(x)@A"
    assert words(Html(symbol("k@first run"))) == "k@first run"


def test_numbers_of_whole_equations() -> None:
    assert words(Html(equation(der(x), -a * x))) == "x˙=−ax"
    assert formula(a).startswith("<math>")


def test_names_are_escaped() -> None:
    assert "<script>" not in symbol("<script>alert(1)</script>")


def test_shared_formulas_that_explode_are_abbreviated() -> None:
    e: Expression = a
    for _ in range(40):
        e = e * e
    assert "(…)" in row(e) and len(row(e)) < 300_000


def test_deep_formulas_do_not_recurse() -> None:
    e: Expression = a
    for _ in range(1500):
        e = gr.sin(e)
    assert row(e)
