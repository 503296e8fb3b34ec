"""Events as Modelica 3.6, appendix B, has them: with ``pre`` held, in the order of what clauses need, until nothing
changes. What is expected was derived by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from modelica.texts import model

import grisaille as gr

TIMES = [0.5, 1.5, 2.5, 3.5]


def run(body: str, method: str = "explicit") -> object:
    """The run from zero on, at ``TIMES``."""
    return gr.simulate(gr.read_modelica(model(body)), [0.0, *TIMES], method=method).isel(time=slice(1, None))


def orders() -> str:
    """Three clauses, written in every order: the third never fires, since the second is decided before it."""
    text = []
    for i, order in enumerate(permutations(range(3))):
        clauses = [
            f"when sample(0, 1) then k{i} = pre(k{i}) + 1; end when;",
            f"when k{i} > 2 then z{i} = false; end when;",
            f"when k{i} > 2 and z{i} then v{i} = false; end when;",
        ]
        text += [clauses[n] for n in order]
    return "\n".join(text)


EVERY_ORDER = " ".join(
    f"Integer k{i}(start=0, fixed=true); Boolean z{i}(start=true, fixed=true); Boolean v{i}(start=true, fixed=true);"
    for i in range(6)
)
AT_ONCE = f"""
    {EVERY_ORDER}
    Integer arrived(start=0, fixed=true);
    Integer served(start=0, fixed=true);
    Integer waiting(start=0);
    Boolean ready(start=false);
    Boolean serves(start=false);
    Real begun(start=0);
    Boolean arrives;
    Boolean q1(start=false, fixed=true);
    Boolean q2(start=false, fixed=true);
    Real x(start=0, fixed=true);
    Real y(start=0, fixed=true);
    Real w(start=0, fixed=true);
    Integer rises(start=0, fixed=true);
    Integer holds(start=0, fixed=true);
    Integer late(start=0, fixed=true);
    Integer follows(start=0, fixed=true);
    Integer far(start=0, fixed=true);
    equation
    {orders()}
    waiting = arrived - served;
    ready = serves and 1.4 < time - begun;
    when (pre(waiting) == 0 and arrives) or (pre(waiting) >= 1 and pre(ready)) then
      serves = true;
      begun = time;
    end when;
    when ready then served = pre(served) + 1; end when;
    when arrives then arrived = pre(arrived) + 1; end when;
    arrives = sample(0, 1);
    when not q1 then q2 = not pre(q2); end when;
    when sample(1, 1) then q1 = not pre(q1); end when;
    der(x) = 1;
    der(y) = 1;
    der(w) = 0;
    when x > 0 then rises = pre(rises) + 1; end when;
    when x >= 0 then holds = pre(holds) + 1; end when;
    when time > 0 then late = pre(late) + 1; end when;
    when rises > 0 then follows = pre(follows) + 1; end when;
    when y > 1 then reinit(y, 5); end when;
    when y >= 1 then reinit(w, y); end when;
    when y > 4 then far = pre(far) + 1; end when;
    """


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
def test_clauses_of_one_instant_in_every_order(method: str) -> None:
    result = run(AT_ONCE, method)
    for i in range(6):
        np.testing.assert_array_equal([result[f"k{i}"], result[f"z{i}"]], [[1, 2, 3, 4], [1, 1, 0, 0]])
        np.testing.assert_array_equal(result[f"v{i}"], 1)
    np.testing.assert_array_equal([result["arrived"], result["served"]], [[1, 2, 3, 4], [0, 1, 1, 2]])
    np.testing.assert_array_equal([result["q1"], result["q2"]], [[0, 1, 0, 1], [0, 0, 1, 1]])


@pytest.mark.parametrize("method", ["explicit", "implicit", "frozen"])
def test_what_becomes_true_just_after_the_start_fires_and_resets_are_seen_one_iteration_later(method: str) -> None:
    result = run(AT_ONCE, method)
    for name, count in (("rises", 1), ("holds", 0), ("late", 1), ("follows", 1)):
        np.testing.assert_array_equal(result[name], count)
    np.testing.assert_allclose([result["y"], result["w"]], [[0.5, 5.5, 6.5, 7.5], [0, 1, 1, 1]], atol=1e-9)
    np.testing.assert_array_equal(result["far"], [0, 1, 1, 1])


def test_initialization_is_over_before_the_first_event() -> None:
    body = """
    Integer n(start=0, fixed=true);
    Integer m(start=0, fixed=true);
    Integer i(start=0, fixed=true);
    Integer a(start=0, fixed=true);
    Integer b(start=0, fixed=true);
    Integer d(start=0, fixed=true);
    Boolean on(start=false);
    Integer ons(start=0, fixed=true);
    Real x(start=0, fixed=true);
    equation
    der(x) = 1;
    when initial() then n = 5; elsewhen sample(0, 1) then n = pre(n) + 1; end when;
    when i > 0 then m = pre(m) + 1; end when;
    when {initial(), x > 2} then i = pre(i) + 1; end when;
    on = x < 1 or pre(on) and x < 3;
    when on then ons = pre(ons) + 1; end when;
    when sample(1, 1) then a = pre(a) + 1; d = 2 * b; end when;
    when a > 2 then b = 7; end when;
    """
    result = run(body)
    np.testing.assert_array_equal(result["n"], [6, 7, 8, 9])
    np.testing.assert_array_equal([result["i"], result["m"]], [[1, 1, 2, 2], [0, 0, 0, 0]])
    np.testing.assert_array_equal([result["on"], result["ons"]], [[1, 1, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal([result["a"], result["b"], result["d"]], [[0, 1, 2, 3], [0, 0, 0, 7], [0, 0, 0, 14]])


@pytest.mark.parametrize(
    "body, words",
    [
        ("when sample(0, 1) and not b then a = not pre(a); end when; when a then b = not pre(b); end when;",
         r"line 4.*'a', 'b' need each other in a circle"),
        ("b = a; when sample(0, 1) and not a then a = true; end when;", r"'a' needs itself: write pre\(a\)"),
    ],
)  # fmt: skip
def test_circles_of_new_values_are_refused(body: str, words: str) -> None:
    text = f"model M\n Boolean a(start=false), b(start=false);\nequation\n {body}\nend M;"
    with pytest.raises(gr.ModelError, match=words):
        gr.read_modelica(text)


def test_what_the_end_would_change_is_said() -> None:
    declared, body = "Real x(start=1); Integer n(start=0);", "der(x) = -x;\n when terminal() then\n  n = 1;\n end when;"
    text = f"model M\n {declared}\nequation\n {body}\nend M;"
    with pytest.warns(UserWarning, match=r"line 5: terminal\(\) is never true"):
        gr.read_modelica(text)


@pytest.mark.parametrize(
    "body, name, expected",
    [
        ("Real x; Real y; equation when sample(0, 1) then y = 7 - 2 * x + time; end when; x + y = 5;",
         "x", [2.0, 3.0, 4.0, 5.0]),  # 5 - x = 7 - 2 x + t
        ("Real x; Real y; Real p; Real q; equation when sample(0, 1) then x = q / 2 + time; end when; p = x + 1;"
         "when sample(0, 1) then y = 1 - p; end when; q = y + 2;",
         "x", [2 / 3, 4 / 3, 2.0, 8 / 3]),  # x = (2 - x) / 2 + t
    ],
)  # fmt: skip
def test_new_values_that_need_each_other_linearly_are_solved_for(body: str, name: str, expected: list[float]) -> None:
    assert run(body)[name].values == pytest.approx(expected, abs=1e-9)  # type: ignore[index]


@pytest.mark.parametrize("formula", ["q * q / 9", "q"])
def test_new_values_that_need_each_other_otherwise_are_refused(formula: str) -> None:
    body = f"Real x; Real q; equation q = x + 2; when sample(0, 1) then x = {formula} + time; end when;"
    with pytest.raises(gr.StructureError, match="x → x are defined by each other in a circle"):
        run(body)


def test_states_are_reinitialised_as_arrays_and_in_algorithms() -> None:
    body = """
    Real x[3](each start = 0); Real v(start = 2); Real w(start = 0); discrete Integer n(start = 3);
  equation
    der(x) = {1, 2, 3}; der(v) = 0; der(w) = 1;
    when x[1] > 2.25 then reinit(x, {0, 1, 2}); reinit(x[2:3], x[2:3]); print("now"); end when;
  algorithm
    when w > 2.25 then reinit(w, n); n := n + 1; reinit(v, n); end when;
"""
    with pytest.raises(gr.ModelError, match=r"twice|two values"):
        run(body)
    result = run(body.replace("reinit(x[2:3], x[2:3]);", ""))
    last = [float(result[name].values[-1]) for name in ("x[1]", "x[2]", "x[3]", "v", "w")]  # type: ignore[index]
    assert last == pytest.approx([1.25, 3.5, 5.75, 4.0, 4.25], abs=1e-7)


def test_a_moment_in_a_variable_that_nobody_reads() -> None:
    body = "Boolean b; Real y; Real z; equation b = time > 1; y = if edge(b) then 9 else 3;"
    with pytest.warns(UserWarning, match="'y' has another value at single instants"):
        assert run(body.replace("Real z;", ""))["y"].values.tolist() == [3.0] * 4  # type: ignore[index]
    for reader in ("z = y;", "algorithm z := y;", "when y > 5 then z = 1; end when;"):
        with pytest.raises(gr.ModelError, match="is a moment, not a condition that holds for a while"):
            run(f"{body} {reader}")


def test_what_pre_becomes_after_initialization_is_an_event() -> None:
    """``x = pre(n)`` is 1 during initialization and 3 in the first event, which is a change."""
    counted = "{0} then k{1} = pre(k{1}) + 1; end when;"
    conditions = ["when change(x)", "when {initial(), change(x)}", "when change(x) and not initial()", "when x > 2"]
    body = """
    Integer n(start = 1); Integer x(start = 1, fixed = true);
    Integer k0(start = 0, fixed = true); Integer k1(start = 0, fixed = true);
    Integer k2(start = 0, fixed = true); Integer k3(start = 0, fixed = true);
    equation n = if time >= 2 then 4 else 3; x = pre(n);
    """ + "\n".join(counted.format(c, i) for i, c in enumerate(conditions))
    found = run(body)
    assert found["x"].values.tolist() == [3.0, 3.0, 4.0, 4.0]
    assert [found[f"k{i}"].values.tolist() for i in range(4)] == [
        [1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 3.0, 3.0], [1.0, 1.0, 2.0, 2.0], [1.0] * 4,
    ]  # fmt: skip
