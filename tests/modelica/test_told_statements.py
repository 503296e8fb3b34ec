"""What the flattener does not take is told to it in other words, and written as it was meant: algorithms, entries.

Answers are written out by hand, beside plain Python that runs the same statements.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.modelica.full import with_assertions, with_entries_set

TIMES = np.array([0.0, 0.6, 1.2, 2.7])


@pytest.fixture(autouse=True)
def forgetful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder of its own: nothing is found that was flattened before."""
    monkeypatch.setenv("GRISAILLE_CACHE", str(tmp_path))


def run(text: str, times: np.ndarray = TIMES) -> xr.Dataset:
    """The model ``T``, which has components."""
    pytest.importorskip("rumoca")
    return gr.simulate(gr.read_modelica(text, name="T"), times)


def test_a_section_is_told_with_places_and_indices() -> None:
    text = 'model M Real s; algorithm s := 0; for i in 1:2 loop s := s + i "more"; end for; end M;'
    told = with_assertions({"": text})[""]
    assert 'assert((s >= ( 0)), "grisaille: set|1|");' in told
    assert 'assert((s >= ( s + i)) and time >= i, "grisaille: set|3,4|+");' in told
    assert told.endswith('assert(true, "grisaille: end"); end M;')
    for other in ("s := {1, 2}[1]; (s, s) := f(1);", "for i in {3, 1} loop s := i; end for;", "print(s);"):
        text = f"model M Real s; algorithm {other} end M;"
        assert with_assertions({"": text})[""] == text
    text = "function f input Real u; output Real s; algorithm s := u; s := s + 1; end f;"
    assert with_assertions({"": text})[""] == text


def test_entries_of_one_array_are_told() -> None:
    text = 'model M equation when b then k[1] = pre(k[1]) + 1 "one"; n = k[2]; end when; k[3] = 4; end M;'
    told = with_entries_set({"": text}, "k")[""]
    assert told == text.replace('k[1] = pre(k[1]) + 1 "one"', 'assert((k[1] >= ( pre(k[1]) + 1)), "grisaille: equal")')


ALGORITHM = """model T
  model P
    parameter Real a[3] = {2, 3, 5}; Real s, y[3], p, w; Integer k; Boolean big; Real u = time;
  algorithm
    s := 0; p := 1;
    for i in 1:3 loop
      s := s + a[i] * u "sum" annotation(Evaluate = true);
      for j in 3:-1:i loop
        p := p + i * j;
        if j == 2 then p := 2 * p; else p := p - 1; end if;
      end for;
      y[i] := s + p;
    end for;
    k := 0;
    while k < 5 and k < u * 2 loop k := k + 1; if k > 3 then break; end if; end while;
    w := if big then 1 else -1;
    big := s > 10;
    w := w + (if big then 10 else 20);
  end P;
  P q[2](a = [2, 3, 5; 1, 1, 1]);
end T;"""


def by_hand(a: list[float], u: float) -> tuple[float, float, list[float], int]:
    s, p, y, k = 0.0, 1.0, [], 0
    for i in (1, 2, 3):
        s += a[i - 1] * u
        for j in range(3, i - 1, -1):
            p += i * j
            p = 2 * p if j == 2 else p - 1
        y.append(s + p)
    while k < 5 and k < u * 2:
        k += 1
        if k > 3:
            break
    return s, p, y, k


def test_statements_run_in_their_order() -> None:
    result = run(ALGORITHM)
    for m, a in ((1, [2.0, 3.0, 5.0]), (2, [1.0, 1.0, 1.0])):
        for t, u in enumerate(TIMES):
            s, p, y, k = by_hand(a, u)
            found = [float(result[f"q[{m}].{name}"][t]) for name in ("s", "p", "y[1]", "y[2]", "y[3]", "k")]
            np.testing.assert_allclose(found, [s, p, *y, k], atol=1e-9)


def test_a_statement_that_clips_what_was_set_before() -> None:
    text = """model T
      block Sat input Real u; output Real y; parameter Real lim = 1;
        algorithm y := u; if y > lim then y := lim; end if; if y < -lim then y := -lim; end if; end Sat;
      Sat s(lim = 2), r; equation s.u = 3 * time - 3; r.u = s.y;
    end T;"""
    result = run(text)
    np.testing.assert_allclose(result["s.y"], np.clip(3 * TIMES - 3, -2, 2), atol=1e-12)
    np.testing.assert_allclose(result["r.y"], np.clip(3 * TIMES - 3, -1, 1), atol=1e-12)


def test_when_in_an_algorithm_of_other_statements() -> None:
    text = """model T
      model M Integer n(start = 0, fixed = true), c[2](each start = 0, each fixed = true); Real z;
      algorithm
        when sample(0.2, 0.5) then
          n := n + 1; for i in 1:2 loop c[i] := c[i] + i; c[i] := c[i] + c[1]; end for;
        elsewhen time > 1.5 then n := n + 100; end when;
        z := n; z := 2 * z + c[2];
      end M;
      M m;
    end T;"""
    result = run(text, np.array([0.0, 0.3, 0.8, 1.3, 1.6]))
    assert result["m.n"].values.tolist() == [0, 1, 2, 3, 103]
    c1, c2, seen = 0, 0, [0]
    for _ in range(3):
        c1 = 2 * (c1 + 1)
        c2 += 2 + c1
        seen.append(c2)
    assert result["m.c[2]"].values.tolist() == [*seen, seen[-1]]
    assert result["m.z"].values.tolist() == [
        2 * n + c for n, c in zip([0, 1, 2, 3, 103], [*seen, seen[-1]], strict=True)
    ]


def test_entries_that_events_set() -> None:
    text = """model T
      model P Integer k[3](each start = 0, each fixed = true); discrete Real v[2](each start = 0, each fixed = true);
      equation
        for i in 1:3 loop when time > 0.5 * i then k[i] = pre(k[i]) + i; end when; end for;
        when time > 1 then v[1] = k[1] + 10; end when;
        when time > 2 then v[2] = 7; end when;
      end P;
      P p;
    end T;"""
    result = run(text)
    assert [result[f"p.k[{i}]"].values.tolist() for i in (1, 2, 3)] == [[0, 1, 1, 1], [0, 0, 2, 2], [0, 0, 0, 3]]
    assert result["p.v[1]"].values.tolist() == [0, 0, 11, 11] and result["p.v[2]"].values.tolist() == [0, 0, 0, 7]


def test_loops_that_are_written_out_at_their_ends_only() -> None:
    text = """model T
      model P Real z[3, 2], x[3]; parameter Real k[3] = {1, 2, 4};
      equation for i in 1:3 loop der(x[i]) = 0 * x[i];
        for j in 1:2 loop z[i, j] = i * x[i] + j * k[4 - i]; end for; end for;
      initial equation for i in 1:3 loop x[i] = k[i]; end for; end P;
      P p;
    end T;"""
    result = run(text)
    k = [1, 2, 4]
    for i in range(3):
        for j in range(2):
            assert result[f"p.z[{i + 1},{j + 1}]"].values[-1] == pytest.approx((i + 1) * k[i] + (j + 1) * k[2 - i])


MANY = """model T model P parameter Real k = 1;
parameter Real x[3] = {10 * k, k, 5}, A[2, 2] = {{k, 2 * k}, {3 * k, 4 * k}};
end P; P p[3](k = {1, 2, 3}); parameter Integer j = 2; %s end T;"""


@pytest.mark.parametrize(
    ("formula", "value"),
    [("sum(p.x[2])", 6), ("sum(p.x[j])", 6), ("sum(p.x[end])", 15), ("sum(p.x[:])", 81), ("sum(p[2:3].A[2, 2])", 20)],
)
def test_subscripts_belong_to_the_field(formula: str, value: float) -> None:
    """The flattener takes ``p.x[2]`` in a declaration for ``p[2].x``."""
    assert run(MANY % f"Real m = {formula};")["m"].values[-1] == pytest.approx(value)


def test_other_words() -> None:
    text = """model T
      type C = enumeration(a, b, c);
      model P C d(start = C.a, fixed = true); Integer n = Integer(d);
        parameter C e = C.c; parameter Integer m = Integer(e);
        Real r[3] = cross({1, 0, 0}, {0, time, 0}); Real q = delay(time, 1); Integer s(start = 0, fixed = true);
      equation when time > 1 then d = C.b; end when;
        when sample(0, 1) then s = pre(s) + 1; elsewhen sample(0, 0.5) then s = pre(s) + 10; end when; end P;
      P p;
    end T;"""
    result = run(text)
    assert result["p.n"].values.tolist() == [1, 1, 2, 2]
    np.testing.assert_allclose(result["p.r[3]"], TIMES)
    np.testing.assert_allclose(result["p.q"], np.maximum(TIMES - 1, 0.0), atol=1e-9)
    assert result["p.s"].values.tolist() == [1, 11, 12, 33]


def test_members_of_buses_that_nothing_uses_are_not_there() -> None:
    text = """model T
      expandable connector B "a bus" Real a "a thing"; Real x "used"; end B;
      connector RO = output Real; connector RI = input Real;
      model S B b; RO y = time; equation connect(y, b.x); end S;
      model S2 B b; RO y = 5 * time; equation connect(y, b.w); end S2;
      model K B b; RI u; equation connect(b.x, u); end K;
      model K2 B b; RI u; equation connect(b.w, u); end K2;
      S s; K k; S2 s2; K2 k2; B b, c;
    equation
      connect(s.b, b); connect(k.b, b); connect(s2.b, c); connect(c, k2.b);
    end T;"""
    pytest.importorskip("rumoca")
    model = gr.read_modelica(text, name="T")
    result = gr.simulate(model, TIMES)
    np.testing.assert_allclose(result["k.u"], TIMES)
    np.testing.assert_allclose(result["k2.u"], 5 * TIMES)
    assert "b.a" not in result and "used" in str(model) and "expandable" not in str(model)


def test_the_level_of_an_assertion_is_kept() -> None:
    text = """model T model P Real x = time; equation assert(x < 2, "high", AssertionLevel.%s); end P; P p; end T;"""
    with pytest.warns(UserWarning, match="high"):
        run(text % "warning")
    with pytest.raises(gr.GrisailleError, match="high"):
        run(text % "error")


FUNCTIONS = """model T
  function gcd "greatest" input Integer a "one"; input Integer b = 12; output Integer g;
    protected Integer x = a, y = b, z, n;
  algorithm n := 0; while y <> 0 and n < 6 loop z := mod(x, y); x := y; y := z; n := n + 1; end while; g := x; end gcd;
  function cut input Real u; input Integer n = 5; output Real y;
  algorithm y := 0; for i in 1:n loop if i > 3 then break; end if; y := y + u * i; end for; end cut;
  function last input Real v[:]; input Real lim; output Integer k;
  algorithm for i in size(v, 1):-1:1 loop k := i; if v[i] < lim then return; end if; end for; k := 0; end last;
  function sums input Real u; output Real m[2]; output Boolean big; protected Real s;
  algorithm s := 0;
    for i in 1:2 loop for j in 1:2:5 loop s := s * 0.5 + u * i * j; if j == 3 then break; end if; end for; m[i] := s;
    end for; big := s > 10; end sums;
  model P Real y = cut(time), z = cut(time, 2); Integer k = last({time, 1, 2}, 1.5), g = gcd(integer(10 * time) + 6);
    Real m[2]; Boolean big; equation (m, big) = sums(time); end P;
  P p;
end T;"""


def test_functions_with_loops_that_end_early() -> None:
    result = run(FUNCTIONS)
    np.testing.assert_allclose(result["p.y"], 6 * TIMES)
    np.testing.assert_allclose(result["p.z"], 3 * TIMES)
    assert result["p.k"].values.tolist() == [2] * 4
    assert result["p.g"].values.tolist() == [np.gcd(int(10 * t + 1e-9) + 6, 12) for t in TIMES]
    for i, factor in enumerate((3.5, 8.0 - 0.125)):
        np.testing.assert_allclose(result[f"p.m[{i + 1}]"], factor * TIMES)
    assert result["p.big"].values.tolist() == [7.875 * t > 10 for t in TIMES]


def test_what_such_a_function_gives_a_parameter_is_not_made_up() -> None:
    text = """model T function count input Integer a; output Integer g; protected Integer x;
      algorithm x := a; g := 0; while x > 0 loop x := x - 2; g := g + 1; end while; end count;
      model P %s end P; P p; end T;"""
    constant = "constant Integer n = count(6); Real y; equation if n == 3 then y = time; else y = 2; end if;"
    np.testing.assert_allclose(run(text % constant)["p.y"], TIMES)
    for body in ("parameter Integer n = count(6); Real y = n;", "parameter Integer n = count(6); Real y[n] = ones(n);"):
        with pytest.raises(ModelError, match="'T' of The text cannot be flattened") as refused:
            run(text % body)
        assert "division by zero" not in str(refused.value)
