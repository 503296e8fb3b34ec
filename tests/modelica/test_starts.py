"""Starts of variables that are equal: which one counts, by where it was written and by ``der()``."""

from __future__ import annotations

import numpy as np
import pytest
from modelica import texts

import grisaille as gr
from grisaille.errors import StructureError
from grisaille.modelica import Tokens
from grisaille.modelica.full import path_of, written_before


def flat(declared: str, equations: str) -> str:
    return texts.model(f"{declared}\nequation\n{equations}")


LEVELS = """
type Temp = Real(start = 288.15);
connector Port
  Temp T;
  flow Real Q;
end Port;
partial model Base
  parameter Real T0 = 300.0;
  Temp T(start = 310.0), rate;
  Port port;
equation
  T = port.T;
  rate = der(T);
end Base;
model Capacity
  extends Base(T(start = T0));
equation
  2.0*rate = port.Q;
end Capacity;
model Loss
  Port port;
equation
  port.Q = port.T - 280.0;
end Loss;
model Wall
  Capacity a, b(T0 = 320.0);
  Loss loss;
equation
  connect(a.port, loss.port);
  connect(b.port, loss.port);
end Wall;
model Outer
  Wall by_parameter(b(T0 = 330.0)), by_start(a(T(start = 340.0)), loss(port(T(start = 350.0))));
  Wall asked(loss(port(T(start = 360.0, fixed = true))));
  Capacity alone;
end Outer;
"""


@pytest.mark.parametrize(
    ("text", "value", "key", "names"),
    [
        ("Plant plant(wall(T(fixed = true, start = 350)));", "350", "start", ["plant", "wall", "T"]),
        ("Plant p, q[2](wall.T(each start = f(350)));", "350", "start", ["q", "wall", "T"]),
        ("extends A.B(n = {1, 2}, T(start = -T0, unit = ')'));", "T0", "start", ["T"]),
        ("type Temperature = output Real(min = 0, start = 288.15);", "288.15", "start", []),
        ("model Hot = Cold(T(start = 350));", "350", "start", ["T"]),
        ("Plant plant(redeclare model M = Hot(x(start = 350)));", "350", "start", ["plant", "x"]),
        ("x = 1; Plant plant(wall(T0(unit = 'K') = 350));", "350", "T0", ["plant", "wall"]),
        ("Real x = 350;", "350", "start", None),
    ],
)
def test_components_that_a_modifier_is_written_with(text: str, value: str, key: str, names: list[str] | None) -> None:
    tokens = Tokens(text)
    found = written_before(tokens, tokens.values.index(value), key)
    assert (None if found is None else list(found.names)) == names


def test_confidence_numbers() -> None:
    def level(text: str, variable: str) -> int:
        tokens = Tokens(text)
        found = written_before(tokens, tokens.values.index("350"), "start")
        assert found is not None
        return found.level(path_of(variable))

    assert level("W w(c(T(start = 350)));", "w.c[1,2].T") == 1
    assert level("C c(T(start = 350));", "w.c.T") == 2
    assert level("type T = Real(start = 350);", "w.c.T") == 4  # beyond the declaration itself
    assert level("P w(redeclare model M = H(x(start = 350)));", "w.m.x") == 1


def test_of_flat_text_the_variable_under_der_counts() -> None:
    text = "Real y(start = 0); Real x(start = 2); Real z(start = 7), g;"
    model = gr.read_modelica(flat(text, "der(x) = -y; y = x; z = g - x; 0 = g;"))
    assert model.start == {"x": 2.0}
    result = gr.simulate(model, [0.0, 1.0], rtol=1e-9)
    assert result["z"].values == pytest.approx(-2.0 * np.exp([0.0, -1.0]), abs=1e-7)


def test_demands_count_before_wishes_and_must_not_contradict_each_other() -> None:
    text = "Real x(start = 2{}); Real y(start = 5, fixed = true);"
    model = gr.read_modelica(flat(text.format(""), "der(x) = -x; 0 = x + y;"))
    assert model.start == {"x": -5.0, "y": 5.0}
    with pytest.raises(StructureError, match="contradict each other"):
        gr.simulate(gr.read_modelica(flat(text.format(", fixed = true"), "der(x) = -x; 0 = x + y;")), [0.0, 1.0])


def test_two_starts_of_equal_confidence_are_told() -> None:
    text = "Real x(start = 2); Real y(start = 5); Real z;"
    with pytest.warns(UserWarning, match="'x' and 'y' are equal, their starts are not: x's counts"):
        model = gr.read_modelica(flat(text, "der(x) = -x; der(y) = z; y = x;"))
    assert model.start == {"x": 2.0, "y": 2.0}
    guesses = gr.read_modelica(flat(text, "z = sin(x); y = x; 2 = y + z;"))
    assert guesses.start == {"x": 2.0, "y": 5.0}  # of algebraic equations, first guesses


def test_the_outermost_start_counts() -> None:
    pytest.importorskip("rumoca")
    model = gr.read_modelica(LEVELS)
    first = gr.simulate(model, [0.0, 1.0]).isel(time=0)
    begun = {name: float(first[f"{name}.a.T"]) for name in ("by_parameter", "by_start", "asked")}
    assert begun["by_parameter"] == pytest.approx(330.0)  # both T(start = T0), one T0 set further outside
    assert begun["by_start"] == pytest.approx(340.0)  # both set on the first level: the one under der()
    assert begun["asked"] == pytest.approx(360.0)
    assert float(first["alone.T"]) == pytest.approx(300.0)  # neither the type's 288.15 nor a zero that nobody wrote
    assert "alone.rate" not in model.start or model.start["alone.rate"] == 288.15


@pytest.mark.parametrize("initial", ["x = 2", "x = 2 * a", "x = 1; x = 3", "der(x) = 5"])
def test_a_demanded_start_and_an_initial_equation_must_not_contradict_each_other(initial: str) -> None:
    body = f"parameter Real a = 1; Real x(start = 1, fixed = true); initial equation {initial};"
    model = gr.read_modelica(texts.model(f"{body} equation der(x) = -x;"))
    with pytest.raises(StructureError, match=r"The fixed starts x contradict .* Drop one of the fixed starts"):
        gr.simulate(model, [0.0, 1.0])


@pytest.mark.parametrize("initial", ["x = 2", "x = a", "x = a + 1 - 1"])
def test_what_is_demanded_twice_alike_holds(initial: str) -> None:
    body = f"parameter Real a = 2; Real x(start = 2, fixed = true); initial equation {initial};"
    model = gr.read_modelica(texts.model(f"{body} equation der(x) = -x;"))
    assert float(gr.simulate(model, [0.0, 1.0]).x[0]) == 2.0


@pytest.mark.parametrize(
    ("declared", "initial"),
    [
        ("Integer n(start = 1, fixed = true)", "pre(n) = 2"),
        ("Integer n(start = 1, fixed = true)", "n = 2"),
        ("Integer n(start = 1)", "n = 2; pre(n) = 3"),
        ("Boolean n(start = true, fixed = true)", "pre(n) = false"),
        ("discrete Real n(start = 1, fixed = true)", "pre(n) = 2"),
    ],
)
def test_discrete_variables_do_not_begin_at_two_values(declared: str, initial: str) -> None:
    body = "when time > 0.5 then n = pre(n); end when;"
    text = texts.model(f"{declared}; initial equation {initial}; equation {body}")
    with pytest.raises(gr.ModelError, match=r"'n' begins at .* here, and at .*: leave one of them out"):
        gr.read_modelica(text)


def test_states_without_starts_begin_where_preferred_variables_say() -> None:
    preferred = "stateSelect = StateSelect.prefer"
    body = f"""parameter Real A = 2; parameter Real T0 = 300; Real m; Real U; Real V; Real u;
        Real T(start = T0, {preferred}); Real level(start = 0.8, {preferred});
        equation V = A * level; m = 1000 * V; u = 4 * (T - 273); U = m * u; der(m) = -1; der(U) = 0;"""
    model = gr.read_modelica(texts.model(body))
    for changed, temperature in (({}, 300.0), ({"T0": 310.0}, 310.0)):
        run = gr.simulate(model.replace(changed), [0.0, 1.0])
        assert [float(run[n][0]) for n in ("m", "T")] == pytest.approx([1600.0, temperature])
