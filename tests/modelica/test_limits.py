"""Short texts that ask for more than any computer has are refused, quickly and without making it."""

from __future__ import annotations

import time

import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.modelica import limits

FUNCTION = "function f input Real x; output Real y; protected String s; algorithm {} end f;"
CALLED = "Real x; equation x = f(1.0);"
TREE = "".join(f"function f{k} input Real x; output Real y; algorithm y := f{k - 1}(x) * f{k - 1}(x + 1); end f{k};"
               for k in range(1, 20))  # fmt: skip
DOUBLED = "y := x; for i in 1:60 loop y := y * y + y; end for;"

TEXTS = {
    "a text that doubles": (
        model(CALLED, FUNCTION.format('s := "aaaa"; for i in 1:60 loop s := s + s; end for; y := x;')), "letters",
    ),
    "parameters that double": (
        model('parameter String s0 = "aaaa";' + "".join(f"parameter String s{k} = s{k - 1} + s{k - 1};"
              for k in range(1, 61)) + "Real x; equation x = 1.0;"), "a text of .* letters is too long",
    ),
    "a comprehension": (model("parameter Real a = sum({i for i in 1:1000000000});"), "1000000000 entries is too long"),
    "comprehensions inside each other": (
        model("parameter Real a = sum({{i * j for i in 1:1000} for j in 1:1000});"), "1000000 entries is too large",
    ),
    "fill": (model("parameter Real a = sum(fill(0, 1000000, 1000000));"), "too large"),
    "braces": (model("parameter Real a = sum({ones(101000), ones(101000)});"), "202000 entries is too large"),
    "loops without statements": (
        model(CALLED, FUNCTION.format("y := x; for i in 1:200000, j in 1:200000 loop end for;")), "makes more",
    ),
    "a tree of calls": (
        model("Real z; Real x; equation z = time; x = f19(z);",
              TREE + "function f0 input Real x; output Real y; algorithm y := x; end f0;"), "makes more",
    ),
    "a size without an end": (model("parameter Integer n = 1; Real x[n]; equation x = fill(0.0, 1e999);"), "size must"),
    "a formula too large to be written": (
        model("Real z; Real x[2]; equation z = time; x = f(z);", FUNCTION.format(DOUBLED)), "a formula of 1.. oper",
    ),
    "digits": (model(f"Real x; equation x = {'9' * 100000};"), "not finite"),
}  # fmt: skip


def test_comments_without_an_end_are_looked_through_once() -> None:
    """Each of them was looked for up to the end of the text: minutes for 200 000."""
    before = time.process_time()
    with pytest.raises(ModelError, match=r"a comment begins with .* and does not end"):
        gr.read_modelica(f"package 'M';\n{'/* ' * 100_000}")
    assert time.process_time() - before < 5


@pytest.mark.parametrize("source", ["hallo " * 1000, "a\0b"])
def test_what_is_neither_a_text_nor_a_path(source: str) -> None:
    with pytest.raises(ModelError, match="cannot be read: ") as refused:
        gr.read_modelica(source)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("what", TEXTS)
def test_refused_in_words(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WORK", 500_000)
    text, words = TEXTS[what]
    with pytest.raises(ModelError, match=words):
        gr.read_modelica(text)
