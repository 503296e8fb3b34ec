"""Tables of two variables against products of SciPy's curves, planes, and bilinear interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model
from scipy.interpolate import Akima1DInterpolator, RegularGridInterpolator

import grisaille as gr
from grisaille.modelica.tables import surface

XS, YS = [0.0, 1.0, 2.5, 3.0, 4.2], [-1.0, 0.0, 0.7, 2.0]
A, B = np.array([1.0, 3.0, 2.0, 2.5, -1.0]), np.array([0.5, -2.0, 1.0, 1.5])
GRID = np.outer(A, B)
RNG = np.random.default_rng(4)
U, V = RNG.uniform(0.0, 4.2, 40), RNG.uniform(-1.0, 2.0, 40)


def looked_up(u: float, v: float, smoothness: int, extrapolation: int = 1, grid: np.ndarray = GRID) -> float:
    xs, ys = XS[: len(grid)], YS[: grid.shape[1]]
    return float(surface(xs, ys, grid.astype(object), float(u), float(v), smoothness, extrapolation))


def test_akimas_surface_of_a_product_is_the_product_of_akimas_curves() -> None:
    found = [looked_up(u, v, 2) for u, v in zip(U, V, strict=True)]
    np.testing.assert_allclose(found, Akima1DInterpolator(XS, A)(U) * Akima1DInterpolator(YS, B)(V), atol=1e-12)


def test_bilinear() -> None:
    grid = RNG.normal(size=(5, 4))
    reference = RegularGridInterpolator((XS, YS), grid, bounds_error=False, fill_value=None)
    for u, v in [*zip(U, V, strict=True), (-1.0, 3.0), (5.0, 0.1)]:
        assert looked_up(u, v, 1, 2, grid) == pytest.approx(reference([[u, v]])[0], abs=1e-12)
        assert looked_up(u, v, 1, 1, grid) == pytest.approx(reference([[np.clip(u, 0, 4.2), np.clip(v, -1, 2)]])[0])


@pytest.mark.parametrize("smoothness", [1, 2])
def test_a_plane_goes_on_as_a_plane(smoothness: int) -> None:
    plane = 1 + 2 * np.array(XS)[:, None] - 3 * np.array(YS)
    for u, v in ((0.3, 0.4), (-2.0, 0.4), (6.0, 0.4), (1.0, -4.0), (-2.0, 5.0), (7.0, 8.0)):
        assert looked_up(u, v, smoothness, 2, plane) == pytest.approx(1 + 2 * u - 3 * v)


def test_steps_go_on_through_their_last_two_points() -> None:
    assert looked_up(1.2, 0.1, 3) == GRID[1, 1] and looked_up(4.2, 2.0, 3) == GRID[4, 3]
    assert looked_up(-9, 9, 3) == GRID[0, 3] and looked_up(1.2, 9, 3, 2) == pytest.approx(looked_up(1.2, 9, 1, 2))


def test_repetition_and_single_rows() -> None:
    assert looked_up(1.2 + 4.2, 0.1 - 3.0, 2, 3) == pytest.approx(looked_up(1.2, 0.1, 2))
    assert looked_up(77.0, 0.35, 1, 1, GRID[:1]) == pytest.approx(np.interp(0.35, YS, GRID[0]))
    assert looked_up(0.5, 77.0, 2, 1, GRID[:, :1]) == pytest.approx(Akima1DInterpolator(XS, GRID[:, 0])(0.5))


TABLE = """
class 'Surface'
  extends ExternalObject;
  function constructor
    input String 'tableName';
    input String 'fileName';
    input Real 'table'[:, :];
    input 'Smoothness' 'smoothness';
    input 'Extrapolation' 'extrapolation';
    output 'Surface' 'made';
  external "C" 'made' = ModelicaStandardTables_CombiTable2D_init3('fileName', 'tableName', 'table', size('table', 1),
    size('table', 2), 'smoothness', 'extrapolation', true, ",", 0);
  end constructor;
end 'Surface';
type 'Smoothness' = enumeration('LinearSegments', 'ContinuousDerivative', 'ConstantSegments',
  'MonotoneContinuousDerivative1');
type 'Extrapolation' = enumeration('HoldLastPoint', 'LastTwoPoints', 'Periodic', 'NoExtrapolation');
function 'value'
  input 'Surface' 'id';
  input Real 'u1';
  input Real 'u2';
  output Real 'y';
external "C" 'y' = ModelicaStandardTables_CombiTable2D_getValue('id', 'u1', 'u2');
end 'value';
function 'least'
  input 'Surface' 'id';
  output Real 'u'[2];
external "C" ModelicaStandardTables_CombiTable2D_minimumAbscissa('id', 'u');
end 'least';
"""
BODY = """
  parameter Real least[2] = 'least'('id');
  parameter 'Surface' 'id' = 'Surface'("NoName", "NoName", TABLE, 'Smoothness'.'HOW', 'Extrapolation'.'OUTSIDE');
  Real u(start = 0.0, fixed = true);
  Real y;
equation
  der(u) = 1.0;
  y = 'value'('id', u, 0.2 + 0.3 * sin(u));
"""


def read(how: str, outside: str) -> gr.Model:
    whole = np.zeros((6, 5))
    whole[1:, 0], whole[0, 1:], whole[1:, 1:] = XS, YS, GRID
    rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in whole.tolist())
    return gr.read_modelica(
        model(BODY.replace("TABLE", f"{{{rows}}}").replace("HOW", how).replace("OUTSIDE", outside), TABLE)
    )


@pytest.mark.parametrize(
    ("how", "smoothness"), [("ContinuousDerivative", 2), ("LinearSegments", 1), ("ConstantSegments", 3)]
)
def test_a_run_through_a_surface(how: str, smoothness: int) -> None:
    made = read(how, "LastTwoPoints")
    t = np.array([0.0, 0.3, 1.1, 2.4, 3.3, 4.1, 5.0])
    y = gr.simulate(made, t, rtol=1e-9)["y"].values
    np.testing.assert_allclose(y, [looked_up(u, 0.2 + 0.3 * np.sin(u), smoothness, 2) for u in t], atol=1e-6)
    assert made.parameters["least[2]"].value == -1.0


def test_leaving_a_table_without_extrapolation_fails_the_run() -> None:
    made = read("LinearSegments", "NoExtrapolation")
    gr.simulate(made, np.array([0.0, 4.0]))
    with pytest.raises(gr.SimulationError, match=r"u1 stays between 0 and 4\.2"):
        gr.simulate(made, np.array([0.0, 4.0, 4.5]))


def test_monotone_surfaces_are_refused() -> None:
    with pytest.raises(gr.ModelError, match="linear, constant or ContinuousDerivative"):
        read("MonotoneContinuousDerivative1", "HoldLastPoint")
