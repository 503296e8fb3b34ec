"""Small texts as a language reference and compilers' test suites hold them, against closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grisaille as gr
from grisaille.modelica.full import Expressions
from grisaille.modelica.full.remedies import with_derivatives_in_files, with_full_literals

T = np.array([0.0, 0.11, 0.4, 0.73, 1.0])

TEXTS = {
    "an Integer that gives a derivative": (
        "Integer i; Real x(start = 0, fixed = true); equation i = integer(2 * time); der(x) = i;",
        {"x": np.maximum(T - 0.5, 0), "i": np.floor(2 * T)},
    ),
    "a whole number that is touched and not passed": (
        "Integer i; Real y; equation i = integer(10 * sin(10 * time) + 30); y = mod(i, 7);",
        {"i": np.floor(10 * np.sin(10 * T) + 30), "y": np.floor(10 * np.sin(10 * T) + 30) % 7},
    ),
    "a range as start values": (
        "Real d[3](start = -1:1, each fixed = true); equation der(d) = fill(2, 3);",
        {f"d[{k + 1}]": k - 1 + 2 * T for k in range(3)},
    ),
    "iterators of array()": (
        "Real a[3], b[2, 3]; equation a = array(time * i for i in 1:3); b = array(10 * i + j for j in 1:3, i in 1:2);",
        {"a[2]": 2 * T, "b[2,3]": 23 + 0 * T},
    ),
    "branches with entries and with arrays": (
        "function f input Real u; output Real y[2]; algorithm y := {u, -u}; end f; Real x[2]; equation "
        "if time > 0.5 then x[2] = cos(time); x[1] = sin(time); elseif time > 0.3 then x = f(time); else x = {1, 2}; "
        "end if;",
        {"x[1]": np.where(T > 0.5, np.sin(T), np.where(T > 0.3, T, 1)),
         "x[2]": np.where(T > 0.5, np.cos(T), np.where(T > 0.3, -T, 2))},
    ),
    "an algorithm that leaves a variable at its start": (
        "Real x; Real y; Real z(start = 3); equation x = time; "
        "algorithm if x > 0.5 then y := 1; end if; if x < 0.5 then z := y; end if;",
        {"y": 1.0 * (T > 0.5), "z": np.where(T < 0.5, 0, 3)},
    ),
    "entries that are read before they are set": (
        "Real r[2]; discrete Real k; Real s; algorithm r[1] := 1 + time; s := sum(r); "
        "if time > 0.5 then r[2] := 2; end if; k := sum(r) - r[1];",
        {"s": 1 + T, "k": 2.0 * (T > 0.5), "r[2]": 2.0 * (T > 0.5)},
    ),
    "values of fields of records": (
        "record R Real a = 1; Real b = 2 * a; parameter Integer n = 3; end R; R r(a = time); R q[2](a = {time, 5}, "
        "each b = 3); R s; Real a = 7; Real y = r.b + q[2].a + r.n; equation s = R(time, 4);",
        {"y": 2 * T + 8, "q[1].b": 3 + 0 * T, "s.b": 4 + 0 * T, "a": 7 + 0 * T},
    ),
    "sizes that follow from values": (
        "Real w[:] = 2 * z; Real z[:] = {i * time for i in 1:4}; Real[:] y = z[2:3]; "
        "Boolean b[:] = {time > 0.5, true};",
        {"w[4]": 8 * T, "y[2]": 3 * T, "b[1]": 1.0 * (T > 0.5)},
    ),
    "a break in a loop that a counter ends": (
        "function g input Real x; output Real y; protected Integer i; algorithm i := 0; y := x; while y < 1 and i < 10 "
        "loop y := 2 * y; i := i + 1; if y > 0.9 then break; end if; end while; end g; Real y = g(time + 0.1);",
        {"y": [1.6, 1.68, 1.0, 1.66, 1.1]},
    ),
    "literals by their numbers, and the smallest of nothing": (
        "type E = enumeration(a, b, c); E e = E(2); Real y = if e == E.b then time else 0; "
        "Real z = min(1, min({time for i in 1:0}));",
        {"y": T, "z": 1 + 0 * T},
    ),
    "a long loop that a parameter ends": (
        "parameter Real eps = 1e-3; Real s; algorithm s := 0; while exp(-0.01 * s) >= eps loop s := s + 1; end while;",
        {"s": np.full(5, 691.0)},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The text was read")
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_means_what_the_specification_says(text: str) -> None:
    body, expected = TEXTS[text]
    run = gr.simulate(gr.read_modelica(f"model M\n{body}\nend M;\n"), T)
    for name, values in expected.items():
        assert np.broadcast_to(run[name].values, 5) == pytest.approx(values, abs=1e-6), name


def test_a_start_that_is_assumed_in_an_algorithm_is_said() -> None:
    with pytest.warns(UserWarning, match="line 1: an algorithm does not always give 'y' a value: it is its start"):
        gr.read_modelica("model M Real y; algorithm if time > 0.5 then y := 1; end if; end M;")


def test_what_would_be_set_at_the_end_of_a_run_is_said() -> None:
    with pytest.warns(UserWarning, match=r"line 1: terminal\(\) is never true"):
        gr.read_modelica("model M Real x = time; Real z; equation when terminal() then z = x; end when; end M;")


def test_flat_files_of_a_package_are_read_with_the_functions_they_use(tmp_path: Path) -> None:
    folder = tmp_path / "Lib" / "Sub"
    folder.mkdir(parents=True)
    (tmp_path / "Lib" / "package.mo").write_text("within ;\npackage Lib\nend Lib;\n")
    (folder / "package.mo").write_text("within Lib;\npackage Sub\nend Sub;\n")
    (folder / "f.mo").write_text(
        "within Lib.Sub;\nfunction f\n  input Real x;\n  output Real y;\nprotected\n  Real c[2] = {1, 2};\n"
        "algorithm\n  y := sum(c) * g(x);\nend f;\n"
    )
    (folder / "g.mo").write_text(
        "within Lib.Sub;\nfunction g input Real x; output Real y; algorithm y := x^2; end g;\n"
    )
    (folder / "M.mo").write_text("within Lib.Sub;\nmodel M\n  Real y = f(time);\nend M;\n")
    for name in (None, "M", "Lib.Sub.M"):
        model = gr.read_modelica(folder / "M.mo", name=name)
        assert gr.simulate(model, T).y.values == pytest.approx(3 * T**2)
    (folder / "N.mo").write_text("within Lib.Sub;\nmodel N\n  Real y = time;\nend N;\n")
    assert "y" in gr.simulate(gr.read_modelica(folder / "N.mo", name="Lib.Sub.N"), T)


def test_what_the_flattener_does_not_follow_is_rewritten_in_files_of_libraries() -> None:
    texts = {"": "model M extends L.A; end M;", "L/A.mo": "model A Real y = der(a - b); Real z = der(a); end A;"}
    changed = with_derivatives_in_files(texts, "")
    assert "grisaille_der(a - b)" in changed["L/A.mo"] and "= der(a);" in changed["L/A.mo"]
    assert "function grisaille_der" in changed[""]
    literals = {
        "": "",
        "L/A.mo": "model A import L.B.E.On; B b(e = On, On = 2); Real On2 = x.On; end A;",
        "L/B.mo": "On",
    }
    changed = with_full_literals(literals, "L.B.E.On")
    assert changed["L/A.mo"] == "model A  B b(e = L.B.E.On, On = 2); Real On2 = x.On; end A;"
    assert changed["L/B.mo"] == "On"


def test_a_sum_of_hundreds_is_written_as_one_sum() -> None:
    node: dict[str, Any] = {"Literal": {"value": {"Real": 0.0}}}
    for k in range(300):
        one = {"Literal": {"value": {"Real": float(k)}}}
        node = {"Binary": {"op": "Sub" if k % 2 else "Add", "lhs": node, "rhs": one}}
    text = Expressions({"functions": {}, "variables": {}}).text(node)
    model = gr.read_modelica(f"model M Real x; equation x = {text};\nend M;")
    assert float(gr.simulate(model, T).x[0]) == sum((-1) ** k * k for k in range(300))
