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
"""


@cache
def standard_functions() -> tuple[tree.Class, ...]:
    """Their syntax trees; a text that defines one of them itself goes first."""
    return tuple(parse(_TEXT))
