"""Arrays and records of variables that change at events, sizes that are types, and loops and calls with a bound."""

from __future__ import annotations

import numpy as np
import pytest
from modelica import texts

import grisaille as gr
from grisaille.errors import ModelError

CLASSES = """
type 'E' = enumeration('a', 'b', 'c');
record 'R' Integer n; Boolean b[2]; Real v; end 'R';
function 'make' input Real x; output 'R' r; output Integer m; output Real w;
algorithm r.n := integer(2*x + 0.13); r.b := {true, x > 0.6}; r.v := x; m := integer(x + 0.5); w := 2*x;
end 'make';
function 'power' input Integer n; input Real x; output Real y;
algorithm y := if n <= 0 then 1 else x*'power'(n - 1, x); end 'power';
function 'root' input Real a; output Real y; protected Integer n; Real gap;
algorithm y := a; n := 0; gap := 1;
while gap > 1e-12 and n < 8 loop y := (y + a/y)/2; gap := abs(y*y - a); n := n + 1; end while;
end 'root';
"""
BODY = """
Real x(start = 0, fixed = true);
Boolean b[4], m[2, 2], c[2];
Integer k[2], n[2](each start = 0, each fixed = true), q[3](each start = 0, each fixed = true);
Integer a[2](each start = 0, each fixed = true), w[2](each start = 0, each fixed = true);
Integer p; Real z; 'R' r, s;
Real t['E'], u[Boolean]; parameter Real g['E'] = {10, 20, 30}; 'E' e; Real chosen, total, of_truth;
Real cube, square_root, change;
equation
der(x) = 1;
b[1:2] = {x > 0.3, x > 0.8};
b[3] = b[1] and not b[2];
b[4] = pre(b[3]);
for i in 1:2, j in 1:2 loop m[i, j] = x > 0.3*i + 0.1*j; end for;
for i in 1:2 loop
  if x > 0.3*i then c[i] = true; else c[i] = x < 0.1*i; end if;
  k[i] = integer(x*i + 0.13);
  when change(k[i]) then n[i] = pre(n[i]) + 1; end when;
end for;
when x > 0.3 then
  for i in 1:2 loop q[i] = pre(q[i]) + i; end for;
  q[3] = q[1] + pre(q[2]);
end when;
r = 'make'(x);
(s, p, z) = 'make'(x);
t['E'.'a'] = x; t['E'.'b'] = 2*x; t['E'.'c'] = 3;
e = if x > 0.5 then 'E'.'b' else 'E'.'c';
chosen = t[e]; total = sum(g[i] for i in 'E');
u = {1, 5}; of_truth = u[b[1]];
cube = 'power'(3, x + 1); square_root = 'root'(x + 1); change = der(x*cube - x);
algorithm
for i in 1:2 loop
  when x > 0.3*i then a[i] := pre(a[i]) + i; end when;
end for;
algorithm
when x > 0.3 then
  for i in 1:2 loop w[i] := pre(w[i]) + i; end for;
elsewhen x > 0.6 then
  w[2] := 7;
end when;
"""
TIMES = np.array([0.0, 0.05, 0.25, 0.35, 0.55, 0.75, 0.95, 1.45])


@pytest.fixture(scope="module")
def run() -> dict[str, np.ndarray]:
    result = gr.simulate(gr.read_modelica(texts.model(BODY, CLASSES)), TIMES, rtol=1e-9)
    return {name: result[name].values for name in result.data_vars}


t = TIMES
EXPECTED = {
    "b[2]": t > 0.8, "b[3]": (t > 0.3) & (t < 0.8), "b[4]": (t > 0.3) & (t < 0.8), "m[2,1]": t > 0.7,
    "m[1,2]": t > 0.5, "c[1]": (t > 0.3) | (t < 0.1), "c[2]": (t > 0.6) | (t < 0.2), "n[2]": np.floor(2*t + 0.13),
    "q[1]": t > 0.3, "q[3]": t > 0.3, "r.n": np.floor(2*t + 0.13), "r.b[2]": t > 0.6, "r.v": t,
    "p": np.floor(t + 0.5), "z": 2*t, "chosen": np.where(t > 0.5, 2*t, 3), "total": 60 + 0*t,
    "of_truth": np.where(t > 0.3, 5, 1), "cube": (t + 1)**3, "square_root": np.sqrt(t + 1),
    "change": (t + 1)**3 + 3*t*(t + 1)**2 - 1, "a[1]": t > 0.3, "a[2]": 2*(t > 0.6),
    "w[2]": np.where(t > 0.6, 7, 2*(t > 0.3)),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_entries(run: dict[str, np.ndarray], name: str) -> None:
    assert run[name] == pytest.approx(np.asarray(EXPECTED[name], dtype=float), abs=1e-6)


def test_loops_and_calls_without_a_bound_are_refused() -> None:
    endless = "function 'f' input Real x; output Real y; algorithm {} end 'f';"
    loop = endless.format("y := x; while y > 1.5 loop y := y - 1; end while;")
    itself = endless.format("y := if x < 1.5 then x else 'f'(x - 1);")
    for function, words in ((loop, "'while' may be repeated more than 100 times"), (itself, "calls itself more than")):
        with pytest.raises(ModelError, match=words):
            gr.read_modelica(texts.model("Real y; equation y = 'f'(time);", function))


FIELDS = """record 'P' Real k; Real x[2]; end 'P';
function 'seconds' input 'P' p[:]; output Real s; algorithm s := sum(p.x[2]); end 'seconds';
function 'firsts' input 'P' p[:]; output Real s; algorithm s := sum(p[2:3].x[1]); end 'firsts';"""


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("sum(p.x[2])", 6), ("sum(p[2:3].x[1])", 50), ("sum(p.x)", 66), ("p[3].x[2] + p[2].x[1]", 23),
        ("sum(p[:].x[{2, 1}])", 66), ("'seconds'(p)", 6), ("'firsts'(p)", 50), ("sum(p.x[end])", 6),
    ],
)  # fmt: skip
def test_subscripts_of_a_field_of_an_array_of_records(formula: str, value: float) -> None:
    body = f"""'P' p[3]; Real y;
    equation for i in 1:3 loop p[i].k = i; p[i].x = {{10 * i, i}}; end for; y = {formula};"""
    result = gr.simulate(gr.read_modelica(texts.model(body, FIELDS)), [0.0, 1.0])
    assert result["y"].values[-1] == value
