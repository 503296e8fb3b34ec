"""Functions that exports call without bringing them: against closed forms, and what they promise of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model
from scipy.special import ndtri

import grisaille as gr
from grisaille.errors import ModelError
from grisaille.model import Name
from grisaille.model.lowering import evaluate
from grisaille.modelica import Calling, FunctionLibrary, RecordValue, parse

FLUID, SPICE = "Modelica.Fluid.Utilities.", "Modelica.Electrical.Spice3.Internal."


def call(name: str, *arguments: object, text: str = "") -> object:
    plain = [float(a) if isinstance(a, np.floating) else a for a in arguments]
    return FunctionLibrary(list(parse(text))).call(Calling(0, name, [], {}), plain, {})


# --- wall friction ---

PIPE = (1000.0, 900.0, 1e-3, 2e-3, 10.0, 0.05, np.pi * 0.05**2 / 4, 2000.0, 4000.0, 5e-4)
DETAILED = "M.pipe.flowModel.WallFriction.Internal."
ROUGH = """
function 'M.pipe.flowModel.WallFriction.massFlowRate_dp_staticHead'
  input Real roughness; output Real y;
algorithm
  assert(roughness > 1e-10, "rough"); y := roughness;
end 'M.pipe.flowModel.WallFriction.massFlowRate_dp_staticHead';
"""


@pytest.mark.parametrize("text", ["", ROUGH])
def test_laminar_flow_is_that_of_hagen_and_poiseuille(text: str) -> None:
    flow, slope = call(DETAILED + "m_flow_of_dp_fric", 0.5, *PIPE, text=text)
    assert flow == pytest.approx(0.5 * np.pi * 0.05**4 * 1000.0 / (128 * 1e-3 * 10.0))
    assert slope == pytest.approx(flow / 0.5)
    back, _ = call(DETAILED + "m_flow_of_dp_fric", -0.5, *PIPE, text=text)
    assert back == pytest.approx(-flow * 900.0 / 1000.0 * 1e-3 / 2e-3)


def test_turbulent_flow_obeys_colebrook() -> None:
    flow, _ = call(DETAILED + "m_flow_of_dp_fric", 2e4, *PIPE)
    speed = flow / (1000.0 * PIPE[6])
    factor = 2e4 * 2 * 0.05 / (10.0 * 1000.0 * speed**2)
    reynolds = speed * 0.05 * 1000.0 / 1e-3
    assert 1 / np.sqrt(factor) == pytest.approx(-2 * np.log10(2.51 / (reynolds * np.sqrt(factor)) + 0.27 * 5e-4))


def test_a_rough_wall_has_a_quadratic_law() -> None:
    flow, _ = call(DETAILED + "m_flow_of_dp_fric", 2e4, *PIPE, text=ROUGH)
    factor = 1 / (2 * np.log10(3.7 / 5e-4)) ** 2
    assert flow == pytest.approx(PIPE[6] * np.sqrt(2 * 1000.0 * 2e4 * 0.05 / (10.0 * factor)))


@pytest.mark.parametrize("text", ["", ROUGH])
@pytest.mark.parametrize("name", ["m_flow_of_dp_fric", "dp_fric_of_m_flow"])
def test_friction_is_smooth_and_its_derivative_is_one(name: str, text: str) -> None:
    points = np.geomspace(1e-2, 5e4, 80) if name[0] == "m" else np.geomspace(1e-3, 20.0, 80)
    for x in (*points, *-points):
        h = 1e-6 * abs(x)
        (above, _), (below, _) = (call(DETAILED + name, x + d, *PIPE, text=text) for d in (h, -h))
        _, slope = call(DETAILED + name, x, *PIPE, text=text)
        assert slope == pytest.approx((above - below) / (2 * h), rel=1e-3)


@pytest.mark.parametrize(
    "data",
    [
        (-1.0, 2.0, -3.0, 1.0, 0.2, 3.0),
        (-1.0, 1.0, -1.0, 1.0, 5.0, 5.0),
        (0.0, 1.0, 0.0, 1.0, 0.5, 0.5),
        (0.0, 1.0, 0.0, 1.0, 0.0, 2.5),
    ],
)
def test_the_regularisation_is_monotone_and_meets_values_and_slopes(data: tuple[float, ...]) -> None:
    x0, x1, y0, y1, d0, d1 = data
    values = [call(FLUID + "regFun3", x, *data)[0] for x in np.linspace(x0, x1, 201)]
    assert values[0] == pytest.approx(y0)
    assert values[-1] == pytest.approx(y1)
    assert (np.diff(values) > 0).all()
    ends = [(call(FLUID + "regFun3", x, *data)[0] - y) / 1e-6 for x, y in ((x0 + 1e-6, y0), (x1 - 1e-6, y1))]
    np.testing.assert_allclose(ends, (d0, -d1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("k1", "k2"), [(2.0, 0.5), (0.5, 2.0), (1.0, 1.0)])
def test_roots_and_squares_are_smooth_through_zero(k1: float, k2: float) -> None:
    x = np.linspace(-0.03, 0.03, 601)
    root = np.array([call(FLUID + "regRoot2", v, 0.01, k1, k2) for v in x])
    square = np.array([call(FLUID + "regSquare2", v, 0.01, k1, k2) for v in x])
    for y in (root, square):
        assert (np.diff(y) > 0).all()
        assert np.abs(np.diff(np.diff(y))).max() < 0.05 * np.abs(np.diff(y)).max()
    np.testing.assert_allclose(root[[0, -1]], [-np.sqrt(k2 * 0.03), np.sqrt(k1 * 0.03)])
    np.testing.assert_allclose(square[[0, -1]], [-k2 * 0.03**2, k1 * 0.03**2])


# --- SPICE ---


def test_junctions_conduct_exponentially_and_go_on_straight() -> None:
    vt = 300.15 * 1.380649e-23 / 1.6021918e-19
    current, cond = call(SPICE + "Functions.junction2", 0.6, 300.15, 1.0, 1e-14)
    assert current == pytest.approx(1e-14 * (np.exp(0.6 / vt) - 1) + 0.6e-12)
    assert cond == pytest.approx(1e-14 * np.exp(0.6 / vt) / vt + 1e-12)
    far, slope = call(SPICE + "Functions.junction2", 5.0, 300.15, 1.0, 1e-14)
    further, _ = call(SPICE + "Functions.junction2", 6.0, 300.15, 1.0, 1e-14)
    assert further - far == pytest.approx(slope)
    broken, _ = call(SPICE + "Functions.junction3", -10.5, 300.15, 1.0, 1e-14, 10.0)
    assert broken == pytest.approx(-1e-14 * np.exp(0.5 / vt) - 10.5e-12)


def test_the_charge_of_a_junction_grows_with_its_capacitance() -> None:
    m, fc, phi = 0.33, 0.5, 0.8
    f1, f2, f3 = phi * (1 - (1 - fc) ** (1 - m)) / (1 - m), (1 - fc) ** (1 + m), 1 - fc * (1 + m)
    for v in (-2.0, 0.3, fc * phi, 0.9):
        (cap, _), (_, above), (_, below) = (
            call(SPICE + "Functions.junctionCapRevised", 1.0, v + h, fc * phi, m, phi, f1, f2, f3)
            for h in (0.0, 1e-5, -1e-5)
        )
        assert cap == pytest.approx((above - below) / 2e-5, rel=1e-4)


def test_a_mosfet_saturates_and_its_gate_is_continuous() -> None:
    given = RecordValue("Calc", {"m_tPhi": 0.6, "m_tVbi": 0.5, "m_Beta": 2e-3, "m_capOx": 3e-15})
    given |= dict.fromkeys(("m_von", "m_vdsat", "m_cdrain"), 0.0)
    fields = "".join(f"Real qm_{n};" for n in "capgs capgd capgb qgs qgb qgd vgs vgb vgd".split())
    text = f"record '{SPICE}Mos.DEVqmeyer' {fields} end '{SPICE}Mos.DEVqmeyer';"
    text += f"record '{SPICE}Mos1.Mos1Calc' {''.join(f'Real {n};' for n in given)} end '{SPICE}Mos1.Mos1Calc';"
    line, variables = RecordValue("P", {"m_lambda": 0.1}), RecordValue("V", {"m_gamma": 0.4})

    def drain(vb: float, vg: float, vds: float) -> RecordValue:
        return call(SPICE + "Mos1.drainCur", vb, vg, vds, given, line, RecordValue("C"), variables, 1, text=text)

    threshold = 0.5 + 0.4 * np.sqrt(0.6 + 1.0)
    assert drain(-1.0, 3.0, 5.0)["m_cdrain"] == pytest.approx(1e-3 * (3.0 - threshold) ** 2 * 1.5)
    assert drain(-1.0, 3.0, 0.1)["m_cdrain"] == pytest.approx(2e-3 * 1.01 * 0.1 * (3.0 - threshold - 0.05))
    assert drain(-1.0, threshold - 0.1, 5.0)["m_cdrain"] == 0
    caps = []
    for vg in np.linspace(-1.0, 6.0, 351):
        made = call(SPICE + "Mos.mosCalcDEVqmeyer", vg, vg - 1.0, vg, drain(0.0, vg, 1.0), text=text)
        caps.append([made["qm_capgs"], made["qm_capgd"], made["qm_capgb"]])
    assert np.abs(np.diff(caps, axis=0)).max() < 0.05 * 3e-15
    np.testing.assert_allclose(caps[0], [0, 0, 1.5e-15])


# --- how functions are called ---
def test_of_several_results_a_formula_takes_the_first_and_smooth_functions_make_no_events() -> None:
    function = """
    function 'f' input Real x; output Real y; output Real z;
    algorithm
      z := 1.0; y := if x > 0.5 then x - 0.25 else x ^ 2; annotation(smoothOrder = 1);
    end 'f';
    """
    text = model("Real x(start = 1.0, fixed = true); equation der(x) = -2.0 * 'f'(x);", function)
    result = gr.simulate(gr.read_modelica(text), np.array([0.0, 0.3, 1.0]), rtol=1e-9)
    switch = np.log(3.0) / 2  # x = 1/4 + 3/4 exp(-2 t) reaches 1/2
    expected = [1.0, 0.25 + 0.75 * np.exp(-0.6), 1 / (2 + 2 * (1.0 - switch))]
    np.testing.assert_allclose(result["x"], expected, rtol=1e-6)
    assert result.attrs.get("events", 0) == 0


def test_what_is_promised_to_be_smooth_has_no_events_and_what_a_name_stands_for_has_its_own() -> None:
    body = """
    Real x(start = 1.0, fixed = true); Real y; Real z;
    equation
    der(x) = -1.0; y = if x > 0.5 then 1.0 else 0.0; z = smooth(0, if x > 0.25 then x else 0.25) + smooth(1, y);
    """
    result = gr.simulate(gr.read_modelica(model(body)), np.array([0.0, 0.6, 0.9]))
    np.testing.assert_allclose(result["z"], [2.0, 0.4, 0.25])


def test_clocks_tick_where_index_reduction_leaves_no_state() -> None:
    body = """
    Real u; Real i; discrete Real n(start = 0.0, fixed = true);
    equation
    u = time + n; i = der(u);
    when sample(0.25, 0.5) then n = pre(n) + 1.0; end when;
    """
    result = gr.simulate(gr.read_modelica(model(body)), np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(result["n"], [0, 1, 2])
    np.testing.assert_allclose(result["i"], 1.0)


def test_a_record_with_an_empty_field_is_set_as_a_whole() -> None:
    record = "record 'R' Real 'a'; Real 'b'; end 'R';"
    body = """
    Real 'r.a'; Real 'r.b'; Real x(start = 1.0, fixed = true);
    equation der(x) = -'r.b';
    algorithm 'r' := 'R'({}, x); 'r.a' := 2.0;
    """
    plant = gr.read_modelica(model(body.format("#EMPTY#"), record))
    assert gr.simulate(plant, np.array([0.0, 1.0]))["x"].values[-1] == pytest.approx(np.exp(-1.0), rel=1e-5)
    with pytest.raises(ModelError, match="value"):
        gr.read_modelica(model(body.format("#EMPTY#").replace("'r.a' := 2.0;", ""), record))


def test_other_missing_functions_stay_refused_and_errors_inside_supplied_ones_name_the_line() -> None:
    body = "Real x;\nequation\nx = 'Modelica.Fluid.Utilities.{}'(time, 1.0);"
    with pytest.raises(ModelError, match=r"line 7: the function 'Modelica.Fluid.Utilities.regNothing' is not defined"):
        gr.read_modelica(model(body.format("regNothing")))
    with pytest.raises(ModelError, match=r"line 7: in 'Modelica.Fluid.Utilities.regFun3', which is supplied: .* needs"):
        gr.read_modelica(model(body.format("regFun3")))


def test_functions_without_results_check_among_the_equations() -> None:
    function = """
    function 'check' input Real a; input Real b;
    algorithm
      assert(a > 0.0, "a must be positive");
      if b > 0.0 then 'Modelica.Utilities.Streams.error'("b is " + String(b)); end if;
    end 'check';
    """
    body = "Real x(start = 1.0, fixed = true); equation der(x) = -x; 'check'({}, {});"
    gr.read_modelica(model(body.format("1.0", "x"), function))  # whether b is positive only a run knows
    with pytest.raises(ModelError, match="a must be positive"):
        gr.read_modelica(model(body.format("-1.0", "x"), function))
    with pytest.raises(ModelError, match="gives up: b is 2"):
        gr.read_modelica(model(body.format("1.0", "2.0"), function))


# --- random numbers ---


def drawn(words: list[int], plus: bool) -> tuple[float, list[int]]:
    """One step of the generators on Python's own whole numbers."""
    most = 2**64 - 1
    if plus:
        first, second = words
        first ^= (first << 23) & most
        words = [second, ((first ^ second ^ (first >> 17) ^ (second >> 26)) + second) & most]
    else:
        (x,) = words
        x ^= x >> 12
        x ^= (x << 25) & most
        words = [((x ^ (x >> 27)) * 2685821657736338717) & most]
    signed = words[-1] - 2**64 if words[-1] >> 63 else words[-1]
    return signed * 2.0**-64 + 0.5, words


@pytest.mark.parametrize(("name", "length"), [("Xorshift64star", 1), ("Xorshift128plus", 2)])
def test_generators_are_exact_settled_and_as_formulas(name: str, length: int) -> None:
    words = [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03][:length]
    halves = [h - 2**32 if h >> 31 else h for w in words for h in (w & 0xFFFFFFFF, w >> 32)]
    state = np.array(halves, dtype=object)
    names = np.array([Name(f"s{k}") for k in range(2 * length)], dtype=object)
    number, following = call(f"Modelica.Math.Random.Generators.{name}.random", names)
    for _ in range(3):
        values = {f"s{k}": float(v) for k, v in enumerate(state)}
        found = evaluate([number, *following], values)
        expected, words = drawn(words, length == 2)
        settled, state = call(f"Modelica.Math.Random.Generators.{name}.random", state)
        assert found[0] == settled == expected
        assert [int(v) for v in found[1:]] == list(state)
        assert [(state[k] % 2**32) | (state[k + 1] % 2**32) << 32 for k in range(0, 2 * length, 2)] == words


def test_quantiles_of_the_normal_distribution() -> None:
    for u in (1e-12, 1e-3, 0.2, 0.5, 0.93, 1 - 1e-9):
        assert call("Modelica.Math.Distributions.Normal.quantile", u, 1.0, 2.0) == pytest.approx(
            1 + 2 * ndtri(u), rel=1e-12, abs=1e-12
        )


# --- flows, subscripts, tables ---
def test_without_a_flow_semi_linear_gives_the_mean_and_with_one_what_flows_in() -> None:
    """Two vessels and a node between them, at which enthalpies mix."""
    body = """
    Real m; Real h; Real H1; Real H2; Real s1(start = 1.0, fixed = true); Real s2(start = 3.0, fixed = true);
    equation
    m = if time < 1.0 then 0.0 elseif time < 2.0 then 1.0 else -1.0;
    H1 = semiLinear(-m, h, s1); H2 = semiLinear(m, h, s2); H1 + H2 = 0.0;
    der(s1) = 0.0; der(s2) = 0.0;
    """
    result = gr.simulate(gr.read_modelica(model(body)), np.array([0.5, 1.5, 2.5]))
    np.testing.assert_allclose(result["h"], [2.0, 1.0, 3.0], rtol=1e-9)
    np.testing.assert_allclose(result["H2"], [0.0, 1.0, -3.0], atol=1e-11)


def test_places_that_only_a_run_knows_are_assigned_to() -> None:
    function = """
    function 'f' input Integer i; output Real y;
    protected Real a[3, 2] = {{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
    algorithm
      a[i, :] := {10.0, 20.0}; a[1, i - 1] := 100.0; y := a[1, 1] + 2 * a[1, 2] + 3 * a[2, 1] + 5 * a[3, 2];
    end 'f';
    """
    body = """
    Real y; Integer i; equation i = if time < 1.0 then 2 else 3; y = 'f'(i);
    """
    result = gr.simulate(gr.read_modelica(model(body, function)), np.array([0.5, 1.5]))
    np.testing.assert_allclose(result["y"], [100 + 4 + 30 + 30, 1 + 200 + 9 + 100])


# --- functions as arguments, ideal gases ---

SOLVE = "Modelica.Math.Nonlinear.solveOneNonlinearEquation"
CUBE = "function 'cube' input Real u; input Real c; output Real y; algorithm y := u ^ 3 - c; end 'cube';"
TWICE = """
function 'twice' input Real f; input Real x; output Real y; algorithm y := f(f(x)); end 'twice';
"""


def test_functions_are_arguments_of_functions() -> None:
    body = "Real y; equation y = 'twice'(function 'cube'(c = 1.0), 2.0) + 0.0 * time;"
    result = gr.simulate(gr.read_modelica(model(body, CUBE + TWICE)), np.array([0.0, 1.0]))
    np.testing.assert_allclose(result["y"], 7.0**3 - 1)


def test_roots_that_move_are_unknowns_of_the_model() -> None:
    body = f"""
    Real c; Real y; Real z; equation c = 1.0 + 7.0 * time;
    y = '{SOLVE}'(function 'cube'(c = c), 0.0, 3.0, 1e-12);
    z = 2.0 * '{SOLVE}'(function 'cube'(c = c), 0.0, 3.0, 1e-12);
    """
    plant = gr.read_modelica(model(body, CUBE))
    result = gr.simulate(plant, np.array([0.0, 0.5, 1.0]))
    assert [n for n in result.data_vars if n.startswith("root")] == ["root 1"]  # one for both
    np.testing.assert_allclose(result["y"], np.cbrt([1.0, 4.5, 8.0]), rtol=1e-9)
    np.testing.assert_allclose(result["z"], 2 * result["y"])


DATA = (
    np.array([1e4, -200.0, 5.0, -5e-3, 1e-5, -8e-9, 2e-12], dtype=object), np.array([-177.0, -3.9], dtype=object),
)  # fmt: skip


def test_ideal_gases_have_the_capacity_and_the_enthalpy_of_their_tables() -> None:
    data = call("Modelica.Media.IdealGases.Common.DataRecord", "G", 0.029, -4e3, 3e5, 1000.0, *DATA, *DATA, 287.0)

    def of(name: str, T: float) -> float:
        return call(f"Modelica.Media.IdealGases.Common.Functions.{name}", data, T)

    def enthalpy(T: float) -> float:
        return call("M.Medium.T_h.f_nonlinear", T, data, 0.0)

    for T in (250.0, 600.0, 1400.0):
        assert of("cp_T", T) == pytest.approx((enthalpy(T + 0.01) - enthalpy(T - 0.01)) / 0.02, rel=1e-6)
        assert of("cp_T", T) / T == pytest.approx((of("s0_T", T + 0.01) - of("s0_T", T - 0.01)) / 0.02, rel=1e-6)
    assert call("M.Medium.T_ps.f_nonlinear", 300.0, data, 101325.0, of("s0_T", 300.0)) == pytest.approx(0.0, abs=1e-9)


def test_the_reference_of_enthalpies_that_no_text_brings_is_told() -> None:
    library, told = FunctionLibrary([]), []
    library.remark = lambda at, words: told.append(words)
    data = call("Modelica.Media.IdealGases.Common.DataRecord", "G", 0.029, -4e3, 3e5, 1000.0, *DATA, *DATA, 287.0)
    library.call(Calling(0, "M.Medium.T_h.f_nonlinear", [], {}), [300.0, data, 0.0], {})
    assert told == ["'M.Medium.T_h.f_nonlinear' is not brought: enthalpies are taken as zero at 0 K, without formation"]


def test_assertions_of_the_first_instant_are_told_where_parameters_decide_them() -> None:
    body = """
    parameter Real a = {}; Real x(start = 1.0);
    initial equation x = 1.0; assert({} > 0.0, "too small");
    equation der(x) = -a * x;
    """
    with pytest.warns(UserWarning, match="an assertion of the first instant fails: too small"):
        gr.read_modelica(model(body.format("-1.0", "a")))
    with pytest.warns(UserWarning, match="not checked"):
        gr.read_modelica(model(body.format("1.0", "x")))


def test_nobody_asks_what_the_end_of_a_run_would_do() -> None:
    body = """
    Real x(start = 1.0, fixed = true); discrete Real y(start = 0.0, fixed = true);
    equation der(x) = -x;
    algorithm when terminal() then y := 'Modelica.Nowhere.f'(x); end when;
    """
    with pytest.warns(UserWarning, match=r"terminal\(\) is never true"):
        gr.read_modelica(model(body))
    with pytest.raises(ModelError, match=r"'Modelica.Nowhere.f' is not defined"):
        gr.read_modelica(model(body.replace("terminal()", "time > 1.0")))


G = """
function 'g' input Real u; output Real y; algorithm y := if u > 0.0 then 1.0 else 0.0; end 'g';
function 'h' input Real u; output Real y; algorithm y := smooth(0, u * 'g'(u)) + 'g'(u); end 'h';
"""
RUNNING = "parameter Real p = 0.7; Real x(start = 0.0, fixed = true); Real w(start = 0.0, fixed = true);"


@pytest.mark.parametrize(
    ("body", "functions", "slope"),
    [
        # what is differentiated jumps, though the formula itself only bends
        (
            "Real y; equation der(x) = 1.0; y = smooth(0, if x > p then 2 * (x - p) else 0.0); der(w) = der(y);",
            "",
            -2.0,
        ),
        # a function that is called inside of smooth() and outside of it
        ("equation der(x) = 1.0; der(w) = 'h'(x - p);", G, -1.3),
        # a name does not promise that there are no jumps
        (
            "equation der(x) = 1.0; der(w) = 'tank.Medium.f'(x, p);",
            "function 'tank.Medium.f' input Real x; input Real p; output Real y; "
            "algorithm y := if x > p then 1.0 else 0.0; end 'tank.Medium.f';",
            -1.0,
        ),
    ],
)
def test_smooth_hides_no_jump(body: str, functions: str, slope: float) -> None:
    plant = gr.read_modelica(model(f"{RUNNING} {body}", functions))
    run = gr.simulate(plant, np.array([0.0, 0.5, 1.0]), sensitivities=["p"])
    assert float(run["d(w)"][-1, 0]) == pytest.approx(slope, abs=1e-5)


def test_comparisons_in_smooth_at_equality() -> None:
    plant = gr.read_modelica(
        model("Real x; Real y; Real z; equation x = time - 0.5; y = smooth(0, if x > 0 then 1 / x else 0.0);"
              "z = smooth(0, if x <= 0 then 2.0 else 1.0);")
    )  # fmt: skip
    run = gr.simulate(plant, np.array([0.0, 0.5, 1.0]))
    assert list(run.y.values) == [0.0, 0.0, 2.0] and list(run.z.values) == [2.0, 2.0, 1.0]


def test_slopes_of_parameters_are_carried_by_no_flow() -> None:
    body = (
        "parameter Real a = 1e-5; parameter Real b = 1e12; Real i; Real y; equation i = time; y = semiLinear(i, a, b);"
    )
    run = gr.simulate(gr.read_modelica(model(body)), np.array([0.0, 1.0]))
    assert float(run.y[0]) == 0.0


LAPACK = """package P
  function solve
    input Real A[:, size(A, 1)]; input Real b[size(A, 1)]; output Real x[size(A, 1)] = b; output Integer info;
  protected
    Real work[size(A, 1), size(A, 1)] = A; Integer pivots[size(A, 1)]; Integer n = max(1, size(A, 1));
  external "FORTRAN 77" dgesv(size(A, 1), 1, work, n, pivots, x, n, info);
  end solve;
  function values
    input Real A[:, size(A, 1)]; output Real re[size(A, 1)]; output Real im[size(A, 1)];
  protected
    Real work[size(A, 1), size(A, 1)] = A; Real V[size(A, 1), size(A, 1)]; Real rest[8 * size(A, 1)]; Integer info;
  external "Fortran 77" dgeev("N", "N", size(A, 1), work, size(A, 1), re, im, V, size(A, 1), V, size(A, 1), rest,
    size(rest, 1), info);
  end values;
  model P
    parameter Real k = 3; Real A[2, 2] = {{1, k}, {-k, 1}}; Real a = {matrix};
    Integer info; Real x[2]; Real v[2]; Real w[2];
  equation
    (x, info) = solve([a, 1; 1, 3], {1, 2});
    (v, w) = values(A);
  end P;
end P;
"""


def test_lapack_of_what_is_known_before_a_run() -> None:
    read = gr.read_modelica(LAPACK.replace("{matrix}", "2"))
    found = gr.simulate(read, [0.0, 1.0]).isel(time=-1)
    assert [float(found[n]) for n in ("x[1]", "x[2]", "info")] == pytest.approx([0.2, 0.6, 0.0])
    assert [float(found[n]) for n in ("v[1]", "v[2]", "w[1]", "w[2]")] == pytest.approx([1.0, 1.0, 3.0, -3.0])
    assert "k" not in read.parameters  # its value is in the eigenvalues
    with pytest.raises(gr.ModelError, match=r"line \d+: 'dgesv' of LAPACK needs numbers"):
        gr.read_modelica(LAPACK.replace("{matrix}", "2 + time"))


def test_linear_systems_of_functions_that_exports_do_not_bring() -> None:
    head = """function 'head'
        input Real q; input Real v[3] = {0.0, 1.0, 3.0}; input Real h[3] = {10.0, 6.0, 4.0}; output Real y;
      protected
        Real c[3] = 'Modelica.Math.Matrices.solve'({{1, v[1], v[1]^2}, {1, v[2], v[2]^2}, {1, v[3], v[3]^2}}, h);
      algorithm y := c[1] + c[2] * q + c[3] * q ^ 2; end 'head';"""
    run = gr.simulate(gr.read_modelica(model("Real y; equation y = 'head'(time);", head)), [0.0, 2.0])
    assert [float(y) for y in run.y] == pytest.approx([10.0, 4.0])
    with pytest.raises(gr.ModelError, match=r"'Modelica.Math.Matrices.solve', which is supplied: .* is singular"):
        gr.read_modelica(model("Real y; equation y = 'head'(time);", head.replace("1.0, 3.0", "1.0, 1.0")))
