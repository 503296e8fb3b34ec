"""Functions of the Modelica Standard Library that exports call without bringing them, written anew."""

from __future__ import annotations

from functools import cache

from grisaille.modelica import tree
from grisaille.modelica.parsing import parse

_TEXT = """
function 'Modelica.Math.Vectors.length'
  input Real v[:];
  output Real result;
algorithm
  result := sqrt(v * v);
end 'Modelica.Math.Vectors.length';

function 'Modelica.Math.Vectors.norm'
  input Real v[:];
  input Real p = 2.0;
  output Real result;
algorithm
  assert(p == 2.0, "only the Euclidean norm is known");
  result := sqrt(v * v);
end 'Modelica.Math.Vectors.norm';

function 'Modelica.Math.Vectors.normalize'
  input Real v[:];
  input Real eps = 2.220446049250313e-14;
  output Real result[size(v, 1)];
algorithm
  result := if 'Modelica.Math.Vectors.length'(v) >= eps then v / 'Modelica.Math.Vectors.length'(v) else v / eps;
end 'Modelica.Math.Vectors.normalize';

record 'Complex'
  Real 're';
  Real 'im';
end 'Complex';

function 'Complex.\\'constructor\\'.fromReal'
  input Real re;
  input Real im = 0.0;
  output 'Complex' result;
algorithm
  result := 'Complex'(re, im);
end 'Complex.\\'constructor\\'.fromReal';

function 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.planarRotation'
  input Real e[3];
  input Real angle;
  output Real T[3, 3];
algorithm
  T := outerProduct(e, e) + (identity(3) - outerProduct(e, e)) * cos(angle) - skew(e) * sin(angle);
end 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.planarRotation';

function 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.axisRotation'
  input Integer axis;
  input Real angle;
  output Real T[3, 3];
protected
  Real c = cos(angle);
  Real s = sin(angle);
algorithm
  T := if axis == 1 then {{1, 0, 0}, {0, c, s}, {0, -s, c}}
    else if axis == 2 then {{c, 0, -s}, {0, 1, 0}, {s, 0, c}} else {{c, s, 0}, {-s, c, 0}, {0, 0, 1}};
end 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.axisRotation';

function 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.resolve2'
  input Real T[3, 3];
  input Real v1[3];
  output Real v2[3];
algorithm
  v2 := T * v1;
end 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.resolve2';

function 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.resolve1'
  input Real T[3, 3];
  input Real v2[3];
  output Real v1[3];
algorithm
  v1 := transpose(T) * v2;
end 'Modelica.Mechanics.MultiBody.Frames.TransformationMatrices.resolve1';

function 'Modelica.Mechanics.MultiBody.Frames.planarRotationAngle'
  input Real e[3];
  input Real v1[3];
  input Real v2[3];
  output Real angle;
algorithm
  angle := atan2(-cross(e, v1) * v2, v1 * v2 - (e * v1) * (e * v2));
end 'Modelica.Mechanics.MultiBody.Frames.planarRotationAngle';

function 'Modelica.Electrical.Polyphase.Functions.symmetricOrientation'
  input Integer m;
  output Real phi[m];
protected
  Integer odd = m;
  Integer have;
algorithm
  while mod(odd, 2) == 0 and odd > 2 loop
    odd := div(odd, 2);
  end while;
  for k in 1:odd loop
    phi[k] := if odd == 2 then (k - 1) * 1.5707963267948966 else (k - 1) * 6.283185307179586 / odd;
  end for;
  have := odd;
  while have < m loop
    for k in 1:have loop
      phi[have + k] := phi[k] - 3.141592653589793 / (2 * have);
    end for;
    have := 2 * have;
  end while;
end 'Modelica.Electrical.Polyphase.Functions.symmetricOrientation';

function 'Modelica.Blocks.Continuous.Internal.Filter.coefficients.lowPass'
  input Real cr_in[:];
  input Real c0_in[:];
  input Real c1_in[size(c0_in, 1)];
  input Real f_cut;
  output Real cr[size(cr_in, 1)];
  output Real c0[size(c0_in, 1)];
  output Real c1[size(c0_in, 1)];
protected
  Real w = 6.283185307179586 * f_cut;
algorithm
  cr := w * cr_in;
  c0 := w ^ 2 * c0_in;
  c1 := w * c1_in;
end 'Modelica.Blocks.Continuous.Internal.Filter.coefficients.lowPass';
"""

_CONVERSIONS = {
    "to_degC": "u - 273.15",
    "from_degC": "u + 273.15",
    "from_deg": "u * 0.017453292519943295",
    "to_deg": "u * 57.29577951308232",
    "from_rpm": "u * 0.10471975511965977",
    "to_rpm": "u * 9.549296585513721",
    "from_Hz": "u * 6.283185307179586",
    "to_Hz": "u / 6.283185307179586",
    "from_bar": "u * 1e5",
    "to_bar": "u * 1e-5",
    "from_kmh": "u / 3.6",
    "to_kmh": "u * 3.6",
    "from_minute": "u * 60.0",
    "to_minute": "u / 60.0",
    "from_hour": "u * 3600.0",
    "to_hour": "u / 3600.0",
    "from_day": "u * 86400.0",
    "to_day": "u / 86400.0",
    "from_kWh": "u * 3.6e6",
    "to_kWh": "u / 3.6e6",
    "from_litre": "u * 1e-3",
    "to_litre": "u * 1e3",
}
"""Of Modelica.Units.Conversions, as formulas of ``u``."""


@cache
def standard_functions() -> tuple[tree.Class, ...]:
    """Return their syntax trees; a text that defines one of them itself goes first."""
    conversions = "".join(
        f"function 'Modelica.Units.Conversions.{name}' input Real u; output Real y; algorithm y := {formula}; "
        f"end 'Modelica.Units.Conversions.{name}';\n"
        for name, formula in _CONVERSIONS.items()
    )
    return tuple(parse(_TEXT + conversions))
