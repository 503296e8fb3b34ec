"""Properties of water, air and incompressible media: against published values, and what belongs together."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.test_standard import call
from modelica.texts import model

import grisaille as gr
from grisaille.errors import ModelError, SimulationError
from grisaille.modelica import Calling, FunctionLibrary, RecordValue, Refused, parse

WATER = "Modelica.Media.Water.IF97_Utilities."
BASIC = WATER + "BaseIF97.Basic."
AIR = "Modelica.Media.Air.ReferenceAir.Air_Utilities."


def of_gibbs(g: RecordValue) -> tuple[float, ...]:
    """v, h, s, cp and the speed of sound."""
    R, p, T, pi, tau = g["R_s"], g["p"], g["T"], g["pi"], g["tau"]
    mixed = (g["gpi"] - tau * g["gtaupi"]) ** 2 / (tau**2 * g["gtautau"])
    return (
        R * T / p * pi * g["gpi"], R * T * tau * g["gtau"], R * (tau * g["gtau"] - g["g"]), -R * tau**2 * g["gtautau"],
        (R * T * g["gpi"] ** 2 / (mixed - g["gpipi"])) ** 0.5,
    )  # fmt: skip


def of_helmholtz(f: RecordValue) -> tuple[float, ...]:
    """p, h, cp and the speed of sound."""
    R, T, d, delta, tau = f["R_s"], f["T"], f["d"], f["delta"], f["tau"]
    cv = -R * tau**2 * f["ftautau"]
    pd = R * T * delta * (2 * f["fdelta"] + delta * f["fdeltadelta"])
    pt = R * d * delta * (f["fdelta"] - tau * f["fdeltatau"])
    cp = cv + T * pt**2 / (d**2 * pd)
    return R * T * d * delta * f["fdelta"], R * T * (tau * f["ftau"] + delta * f["fdelta"]), cp, (pd * cp / cv) ** 0.5


@pytest.mark.parametrize(
    ("name", "p", "T", "published"),
    [  # IAPWS R7-97(2012), tables 5, 15, 42
        ("g1", 3e6, 300.0, (0.100215168e-2, 115331.273, 392.294792, 4173.01218, 1507.73921)),
        ("g1", 80e6, 300.0, (0.971180894e-3, 184142.828, 368.563852, 4010.08987, 1634.69054)),
        ("g2", 30e6, 700.0, (0.542946619e-2, 2631494.74, 5175.40298, 10350.5092, 480.386523)),
        ("g5", 30e6, 2000.0, (0.311385219e-1, 6571226.04, 8536.40523, 2885.69882, 1067.36948)),
    ],
)
def test_water_has_the_published_properties(name: str, p: float, T: float, published: tuple[float, ...]) -> None:
    assert of_gibbs(call(BASIC + name, p, T)) == pytest.approx(published, rel=5e-9)  # type: ignore[arg-type]


def test_dense_water_has_the_published_properties() -> None:  # table 33, and of the supplementary release table 5
    assert of_helmholtz(call(BASIC + "f3", 500.0, 650.0)) == pytest.approx(  # type: ignore[arg-type]
        (25.5837018e6, 1863430.19, 13893.5717, 502.005554), rel=5e-9
    )
    density, temperature, _ = call(WATER + "BaseIF97.Inverses.dtofph3", 20e6, 1.7e6, 1.0, 1.0)  # type: ignore[misc]
    assert (1 / density, temperature) == pytest.approx((1.749903962e-3, 629.3083892), rel=1e-9)


def test_temperatures_of_water_are_the_published_ones() -> None:  # tables 7, 24, 35, 36
    for name, p, h, T in [
        ("tph1", 3e6, 5e5, 391.798509), ("tph1", 80e6, 1.5e6, 611.041229), ("tph2", 3e6, 3e6, 575.373370),
        ("tph2", 5e6, 4e6, 1015.31583), ("tph2", 40e6, 2.7e6, 743.056411),
    ]:  # fmt: skip
        assert call(BASIC + name, p, h) == pytest.approx(T, rel=5e-9)
    assert call(BASIC + "psat", 500.0) == pytest.approx(2.63889776e6, rel=5e-9)
    assert call(BASIC + "tsat", 1e6) == pytest.approx(453.035632, rel=5e-9)


def test_saturation_belongs_together() -> None:
    slope = (call(BASIC + "psat", 500.001) - call(BASIC + "psat", 499.999)) / 0.002  # type: ignore[operator]
    assert call(BASIC + "dptofT", 500.0) == pytest.approx(slope, rel=1e-6)
    # Clausius and Clapeyron
    p = call(BASIC + "psat", 500.0)
    heat = call(WATER + "hv_p", p) - call(WATER + "hl_p", p)  # type: ignore[operator]
    volume = 1 / call(WATER + "rhov_T", 500.0) - 1 / call(WATER + "rhol_T", 500.0)  # type: ignore[operator]
    assert heat / (500.0 * volume) == pytest.approx(slope, rel=1e-4)
    for T in (625.0, 640.0, 646.0):  # near the critical point, where densities have equations of their own
        for name in ("rhol_T", "rhov_T"):
            found = of_helmholtz(call(BASIC + "f3", call(WATER + name, T), T))[0]  # type: ignore[arg-type]
            assert found == pytest.approx(call(BASIC + "psat", T), rel=2e-3)


@pytest.mark.parametrize(
    ("p", "T", "region"),
    [(1e5, 300.0, 1), (1e5, 500.0, 2), (25e6, 600.0, 1), (25e6, 650.0, 3), (25e6, 800.0, 2), (1e6, 1500.0, 5)],
)
def test_regions_by_temperature_and_by_enthalpy_agree(p: float, T: float, region: int) -> None:
    assert call(WATER + "BaseIF97.Regions.region_pT", p, T) == region
    if region == 3:
        density, _ = call(WATER + "BaseIF97.Inverses.dofpt3", p, T, 0.1)  # type: ignore[misc]
        found, h, *_ = of_helmholtz(call(BASIC + "f3", density, T))  # type: ignore[arg-type]
        assert found == pytest.approx(p, rel=1e-6)
    else:
        h = of_gibbs(call(f"{BASIC}g{region}", p, T))[1]  # type: ignore[arg-type]
    assert call(WATER + "BaseIF97.Regions.region_ph", p, h, 0) == region


RECORD = """
record 'Modelica.Media.Common.GibbsDerivs'
  Real p; Real T; Real R_s; Real pi; Real tau; Real g; Real gpi; Real gpipi; Real gtau; Real gtautau; Real gtaupi;
end 'Modelica.Media.Common.GibbsDerivs';
"""
DENSITY = f"""{RECORD}
function 'Modelica.Media.Density'
  input Real p; input Real h; input Integer phase = 0; output Real d;
protected
  Integer region = if phase == 2 then 4 else '{WATER}BaseIF97.Regions.region_ph'(p, h, phase, 0);
  Real low = '{WATER}hl_p'(p); Real high = '{WATER}hv_p'(p);
  Real T = '{BASIC}tsat'(p); Real x = (h - low) / (high - low); Real a; Real b;
  'Modelica.Media.Common.GibbsDerivs' g;
algorithm
  if region == 1 then
    g := '{BASIC}g1'(p, '{BASIC}tph1'(p, h)); d := p / (g.R_s * g.T * g.pi * g.gpi);
  elseif region == 2 then
    g := '{BASIC}g2'(p, '{BASIC}tph2'(p, h)); d := p / (g.R_s * g.T * g.pi * g.gpi);
  else
    a := '{WATER}rhol_T'(T); b := '{WATER}rhov_T'(T); d := 1 / ((1 - x) / a + x / b);
  end if;
end 'Modelica.Media.Density';
"""
BOILING = """
  Real h = 7.4e5 + 1e4 * time; Real d; Real rate; Integer phase;
equation
  phase = if h > 7.626e5 then 2 else 1;
  d = 'Modelica.Media.Density'(1e6, h, phase);
  rate = der(d);
"""


def test_the_density_of_boiling_water_has_a_rate() -> None:
    """The slope jumps where it begins to boil, by a factor of 80; the phase that is told is not needed."""
    run = gr.simulate(gr.read_modelica(model(BOILING, DENSITY)), np.array([1.0, 2.0, 3.0]))
    for t, found in zip(run["time"].values, run["rate"].values, strict=True):
        before, after = (
            call("Modelica.Media.Density", 1e6, 7.4e5 + 1e4 * s, text=DENSITY) for s in (t - 0.01, t + 0.01)
        )
        assert found == pytest.approx((after - before) / 0.02, rel=1e-3)  # type: ignore[operator]
    assert run["phase"].values.tolist() == [1.0, 1.0, 2.0]


def test_what_leaves_the_range_of_water_is_told() -> None:
    body = "Real d; equation d = 'Modelica.Media.Density'(1e6, 2e5 - 1e5 * time);"
    plant = gr.read_modelica(model(body, DENSITY))
    with pytest.raises(SimulationError, match="the range of IAPWS-IF97 is left"):
        gr.simulate(plant, np.array([0.0, 1.0, 3.0]))
    with pytest.raises(ModelError, match="the range of IAPWS-IF97 is left"):
        gr.read_modelica(model("Real d; equation d = time * 'Modelica.Media.Density'(1e6, -1e5);", DENSITY))


def test_air_is_that_of_textbooks() -> None:
    density = call(AIR + "Inverses.dofpT", 101325.0, 300.0, 0.1)
    f = call(AIR + "Basic.Helmholtz", density, 300.0)
    p, _, cp, sound = of_helmholtz(f)  # type: ignore[arg-type]
    assert p == pytest.approx(101325.0, rel=1e-10)
    assert (density, cp, sound) == pytest.approx((1.1767, 1007.0, 347.3), rel=5e-4)
    above, below = (call(AIR + "Basic.Helmholtz", density, T) for T in (300.01, 299.99))
    assert f["ftau"] == pytest.approx((above["f"] - below["f"]) / (above["tau"] - below["tau"]), rel=1e-6)  # type: ignore[index]
    assert f["fdeltatau"] == pytest.approx(  # type: ignore[index]
        (above["fdelta"] - below["fdelta"]) / (above["tau"] - below["tau"]),
        rel=1e-5,  # type: ignore[index]
    )


def test_air_is_found_by_enthalpy_and_by_entropy() -> None:
    body = f"""
    Real p; Real d; Real T; Real dh; Real Th; Real ds; Real Ts; 'Modelica.Media.Common.HelmholtzDerivs' f;
    equation
      p = 2e5 + 5e6 * time; T = 250 + 300 * time;
      d = '{AIR}Inverses.dofpT'(p, T, 0.1); f = '{AIR}Basic.Helmholtz'(d, T);
      (dh, Th) = '{AIR}Inverses.dTofph'(
        p, 287.117 * T * (f.tau * f.ftau + f.delta * f.fdelta) - 1589557.62320524, 0.1, 0.1);
      (ds, Ts) = '{AIR}Inverses.dTofps'(
        p, 287.117 * (f.tau * f.ftau - f.f) - 6610.41237132543, 0.1, 0.1);
    """
    record = """
    record 'Modelica.Media.Common.HelmholtzDerivs'
      Real d; Real T; Real R_s; Real delta; Real tau;
      Real f; Real fdelta; Real fdeltadelta; Real ftau; Real ftautau; Real fdeltatau;
    end 'Modelica.Media.Common.HelmholtzDerivs';
    """
    run = gr.simulate(gr.read_modelica(model(body, record)), np.linspace(0.0, 1.0, 5))
    for density, temperature in (("dh", "Th"), ("ds", "Ts")):
        assert run[density].values == pytest.approx(run["d"].values, rel=1e-8)
        assert run[temperature].values == pytest.approx(run["T"].values, rel=1e-8)


LIQUID = """
function 'M.Medium.saturationPressureLiquid'
  input Real T; output Real p;
algorithm
  p := T;
end 'M.Medium.saturationPressureLiquid';
"""


def test_moist_air_is_saturated_over_water_and_ice() -> None:
    found = [call("M.Medium.saturationPressure", T, text=LIQUID) for T in (373.124, 293.15, 263.15)]
    assert found == pytest.approx([101325.0, 2339.2, 259.9], rel=2e-4)
    assert call("M.Medium.enthalpyOfWater", 263.15, text=LIQUID) == pytest.approx(-353500.0)


INTEGRAL = """
function 'Modelica.Math.Polynomials.integralValue'
  input Real p[:]; input Real a; input Real b = 0.0; output Real y = 0.0;
algorithm
  for k in 1:size(p, 1) loop y := a * (p[k] / (size(p, 1) - k + 1) + y); end for;
end 'Modelica.Math.Polynomials.integralValue';
"""


def test_incompressible_media_have_the_polynomial_of_the_text() -> None:
    body = """
    Real h; Real T; Real s; Real T1 = 280.0 + 50.0 * time;
    equation
      h = 'Modelica.Math.Polynomials.integralValue'({3.0, 3500.0}, T1 - 273.15, 0.0);
      T = 'Modelica.Math.Nonlinear.solveOneNonlinearEquation'(
        function 'M.Medium.T_ph.f_nonlinear'(p = 1e5, h = h), 240.0, 380.0);
      s = 'M.Medium.s_T'(T1);
    """
    with pytest.warns(UserWarning, match="depend on temperature alone"):
        plant = gr.read_modelica(model(body, INTEGRAL))
    run = gr.simulate(plant, np.array([0.0, 0.5, 1.0]))
    T = 280.0 + 50.0 * run["time"].values
    assert run["T"].values == pytest.approx(T, rel=1e-9)
    assert run["s"].values == pytest.approx(3.0 * (T - 273.15) + (3500.0 - 3.0 * 273.15) * np.log(T / 273.15))
    other = body.replace("s = ", "h = 'Modelica.Math.Polynomials.integralValue'({2.0}, T1 - 273.15); s = ")
    with pytest.raises(ModelError, match=r"'M.Medium.s_T' is not defined"):
        gr.read_modelica(model(other, INTEGRAL))


MIXTURE = """
function 'M.Medium.specificEntropyOfpTX'
  input Real p; input Real T; input Real X[4]; output Real s;
protected
  Real Y[4] = 'M.Medium.massToMoleFractions'(X, {0.0280134, 0.0319988, 0.01801528, 0.0440095});
algorithm
  s := 'M.Medium.s_TX'(T, X);
  for i in 1:2 loop
    s := s - X[i] * 8.31446261815324 / {0.0280134, 0.0319988}[i] * log(Y[i] * p / 101325.0);
  end for;
end 'M.Medium.specificEntropyOfpTX';
"""


def test_mixtures_of_gases_are_known_by_their_molar_masses() -> None:
    """Enthalpy and entropy of dry air as OpenModelica 1.27 computes them."""
    air = np.array([0.768, 0.232, 0.0, 0.0], dtype=object)
    computed = [(300.0, 302499.2070626019, 6898.317128785827), (500.0, 506796.354985627, 7419.588064899617)]
    for temperature, enthalpy, entropy in computed:
        given = {"X": air, "h": enthalpy} | {"exclEnthForm": True, "refChoice": 1, "h_off": 0.0}
        library = FunctionLibrary(list(parse(MIXTURE)))
        left = library.call(Calling(0, "M.Medium.T_hX.f_nonlinear", [], {}), [temperature], given)
        assert left == pytest.approx(0.0, abs=1e-7)
        given = {"X": air, "p": 1e5, "s": entropy}
        left = library.call(Calling(0, "M.Medium.T_psX.f_nonlinear", [], {}), [temperature], given)
        assert left == pytest.approx(0.0, abs=1e-8)
    unknown = FunctionLibrary(list(parse(MIXTURE.replace("0.0319988, 0.018", "0.0319, 0.018"))))
    with pytest.raises(Refused, match="not defined"):
        unknown.call(Calling(0, "M.Medium.s_TX", [], {}), [300.0, air], {})
