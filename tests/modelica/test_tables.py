"""Tables of the Standard Library against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from modelica.texts import model
from scipy.interpolate import Akima1DInterpolator

import grisaille as gr
from grisaille.modelica.tables import interpolate

XS, YS = [0.0, 1.0, 2.0, 3.5, 4.0], [1.0, 3.0, 2.0, 2.5, -1.0]
INSIDE = np.linspace(0.05, 3.95, 23)


def looked_up(u: float, smoothness: int, extrapolation: int = 1) -> float:
    return float(interpolate(XS, YS, float(u), smoothness, extrapolation))


def test_straight_lines() -> None:
    np.testing.assert_allclose([looked_up(u, 1) for u in INSIDE], np.interp(INSIDE, XS, YS))
    assert (looked_up(-1, 1), looked_up(9, 1)) == (1.0, -1.0)
    assert looked_up(-1, 1, 2) == -1.0 and looked_up(5, 1, 2) == pytest.approx(-8.0)


def test_akima() -> None:
    np.testing.assert_allclose([looked_up(u, 2) for u in INSIDE], Akima1DInterpolator(XS, YS)(INSIDE), rtol=1e-12)


@pytest.mark.parametrize("smoothness", [4, 5])
def test_monotone_cubics_stay_between_their_points(smoothness: int) -> None:
    for k in range(4):
        us = np.linspace(XS[k], XS[k + 1], 30)
        ys = np.array([looked_up(u, smoothness) for u in us])
        assert min(YS[k : k + 2]) - 1e-12 <= ys.min() and ys.max() <= max(YS[k : k + 2]) + 1e-12


def test_steps_and_repetition() -> None:
    assert [looked_up(u, 3) for u in (0.0, 0.99, 1.0, 3.9)] == [1.0, 1.0, 3.0, 2.5]
    assert looked_up(4.0 + 1.5, 1, 3) == looked_up(1.5, 1) and looked_up(-2.5, 1, 3) == looked_up(1.5, 1)


TABLE = """
class 'Table'
  extends ExternalObject;
  function constructor
    input String 'tableName';
    input String 'fileName';
    input Real 'table'[:, :];
    input Integer 'columns'[:];
    input 'Smoothness' 'smoothness';
    input 'Extrapolation' 'extrapolation';
    output 'Table' 'made';
  external "C" 'made' = ModelicaStandardTables_CombiTable1D_init3('fileName', 'tableName', 'table', size('table', 1),
    size('table', 2), 'columns', size('columns', 1), 'smoothness', 'extrapolation');
  end constructor;
end 'Table';
type 'Smoothness' = enumeration('LinearSegments', 'ContinuousDerivative', 'ConstantSegments');
type 'Extrapolation' = enumeration('HoldLastPoint', 'LastTwoPoints', 'Periodic');
function 'value'
  input 'Table' 'id';
  input Integer 'column';
  input Real 'u';
  output Real 'y';
external "C" 'y' = ModelicaStandardTables_CombiTable1D_getValue('id', 'column', 'u');
end 'value';
"""
BODY = """
  parameter Real k = 5.0;
  parameter 'Table' 'id' = 'Table'("NoName", FILE, {{0.0, 1.0, 0.0}, {1.0, 3.0, k}}, {2, 3},
    'Smoothness'.'LinearSegments', 'Extrapolation'.'HoldLastPoint');
  Real y[2];
equation
  for i in 1:2 loop
    y[i] = 'value'('id', i, time);
  end for;
"""


def test_a_table_object_with_a_parameter_in_it() -> None:
    made = gr.read_modelica(model(BODY.replace("FILE", '"NoName"'), TABLE))
    result = gr.simulate(made.replace({"k": 4.0}), np.array([0.0, 0.5, 2.0]))
    np.testing.assert_allclose(result["y[1]"], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(result["y[2]"], [0.0, 2.0, 4.0])


def test_a_table_in_a_file_is_not_opened() -> None:
    text = model(
        BODY.replace("FILE", '"/etc/passwd"').replace("{{0.0, 1.0, 0.0}, {1.0, 3.0, k}}", "fill(0.0, 0, 2)"), TABLE
    )
    with pytest.raises(gr.ModelError, match="files are never opened"):
        gr.read_modelica(text)
