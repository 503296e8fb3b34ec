"""Models from Base Modelica texts, against closed forms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from modelica.texts import DRIVE, model

import grisaille as gr
from grisaille.errors import ModelError

TIMES = np.linspace(0.0, 2.0, 9)


def run(text: str, times: np.ndarray = TIMES, **options: object) -> object:
    return gr.simulate(gr.read_modelica(text), times, rtol=1e-9, **options)


def values(body: str, name: str, before: str = "") -> float:
    """The value of a variable of a static model."""
    return float(gr.analyze(gr.read_modelica(model(body, before))).start[name])


def test_names_values_units_and_words_are_modelicas() -> None:
    drive = gr.read_modelica(DRIVE)
    stiffness = drive.parameters["spring.c"]
    assert (stiffness.value, stiffness.unit, stiffness.description) == (8.0, "N.m/rad", "Stiffness")
    assert stiffness.bounds == (0.0, np.inf)
    assert drive.parameters["spring.d"].formula == "load.J/4" and drive.parameters["spring.d"].value == 0.5
    assert set(drive.parameters) == {"load.J", "spring.c", "spring.d"}
    angle = drive._content.variables["load.phi"]
    assert (angle.unit, angle.description, angle.fixed, angle.nominal) == ("rad", "Angle", True, 0.5)
    assert drive.start == {"load.phi": 1.0, "load.w": 0.0}


def test_an_array_may_be_named_before_its_entries_are_declared() -> None:
    body = """
      parameter Real 'length' = 'joint.size' * 2.0;
      parameter Real 'joint.size' = sum('joint.n');
      parameter Real 'joint.n[1]' = 'joint.n[2]' + 1.0;
      parameter Real 'joint.n[2]' = 3.0;
      Real 'x';
    equation
      'x' = 'length';
    """
    assert values(body, "x") == 14.0


def test_a_damped_oscillator_moves_as_it_must() -> None:
    result = run(DRIVE)
    rate, frequency = 0.5 / (2 * 2.0), np.sqrt(8.0 / 2.0 - (0.5 / 4.0) ** 2)
    exact = np.exp(-rate * TIMES) * (np.cos(frequency * TIMES) + rate / frequency * np.sin(frequency * TIMES))
    np.testing.assert_allclose(result["load.phi"], exact, atol=1e-7)
    assert result["load.phi"].attrs["units"] == "rad"
    np.testing.assert_array_equal(result["fast"], np.abs(result["load.w"]) > 0.5)


def test_parameters_stay_parameters() -> None:
    drive = gr.read_modelica(DRIVE).replace({"load.J": 4.0})
    assert drive.parameters["spring.d"].value == 1.0
    moved = gr.simulate(drive, TIMES, sensitivities=["spring.c", "start(load.phi)"])
    assert np.abs(moved["d(load.phi)"].values[-1]).min() > 1e-3


def test_parameters_and_starts_are_estimated() -> None:
    drive = gr.read_modelica(DRIVE).with_outputs({"angle": "load.phi"}, noise=0.01)
    times = np.linspace(0.0, 4.0, 60)
    rng = np.random.default_rng(1)
    data = gr.simulate(drive, times)["angle"].values + 0.01 * rng.standard_normal(60)
    record = gr.Experiment(time=times, outputs={"angle": data})
    fit = gr.fit(drive, record, estimate=["spring.c", "start(load.phi)"], guess={"spring.c": 6.0})
    assert abs(float(fit["spring.c"]) - 8.0) < 0.1
    assert abs(float(fit["start(load.phi)"]) - 1.0) < 0.02


def test_a_file_is_read_and_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "Drive.bmo"
    path.write_text(DRIVE, "utf-8")
    assert gr.read_modelica(path) == gr.read_modelica(str(path)) == gr.read_modelica(DRIVE)
    assert gr.read_modelica(path)._content.equations[0].source == "Drive.bmo, line 17"


def test_one_model_of_several_is_chosen() -> None:
    text = "model A Real x; equation x = 1.0; end A; model B Real x; equation x = 2.0; end B;"
    assert gr.analyze(gr.read_modelica(text, name="B")).start["x"] == 2.0
    with pytest.raises(ModelError, match="holds the models A, B"):
        gr.read_modelica(text)
    with pytest.raises(ModelError, match=r"no model 'b'\. Did you mean 'B'"):
        gr.read_modelica(text, name="b")


def test_arrays_are_counted_from_one_and_written_out() -> None:
    body = """
    parameter Real A[2, 2] = {{0.0, 1.0}, {-4.0, 0.0}};
    Real x[2](start = {1.0, 0.0}, each fixed = true);
    equation
    der(x) = A * x;
    """
    result = run(model(body))
    np.testing.assert_allclose(result["x[1]"], np.cos(2 * TIMES), atol=1e-7)
    np.testing.assert_allclose(result["x[2]"], -2 * np.sin(2 * TIMES), atol=1e-7)
    assert gr.read_modelica(model(body)).parameters["A[2,1]"].value == -4.0


def test_for_equations_and_comprehensions() -> None:
    body = """
    constant Integer n = 4;
    Real x[n];
    Real s;
    equation
    for i in 1:n loop
      x[i] = i ^ 2 + (if i > 2 then 1 else 0);
    end for;
    s = sum(x[i] * i for i in 1:2:n) + sum({i * j for i in 1:2, j in 1:3}) + x[end];
    """
    assert values(body, "s") == 1.0 + 3 * 10.0 + 18 + 17


def test_records_functions_and_loops() -> None:
    before = """
    record Point
      Real u;
      Real v = 2.0;
    end Point;
    function power
      input Real b;
      input Integer n = 3;
      output Real y = 1.0;
      output Real last;
    algorithm
      for i in 1:n loop
        y := y * b;
        if i == 2 then
          break;
        end if;
        last := i;
      end for;
    end power;
    function moved
      input Point p;
      output Point q;
    algorithm
      q := p;
      q.u := p.u + p.v;
    end moved;
    """
    body = """
    Real x(start = 0.0, fixed = true);
    Point p;
    Point q;
    Real y;
    Real z;
    equation
    der(x) = 1.0;
    p.u = x;
    p.v = 3.0;
    q = moved(p);
    (y, z) = power(2.0 + 0.0 * x);
    """
    result = run(model(body, before))
    np.testing.assert_allclose(result["q.u"], TIMES + 3.0)
    np.testing.assert_allclose(result["y"], 4.0)
    np.testing.assert_allclose(result["z"], 1.0)


def test_conditional_statements_become_conditions() -> None:
    before = """
    function f
      input Real x;
      output Real y;
    algorithm
      if x < 0.5 then
        y := x;
        return;
      elseif x < 1.0 then
        y := 1.0;
      else
        y := 2.0;
      end if;
      y := y * 10.0;
    end f;
    """
    result = run(model("Real x(start = 0.0, fixed = true); Real y; equation der(x) = 1.0; y = f(x);", before))
    expected = np.where(TIMES < 0.5, TIMES, np.where(TIMES < 1.0, 10.0, 20.0))
    inner = ~np.isin(TIMES, (0.5, 1.0))
    np.testing.assert_allclose(result["y"].values[inner], expected[inner], atol=1e-9)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("mod(-7, 3) + 10 * div(-7, 3) + 100 * rem(-7, 3)", 2 - 20 - 100),
        ("integer(2.7) + ceil(2.1) + floor(-2.1) + sign(-3)", 2 + 3 - 3 - 1),
        ("max({1, 5, 3}) - min(2, 7) + abs(-4)", 7),
        ("size(fill(1.0, 2, 3), 2) + sum(ones(2, 2)) + product({2, 3})", 3 + 4 + 6),
        ("{1, 2, 3} * {4, 5, 6} + (transpose([1, 2; 3, 4]) * {1, 1})[2]", 32 + 6),
        ("sum(cross({1, 0, 0}, {0, 1, 0})) + sum(cat(1, {1, 2}, {3})) + sum(linspace(0, 1, 3))", 1 + 6 + 1.5),
        ("semiLinear(-2.0, 3.0, 5.0) + homotopy(1.0, 2.0) + noEvent(2.0) + smooth(0, 1.0)", -10 + 4),
        ("atan2(1.0, 1.0) * 4 + log10(100) + exp(0) + sqrt(16) + 2 ^ 3", np.pi + 2 + 1 + 4 + 8),
        ("if 1 < 2 and not 3 < 2 or false then 1 else 2", 1),
        ("-2 ^ 2 + 3 - -1", -4 + 4),
    ],
)
def test_functions_of_the_language(formula: str, expected: float) -> None:
    assert values(f"Real y; equation y = {formula};", "y") == pytest.approx(expected, rel=1e-14)


def test_enumerations_booleans_and_integers_give_formulas() -> None:
    before = "type Gear = enumeration(low, high);"
    body = """
    parameter Gear gear = Gear.high;
    Real x(start = 0.0, fixed = true);
    Boolean a;
    Boolean b;
    Integer n;
    Real y;
    equation
    der(x) = 1.0;
    b = a;
    a = not x < 1.0 or gear == Gear.low;
    n = if b then 2 else 1;
    y = if n == 2 then 10.0 * x else x;
    """
    result = run(model(body, before), np.array([0.0, 0.5, 1.5, 2.0]))
    np.testing.assert_array_equal(result["a"], [0, 0, 1, 1])
    np.testing.assert_array_equal(result["n"], [1, 1, 2, 2])
    np.testing.assert_allclose(result["y"], [0.0, 0.5, 15.0, 20.0], atol=1e-9)


def test_if_equations_are_decided_or_become_conditions() -> None:
    body = """
    parameter Boolean stiff = false;
    parameter Real limit = 1.0;
    Real x(start = 0.0, fixed = true);
    Real y;
    Real z;
    equation
    if stiff then
      x = 0.0;
    elseif limit > 0.5 then
      der(x) = 1.0;
    end if;
    if x > 1.0 then
      y = 2.0;
      z = x;
    else
      z = -x;
      y = 1.0;
    end if;
    """
    made = gr.read_modelica(model(body))
    assert "limit" not in made.parameters
    result = gr.simulate(made, np.array([0.0, 0.5, 1.5]))
    np.testing.assert_allclose(result["y"], [1.0, 1.0, 2.0])
    np.testing.assert_allclose(result["z"], [0.0, -0.5, 1.5], atol=1e-9)
    with pytest.raises(ModelError, match="'limit' was settled at 1 when the model was read"):
        made.replace({"limit": 2.0})


def test_an_algorithm_section_gives_its_variables() -> None:
    body = """
    Real x(start = 1.0, fixed = true);
    Real y;
    Real z;
    equation
    der(x) = -x;
    algorithm
    y := x;
    for i in 1:3 loop
      y := y * x;
    end for;
    z := y + 1.0;
    """
    result = run(model(body))
    np.testing.assert_allclose(result["z"], np.exp(-4 * TIMES) + 1, atol=1e-7)


def test_initial_equations_decide_the_start() -> None:
    body = """
    parameter Real k = 2.0;
    parameter Real gain(fixed = false, start = 1.0);
    Real x(start = 7.0);
    Real v;
    Real w;
    initial equation
    der(x) = 0.0;
    v = 3.0;
    gain * v = 12.0;
    equation
    der(x) = 4.0 - k * x;
    der(v) = -v;
    w = gain * x;
    """
    result = run(model(body))
    np.testing.assert_allclose(result["x"], 2.0, atol=1e-9)
    np.testing.assert_allclose(result["v"], 3.0 * np.exp(-TIMES), atol=1e-7)
    np.testing.assert_allclose(result["w"], 8.0, atol=1e-8)


def test_names_that_python_would_not_take() -> None:
    body = """
    parameter Real 'drive.start' = 2.0;
    Real parameters(start = 1.0, fixed = true);
    Real 'a-b.start'(start = 0.0, fixed = true);
    Real 'lambda';
    equation
    der(parameters) = -'drive.start' * parameters;
    der('a-b.start') = 1.0;
    'lambda' = 2 * 'a-b.start';
    """
    made = gr.read_modelica(model(body)).replace({"drive.start": 1.0})
    result = gr.simulate(made, TIMES, rtol=1e-9, sensitivities=["drive.start", "start(parameters)"])
    np.testing.assert_allclose(result["parameters"], np.exp(-TIMES), atol=1e-7)
    np.testing.assert_allclose(result["lambda"], 2 * TIMES, atol=1e-9)


def test_inputs_of_the_model_are_inputs() -> None:
    text = model("input Real u(start = 1.0); output Real y; Real x(start = 0.0); equation der(x) = u; y = 2 * x;")
    made = gr.read_modelica(text)
    assert list(made._content.inputs) == ["u"] and list(made._content.outputs) == ["y"]
    result = gr.simulate(made, np.array([0.0, 1.0]), inputs={"u": 3.0})
    assert float(result["y"][-1]) == pytest.approx(6.0)


def test_functions_of_the_library_that_exports_leave_out() -> None:
    body = """
    Real n[3] = 'Modelica.Math.Vectors.normalize'({3.0, 0.0, 4.0});
    Real phi[6] = 'Modelica.Electrical.Polyphase.Functions.symmetricOrientation'(6);
    Real T[3, 3] = 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.planarRotation'({0.0, 0.0, 1.0}, 0.3);
    """
    start = gr.analyze(gr.read_modelica(model(body))).start
    assert [start[f"n[{k}]"] for k in (1, 2, 3)] == [0.6, 0.0, 0.8]
    phases = np.array([0, 2, 4, -0.5, 1.5, 3.5]) * np.pi / 3
    np.testing.assert_allclose([start[f"phi[{k}]"] for k in range(1, 7)], phases)
    assert (start["T[1,1]"], start["T[1,2]"]) == pytest.approx((np.cos(0.3), np.sin(0.3)))


def test_long_sums_and_long_chains_cost_no_depth() -> None:
    terms = " + ".join(f"{k}.0 * x" for k in range(1, 4001))
    parameters = "".join(f"parameter Integer p{k} = p{k - 1} + 1;" for k in range(1, 2001))
    body = f"parameter Integer p0 = 0; {parameters} Real x; Real y; equation x = 1.0; y = {terms} + p2000;"
    assert values(body, "y") == 4000 * 4001 / 2 + 2000


def test_reading_grows_linearly() -> None:
    def calls(n: int) -> int:
        """Of Python functions while n equations are read."""
        lines = "".join(f"Real x{k}(start = 1.0); " for k in range(n))
        rows = "".join(f"der(x{k}) = -x{(k + 1) % n}; " for k in range(n))
        count = 0

        def look(frame: object, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(look)
        try:
            found = gr.read_modelica(model(f"{lines} equation {rows}"))
        finally:
            sys.setprofile(None)
        assert len(found._content.equations) == n
        return count

    assert calls(1000) < 2.2 * calls(500)


def test_branches_of_an_if_may_give_entries_in_another_order() -> None:
    text = model(
        "Real s(start = 0.0); Real x[2]; equation der(s) = 1.0; "
        "if s > 0.5 then x[1] = 1.0; x[2] = 2.0; else x[2] = 3.0; x[1] = 4.0; end if;"
    )
    run = gr.simulate(gr.read_modelica(text), np.array([0.0, 0.25, 0.75]))
    assert run["x[1]"].values.tolist() == [4.0, 4.0, 1.0]
    assert run["x[2]"].values.tolist() == [3.0, 3.0, 2.0]
