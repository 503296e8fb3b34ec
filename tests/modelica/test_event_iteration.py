"""Events of Modelica texts are iterated until nothing changes, with new values of others in each pass."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError


def run(body: str, times: list[float]) -> object:
    return gr.simulate(gr.read_modelica(model(body)), np.array(times), rtol=1e-8)


def test_a_chain_of_passes_goes_to_its_end() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Integer m(start = 0, fixed = true);
    Integer k(start = 0, fixed = true);
    equation
    der(x) = 1.0;
    m = if x > 0.5 and pre(m) < 5 then pre(m) + 1 else pre(m);
    k = if m <> pre(m) then pre(k) + 10 else pre(k);
    """
    result = run(body, [0.0, 0.4, 0.6, 1.0])
    np.testing.assert_array_equal(result["m"], [0, 0, 5, 5])
    np.testing.assert_array_equal(result["k"], [0, 0, 50, 50])


def test_change_inside_an_algorithm_that_keeps_a_value() -> None:
    body = """
    Integer c;
    Integer flips(start = 0, fixed = true);
    Integer last(start = -1, fixed = true);
    equation
    c = if sin(6.283185307179586 * time) > 0.0 then 1 else 0;
    algorithm
    if change(c) then
      flips := flips + 1;
      last := pre(c);
    end if;
    """
    result = run(body, [0.25, 0.75, 1.25, 1.75])
    np.testing.assert_array_equal(np.diff(result["flips"]), [1, 1, 1])
    np.testing.assert_array_equal(result["last"], [0, 1, 0, 1])


def test_a_timer_that_is_set_at_once_does_not_latch() -> None:
    body = """
    Real x(start = 0.0, fixed = true);
    Boolean on;
    Boolean late;
    Boolean latched(start = false, fixed = true);
    discrete Real begun(start = -10.0, fixed = true);
    Real since;
    equation
    der(x) = 1.0;
    on = x > 1.0;
    when on then
      begun = time;
    end when;
    since = if on then time - begun else 0.0;
    late = since > 0.5;
    latched = late or pre(latched);
    """
    result = run(body, [0.0, 1.2, 1.4, 1.6])
    np.testing.assert_array_equal(result["latched"], [0, 0, 0, 1])


def test_starts_of_discrete_variables_follow_each_other() -> None:
    body = """
    Boolean active;
    Boolean next;
    Boolean old;
    Boolean never;
    initial equation
    active = true;
    pre(next) = pre(active);
    pre(old) = pre(active);
    equation
    never = false;
    active = pre(next);
    next = active and time < 0.5;
    when never then
      old = active;
    end when;
    """
    result = run(body, [0.0, 0.4, 0.6])
    np.testing.assert_array_equal(result["active"], [1, 1, 0])
    np.testing.assert_array_equal(result["old"], [1, 1, 1])


def test_arrays_and_quoted_iterators_in_algorithms() -> None:
    body = """
    Integer 'bit[1]'(start = 7);
    Integer 'bit[2]';
    Integer 'bit[3]';
    Integer rest;
    Integer total;
    algorithm
    when sample(0.0, 1.0) then
      rest := integer(time + 0.5);
      for 'i' in 1:3 loop
        'bit[\\'i\\']' := mod(rest, 2);
        rest := div(rest, 2);
      end for;
    end when;
    algorithm
    total := 0;
    for 'i' in 1:3 loop
      total := total + 'bit[\\'i\\']' * 2 ^ ('i' - 1);
    end for;
    """
    result = run(body, [0.0, 1.5, 5.5, 6.5])
    np.testing.assert_array_equal(result["total"], [0, 1, 5, 6])
    np.testing.assert_array_equal(result["bit[3]"], [0, 0, 1, 1])


BREAK = """
    Integer a(start = 0, fixed = true);
    Integer b(start = 0, fixed = true);
    Integer c;
    algorithm
    if time > 1.0 then
      break;
    else
      a := 1;
    end if;
    if time > {second} then
      break;
    else
      a := 2;
    end if;
    c := a + 10;
    """


def test_a_loop_that_the_exporter_wrote_out_is_left_by_break() -> None:
    result = run(BREAK.replace("{second}", "2.0"), [0.5, 1.5])
    np.testing.assert_array_equal(result["c"], [12, 12])  # a keeps its value where the first one breaks
    with pytest.raises(ModelError, match="line 10: 'break' stands outside a loop"):
        gr.read_modelica(model(BREAK.split("if time > {")[0]))


def test_derivatives_in_initial_equations_only() -> None:
    body = """
    Real x;
    Real y;
    initial equation
    der(y) = 6.0;
    equation
    der(x) = -x;
    y = 2.0 * x + time;
    """
    result = run(body, [0.0, 1.0])
    np.testing.assert_allclose(result["x"], -2.5 * np.exp([0.0, -1.0]), rtol=1e-6)


def test_parameters_that_initial_sections_settle() -> None:
    body = """
    parameter Boolean fast(fixed = false);
    parameter Integer n(fixed = false);
    Real x(start = 1.0, fixed = true);
    initial equation
    n = 3;
    initial algorithm
    fast := false;
    if 2 > 1 then
      fast := true;
    end if;
    equation
    if fast then
      der(x) = -n * x;
    else
      der(x) = 0.0;
    end if;
    """
    np.testing.assert_allclose(run(body, [0.0, 1.0])["x"], [1.0, np.exp(-3.0)], rtol=1e-6)


def test_whole_numbers_at_their_switch_follow_others() -> None:
    body = """
    discrete Real begun(start = 0.0, fixed = true);
    Boolean on;
    Integer index;
    Integer y;
    initial equation
    pre(y) = 2;
    equation
    when sample(0.0, 2.0) then
      begun = time;
    end when;
    on = time >= begun and time < begun + 0.5;
    index = if on then 1 else 0;
    y = if index > 0 then 4 else 2;
    """
    np.testing.assert_array_equal(run(body, [0.1, 1.0, 2.1, 3.0, 4.1])["y"], [4, 2, 4, 2, 4])


def test_parameters_that_follow_from_found_ones() -> None:
    body = """
    parameter Real length(fixed = false);
    parameter Real half = length / 2.0;
    Real x(start = 1.0, fixed = true);
    initial equation
    length = 3.0 * x;
    equation
    der(x) = -half * x;
    """
    result = run(body, [0.0, 1.0])
    np.testing.assert_allclose(result["x"], [1.0, np.exp(-1.5)], rtol=1e-6)
    np.testing.assert_allclose(result["half"], 1.5)


TIMES = [0.0, 0.5, 1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize(
    "declared, body, counted",
    [
        ("Boolean b(start=false, fixed=true);", "b = x > 1; when b and not pre(b) then n = pre(n) + 1; end when;",
         [0, 0, 1, 1, 1, 1]),
        ("Integer k(start=0, fixed=true);",
         "k = if x > 3 then 2 elseif x > 1 then 1 else 0; when k <> pre(k) then n = pre(n) + 1; end when;",
         [0, 0, 1, 1, 2, 2]),
        ("discrete Integer k(start=0, fixed=true);",
         "when sample(1, 1) then k = pre(k) + 1; end when; when k > pre(k) then n = pre(n) + 1; end when;",
         [0, 0, 1, 2, 3, 4]),
        ("", "algorithm when sample(0, 1) then n := 1; end when; when sample(0, 2) then n := 2; end when;",
         [2, 2, 1, 2, 1, 2]),
        ("discrete Integer m;", "initial equation m = 7; algorithm when initial() then n := 5; m := 3; "
         "elsewhen sample(1, 1) then n := 1; m := 0; end when;", [5, 5, 1, 1, 1, 1]),
    ],
)  # fmt: skip
def test_conditions_compare_with_what_was_and_later_statements_count(
    declared: str, body: str, counted: list[int]
) -> None:
    text = f"""model M
  Real x(start=0, fixed=true); discrete Integer n(start=0, fixed=true); {declared}
equation
  der(x) = 1;
  {body}
end M;"""
    np.testing.assert_array_equal(gr.simulate(gr.read_modelica(text), TIMES)["n"], counted)


@pytest.mark.parametrize(
    "body, words",
    [
        ("a := x; when sample(1, 1) then k := a; end when; a := a + 100;", "'a' is assigned after this 'when'"),
        ("when sample(0, 1) then k := pre(k) + 1; a := 1; end when; when sample(0, 2) then k := 0; end when;",
         "'k' is set by another 'when'"),
        ("when sample(0, 1) then k := pre(k) + 1; end when; when sample(0, 2) then k := k + 10; end when; a := 1;",
         "'k' is set by another 'when'"),
        ("when sample(1, 1) then if x > 0 then reinit(x, 0); end if; end when; a := 1;", "'reinit' is supported"),
    ],
)  # fmt: skip
def test_orders_of_statements_that_are_not_followed_are_refused(body: str, words: str) -> None:
    text = "model M\n Real x(start=0, fixed=true); Real a; discrete Real k(start=0);\nequation\n der(x) = 1;\n"
    with pytest.raises(gr.ModelError, match=words):
        gr.read_modelica(f"{text}algorithm\n {body}\nend M;")


def test_loops_written_out_one_after_the_other_are_two() -> None:
    names = ["u1[1]", "u1[2]", "u2[1]", "u2[2]"]
    declared = " ".join(f"Boolean '{n}';" for n in names)
    given = " ".join(f"'{n}' = x > {v};" for n, v in zip(names, (1, 2, 0.2, 3), strict=True))
    loops = " ".join(f"if '{n}' then y{n[1]} := {n[3]}; break; end if;" for n in names)
    text = f"""model M
  Real x(start=0, fixed=true); Real y1; Real y2; {declared}
equation
  der(x) = 1; {given}
algorithm
  y1 := 0; y2 := 0; {loops}
end M;"""
    run = gr.simulate(gr.read_modelica(text), TIMES)
    np.testing.assert_array_equal(run["y1"], [0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(run["y2"], [0, 1, 1, 1, 1, 1])
