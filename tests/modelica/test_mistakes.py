"""Texts that cannot be read: each mistake is named, with its line."""

from __future__ import annotations

import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import GrisailleError, ModelError

FUNCTION = "function f input Real x; output Real y; algorithm {} end f;"

MISTAKES = {
    # the text itself
    "an empty text": (" \n ", "holds no model"),
    "no model": ("package P\nconstant Real x = 1.0;\nend P;", "holds no model"),
    "an unknown letter": ("model M\nReal x § 1;\nend M;", r"line 2: the character '§' has no meaning here"),
    "a text without an end": ('model M\nReal x "words;\nend M;\n', r'line 2: a text begins with " and does not end'),
    "a comment without an end": ("model M /* here\nReal x;\nend M;", r"line 1: a comment begins with /\* and does not"),
    "a name without an end": ("model M\nReal 'x;\nend M;\n", "line 2: a quoted name begins with ' and does not end"),
    "a missing semicolon": (
        "model M\nReal x\nReal y;\nend M;\n", "line 3: ';' is expected after the declaration of 'x', but 'Real' stands",
    ),
    "another end": ("model M\nReal x;\nend N;\n", "line 3: the model 'M' ends as 'N'"),
    "no end": ("model M\nReal x;\n", "the model 'M' does not end"),
    "no equals sign": ("model M Real x; equation\nx + 1.0;\nend M;", "line 2: '=' is expected in an equation"),
    "an unfinished sum": ("model M Real x; equation\nx = 1.0 + ;\nend M;", "line 2: an expression is expected, but"),
    "an if without else": ("model M Real x; equation x = if time > 1 then 2;\nend M;", "'else' is expected in an if"),
    "parentheses too deep": (f"model M Real x; equation x = {'(' * 300}1{')' * 300};\nend M;", "more than 100 deep"),
    "relations in a row": ("model M Boolean b; equation b = 1 < 2 < 3;\nend M;", "'<' cannot be chained"),
    "signs too deep": (model(f"Real x; equation x = {'-' * 5000}1.0;"), "nested too deeply"),
    "modifications too deep": (model(f"Real x{'(a' * 3000}=1{')' * 3000};"), "nested too deeply"),
    # what is not flat, or would be lost
    "a declaration under a condition": (model("Real x if false; equation x = 1.0;"), "declared under a condition"),
    "an attribute that does not exist": (model("Real x(strat = 1.0);"), "'x' has no attribute 'strat'"),
    "a reset in an algorithm": (
        model("Real x(start = 1.0); equation der(x) = 1.0; algorithm if x > 2.0 then reinit(x, 0.0); end if;"),
        "'reinit' in an algorithm section is not supported",
    ),
    "an entry of another shape": (
        "package P function f input Real x; output Real y[2]; algorithm y[1:2] := x; end f; "
        "model P Real z[2]; equation z = f(time); end P; end P;", "is assigned to entries of the shape",
    ),
    # names
    "a name that is not declared": (model("Real x; equation\nx = y;"), "line 6: 'y' is not declared"),
    "a name declared twice": (model("Real x;\nReal x; equation x = 1.0;"), "line 6: 'x' is declared twice"),
    "an unknown type": (model("Volume x;"), "the type 'Volume' is not defined"),
    "an unknown function": (model("Real x; equation x = bessel(1.0);"), "the function 'bessel' is not defined in this"),
    "a hostile name": (model("Real 'a;(b)*'; equation 'a;(b)*' = 1.0;"), r"the name 'a;\(b\)\*' is not supported"),
    "time declared": (model("Real time;"), "'time' is the independent variable"),
    "parameters in a circle": (model("parameter Real a = b; parameter Real b = a;"), "'b' and 'a' are defined by each"),
    # values
    "arrays that do not match": (model("Real x[2]; equation x = {1.0, 2.0, 3.0};"), r"shape \(2,\) and an array of sh"),
    "a subscript outside": (model("Real x[2]; equation x[3] = 1.0;"), "the subscript 3 is outside 1 to 2"),
    "a huge array": (model("Real x[1000000, 1000];"), "1000000 x 1000 entries is too large"),
    "a text as a number": (model('Real x; equation x = 1.0 + "a";'), "cannot be added|is not a number"),
    "a wrong number of arguments": (model("Real x; equation x = sin(1.0, 2.0);"), "sin"),
    "a size that moves": (model("Real n; Real x[n]; equation n = 1.0;"), "must be a whole number that is known"),
    "a parameter that moves": (model("Real x; parameter Real p = x; equation x = time;"), "'x' is not declared"),
    "numbers that contradict": (model("Real x; equation 1.0 = 2.0; x = 1.0;"), "the equation says 1 = 2"),
    "an assertion that fails": (model('Real x; equation x = 1.0; assert(1 > 2, "too small");'), "fails: too small"),
    # functions
    "a function that calls itself": (
        model("Real x; equation x = f(1.0);", FUNCTION.format("y := f(x - 1.0);")), "calls itself more than 50 deep",
    ),
    "while": (
        model("Real x; equation x = f(time);", FUNCTION.format("y := x; while y > 1.0 loop y := y - 1.0; end while;")),
        "'while' may be repeated more than 100 times",
    ),
    "while without an end": (
        model("Real x; equation x = f(1.0);", FUNCTION.format("y := x; while y > 0.0 loop y := y + 1.0; end while;")),
        "'while' does not end|more than 300000 statements",
    ),
    "a loop that is too long": (
        model("Real x; equation x = f(1.0);", FUNCTION.format("y := x; for i in 1:1000000000 loop y := i; end for;")),
        "a range of 1000000000 entries is too long",
    ),
    "a variable without a value": (
        model("Real x; equation x = f(1.0);", FUNCTION.format("if x > 2.0 then y := 1.0; end if; y := y + 1.0;")),
        "'y' is used before it has a value",
    ),
    "foreign code": (
        model("Real x; equation x = f(1.0);", FUNCTION.replace("algorithm {}", 'external "C" y = system(x);')),
        "the external function 'system' is not supported: it would run foreign code",
    ),
    # what is not supported
    "spatial distribution": (model("Real x; equation x = spatialDistribution(1.0);"), "'spatialDistribution' is not"),
    "unequal branches": (
        model("Real x; Real y; equation if time > 1 then x = 1.0; y = 2.0; else x = 3.0; end if;"),
        r"different numbers of equations \(2, 1\)",
    ),
    "Booleans in a circle": (model("Boolean a; Boolean b; equation a = not b; b = a and true;"), "by each other"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    text, words = MISTAKES[mistake]
    with pytest.raises(ModelError, match=words):
        gr.read_modelica(text)


def test_everything_that_is_refused_is_refused_at_once() -> None:
    text = model("Real x;\nReal y;\nequation\nx = nothing;\ny = f(x);\n")
    with pytest.raises(ModelError) as caught:
        gr.read_modelica(text)
    assert str(caught.value).splitlines() == [
        "The text cannot be read:",
        "  line 8: 'nothing' is not declared",
        "  line 9: the function 'f' is not defined in this text",
    ]


def test_a_model_that_is_not_square_is_refused_by_the_structure_in_its_own_names() -> None:
    with pytest.raises(GrisailleError, match=r"drive\.w"):
        gr.analyze(gr.read_modelica(model("Real 'drive.w'; Real 'drive.v'; equation 'drive.w' = 'drive.v';")))


@pytest.mark.parametrize("wrong", [None, 3, ["a"], "no_such_file.bmo"])
def test_a_source_that_is_none(wrong: object) -> None:
    with pytest.raises(GrisailleError):
        gr.read_modelica(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("Real x;\nequation\nx = sum({i * j for i in 1:1000, j in 1:1000});", "entries is too large"),
        ("Real x;\nequation\nx = sum(outerProduct(fill(time, 1000), fill(time, 1000)));", "1000 x 1000 entries is too"),
        ("Real x;\nequation\nx = product({i for i in 1:100000});", "no place in a Modelica Integer"),
        ("Real x(start = 0);\nBoolean b;\nequation\nder(x) = 1;\nb = change(x + 1);", "change of the formula"),
    ],
)
def test_what_would_grow_or_be_dropped_is_refused(body: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        gr.read_modelica(model(body))


def test_results_that_a_call_does_not_give() -> None:
    two = "function two\ninput Real u;\noutput Real a;\noutput Real b;\nalgorithm\na := u;\nb := u;\nend two;"
    body = "Real x;\nReal y;\nReal z;\nequation\n(x, y, z) = two(time);"
    with pytest.raises(ModelError, match="3 results are asked for, but the call gives 2"):
        gr.read_modelica(model(body, two))
