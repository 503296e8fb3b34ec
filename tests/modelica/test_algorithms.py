"""Statements are executed in order: every read sees what was assigned last before it."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr

PAIR = """record 'R' Real 'a'; Real 'b'; end 'R';
function 'pair' input Real u; output 'R' r; algorithm r.a := u; r.b := 2 * r.a; r.a := 3 * u; end 'pair';
function 'swap' input 'R' r; output 'R' s; algorithm s.a := 3.0 - r.a; s.b := r.a; end 'swap';
function 'locals' input Real u; output Real y; protected Real v[3]; Real m[2, 2]; algorithm
  for i in 1:3 loop v[4 - i] := i * u; end for; y := sum(v); v[1] := 100.0; if u > 1.5 then v[2] := 0.0; end if;
  m := [1, 2; 3, 4]; m[1, :] := v[1:2]; y := y + sum(v) + m[1, 1] + m[2, 1]; m[1, 1] := 0.0; end 'locals';"""
TWO = "Real 'r[1]'; Real 'r[2]'; "
CASES = {
    "entries": (TWO, "'r[2]' := 0; 'r[1]' := x; y := sum('r'); 'r[1]' := 5 * x;", {"y": (1, 2), "r[1]": (5, 10)}),
    "one by an equation": (TWO + "equation 'r[2]' = 7;", "'r[1]' := x; y := sum('r'); 'r[1]' := 5 * x;", {"y": (8, 9)}),
    "a declared array": (
        "Real r[2];",
        "r[2] := 0; r[1] := x; y := sum(r); r[1] := 5 * x;",
        {"y": (1, 2), "r[1]": (5, 10)},
    ),
    "the whole": (TWO, "'r' := {x, 2 * x}; y := sum('r'); 'r[1]' := 5 * x;", {"y": (3, 6), "r[1]": (5, 10)}),
    "a loop": (
        TWO,
        "for i in 1:2 loop 'r'[3 - i] := i * x; y := if i == 1 then 0 else sum('r'); end for; 'r[1]' := 0;",
        {"y": (3, 6), "r[1]": (0, 0), "r[2]": (1, 2)},
    ),
    "a slice": (
        TWO + "Real 'r[3]';",
        "'r[3]' := 1; 'r'[1:2] := {x, 2 * x}; y := sum('r'[2:3]); 'r[2]' := 5 * x;",
        {"y": (3, 5), "r[2]": (5, 10)},
    ),
    "a matrix": (
        "Real 'm[1,1]'; Real 'm[1,2]';",
        "'m[1,1]' := x; 'm[1,2]' := 3; y := sum('m'[1, :]); 'm[1,1]' := 9;",
        {"y": (4, 5), "m[1,1]": (9, 9)},
    ),
    "branches": (
        TWO,
        "'r[1]' := 1; 'r[2]' := 2; if x > 1.5 then 'r[1]' := 10; elseif x > 0 then 'r[2]' := 20; end if;"
        "y := sum('r'); 'r[2]' := 0;",
        {"y": (21, 12), "r[1]": (1, 10), "r[2]": (0, 0)},
    ),
    "inside a branch": (
        TWO,
        "'r[1]' := x; 'r[2]' := 1; if x > 1.5 then 'r[2]' := 3; y := sum('r'); else"
        " y := 10 * sum('r'); end if; 'r[1]' := 0;",
        {"y": (20, 5), "r[2]": (1, 3)},
    ),
    "a place known later": (
        TWO + "Integer k;",
        "k := if x > 1.5 then 2 else 1; 'r' := {1, 2}; 'r'[k] := 10; y := sum('r');'r[1]' := 5;",
        {"y": (12, 11), "r[1]": (5, 5), "r[2]": (2, 10)},
    ),
    "repeated": (
        TWO + "Real k;",
        "k := 1; 'r' := {0, 0}; while k < 3 loop 'r[1]' := 'r[1]' + x; 'r[2]' := sum('r');"
        "k := k + 1; end while; y := sum('r'); 'r[1]' := 0;",
        {"y": (5, 10), "r[2]": (3, 6)},
    ),
    "fields": (
        "Real 'c.a'; Real 'c.b';",
        "'c.a' := x; 'c.b' := 0; y := 'c'.'a'; 'c.a' := 5 * x;",
        {"y": (1, 2), "c.a": (5, 10)},
    ),
    "a record": ("'R' c;", "c.a := x; c.b := 2; y := c.a + c.b; c.a := 5 * x;", {"y": (3, 4), "c.a": (5, 10)}),
    "records": (
        "'R' c[2];",
        "for i in 1:2 loop c[i].a := i * x; c[i].b := 2; end for; y := c[1].a + sum(c.b); c[1].a := 5 * x;"
        "c[3 - 1].b := c[1].a;",
        {"y": (5, 6), "c[1].a": (5, 10), "c[2].b": (5, 10)},
    ),
    "entries with fields": (
        "Real 'z[1].a'; Real 'z[2].a';",
        "'z[1].a' := x; 'z[2].a' := 2; y := sum('z'.'a'); 'z[1].a' := 9;",
        {"y": (3, 4), "z[1].a": (9, 9)},
    ),
    "a record from itself": (
        "Real 'c.a'; Real 'c.b';",
        "'c.a' := x; 'c.b' := 0; 'c' := 'swap'('c'); y := 'c.a';",
        {"c.a": (2, 1), "c.b": (1, 2)},
    ),
    "a record in a branch": (
        "Real 'c.a'; Real 'c.b';",
        "'c' := 'pair'(x); if x > 1.5 then 'c' := 'pair'('c.b'); end if;y := 'c.b'; 'c.b' := 0;",
        {"y": (2, 8), "c.a": (3, 12), "c.b": (0, 0)},
    ),
    "a function": ("", "y := 'locals'(x);", {"y": (212, 217)}),
    "starts": (
        "Real 'r[1]'(start = 3); Real 'r[2]'(start = 4);",
        "y := sum('r'); 'r[1]' := x; 'r[2]' := 2 * x;",
        {"y": (7, 7)},
    ),
    "Integers": (
        "Integer 'n[1]'; Integer 'n[2]'; Integer k;",
        "'n[1]' := 1; 'n[2]' := 2; k := sum('n'); y := k;'n[1]' := if x > 1.5 then 7 else 5;",
        {"k": (3, 3), "n[1]": (5, 7)},
    ),
    "values before": (
        "Integer 'n[1]'(start = 1, fixed = true); Integer 'n[2]'(start = 2, fixed = true);",
        "y := sum('n'); if x > 1.3 then 'n[1]' := 10; end if; if x > 1.7 then 'n[2]' := 20; end if;",
        {"y": (3, 30), "n[1]": (1, 10), "n[2]": (2, 20)},
    ),
    "at an event": (
        "discrete Real 'd[1]'; discrete Real 'd[2]'; discrete Real k;",
        "y := 0; when x > 1.5 then 'd[1]' := x; 'd[2]' := 0; k := sum('d'); 'd[1]' := 5 * x; end when;",
        {"k": (0, 1.5), "d[1]": (0, 7.5)},
    ),
    "before and after an event": (
        "Integer 'n[1]'(start = 1, fixed = true); Integer 'n[2]'(start = 2, fixed = true); Integer k;",
        "y := 0; when x > 1.5 then k := sum(pre('n')); if x > 0 then 'n[1]' := 10; end if;"
        "k := k + sum('n'); 'n[2]' := 20; end when;",
        {"k": (0, 15), "n[1]": (1, 10), "n[2]": (2, 20)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_statements_see_what_was_assigned_last_before_them(case: str) -> None:
    declared, statements, expected = CASES[case]
    split = declared if "equation" in declared else f"{declared} equation"
    body = f"Real x(start = 1.0, fixed = true); Real y; {split} der(x) = 1.0; algorithm {statements}"
    run = gr.simulate(gr.read_modelica(model(body, PAIR)), np.array([0.0, 1.0]))
    for name, values in expected.items():
        assert run[name].values == pytest.approx(values, abs=1e-12), name


def test_initial_statements_too() -> None:
    body = """parameter Real 'p[1]'(fixed = false); parameter Real 'p[2]'(fixed = false); Real y;
    parameter Real q(fixed = false);
    equation y = q + time; initial algorithm 'p[1]' := 1; 'p[2]' := 2; q := sum('p'); 'p[1]' := 10;"""
    run = gr.simulate(gr.read_modelica(model(body)), np.array([0.0, 1.0]))
    assert run.y.values == pytest.approx([3.0, 4.0]) and float(run["p[1]"][0]) == 10.0


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (
            "'r[1]' := x; 'r[2]' := 0; when x > 1.5 then k := sum('r'); end when; 'r[1]' := 5 * x;",
            "'r.1.' is assigned after",
        ),
    ],
)
def test_entries_without_a_value_then_are_refused(statements: str, told: str) -> None:
    body = f"Real x; Real 'r[1]'; Real 'r[2]'; discrete Real k; equation x = time; algorithm {statements}"
    with pytest.raises(gr.ModelError, match=told):
        gr.read_modelica(model(body))


BEFORE = """
Integer k(start = 0, fixed = true); Integer c(start = 5, fixed = true); Integer v[2](each start = 1, each fixed = true);
Boolean b(start = false, fixed = true); Integer ne(start = 0, fixed = true); Integer nc(start = 0, fixed = true);
algorithm
  when time > 1 then
    k := 4; k := k + pre(k) + 1; v[1] := 7; v[2] := v[1] + pre(v[1]); c := c + 1; c := c + 10 * pre(c);
    b := true;
    if edge(b) then ne := ne + 1; end if; if change(b) then nc := nc + 1; end if;
    b := false;
    if edge(b) then ne := ne + 10; end if; if change(b) then nc := nc + 10; end if;
  end when;
"""


def test_pre_is_what_was_before_the_event_whatever_statements_have_set() -> None:
    result = gr.simulate(gr.read_modelica(model(BEFORE)), [0.0, 0.5, 1.5])
    for name, value in {"k": 5, "v[2]": 8, "c": 56, "ne": 1, "nc": 1}.items():
        assert result[name].values[-1] == value, name


def test_edges_and_changes_of_what_statements_set() -> None:
    body = """Integer i(start = 0, fixed = true); Integer n(start = 0, fixed = true);
    Boolean b(start = false, fixed = true); Integer m(start = 0, fixed = true);
    algorithm
      i := integer(time); if change(i) then n := pre(n) + 1; end if;
      b := sin(6.283185307179586 * time - 0.5) > 0; if edge(b) then m := pre(m) + 1; end if;"""
    result = gr.simulate(gr.read_modelica(model(body)), [0.0, 0.3, 1.5, 3.5])
    assert result["n"].values.tolist() == [0, 0, 1, 3] and result["m"].values.tolist() == [0, 1, 2, 4]
