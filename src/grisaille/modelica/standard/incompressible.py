"""Functions of incompressible media of tables, whose polynomial stands in the text that calls them.

The heat capacity is a polynomial of the temperature in degrees Celsius, and enthalpies that depend on temperature alone
are its integrals, ``integralValue(polynomial, T - 273.15, 0)``. Exports write that out wherever they need it, but do
not bring the function that is solved for T, nor the entropy, which Modelica.Media 4.1.0 has as

    s = integral of the polynomial without its last coefficient + its value at 0 K times ln(T / 273.15 K).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from grisaille.modelica import tree

_INTEGRAL = "Modelica.Math.Polynomials.integralValue"
_INVERSE = """
function '{name}'
  input Real u;
  input Real p;
  input Real h;
  output Real y;
algorithm
  y := 'Incompressible.integral'({polynomial}, u - 273.15) - h;
  annotation(smoothOrder = 1);
end '{name}';
"""
_ENTROPY = """
function '{name}'
  input Real T;
  output Real s;
algorithm
  s := 'Incompressible.entropy'({polynomial}, T);
  annotation(smoothOrder = 1);
end '{name}';
"""
_TEXTS = {".Medium.T_ph.f_nonlinear": _INVERSE, ".Medium.s_T": _ENTROPY}


def text_of(name: str, classes: Mapping[str, tree.Class]) -> str | None:
    """Return the function with the polynomial of the text in it; ``None`` where the text holds none, or several."""
    text = next((text for end, text in _TEXTS.items() if name.endswith(end)), None)
    found = set(_polynomials(classes.values())) if text is not None else set()
    if text is None or len(found) != 1:
        return None
    return text.format(name=name, polynomial="{" + ", ".join(map(repr, found.pop())) + "}")


def _polynomials(classes: Iterable[tree.Class]) -> Iterable[tuple[float, ...]]:
    """Return those that are integrated from 0 to a temperature less 273.15 K."""
    for made in classes:
        bound = (c.value for c in made.components if c.value is not None)
        for node in tree.walk(*made.equations, *(n for section in made.algorithms for n in section), *bound):
            if not (isinstance(node, tree.Calling) and node.name == _INTEGRAL and len(node.arguments) > 1):
                continue
            polynomial, upper = node.arguments[:2]
            if isinstance(polynomial, tree.Braces) and _is_celsius(upper):
                numbers = tuple(map(_number, polynomial.items))
                if None not in numbers:
                    yield numbers  # type: ignore[misc]


def _is_celsius(node: tree.Node) -> bool:
    if not isinstance(node, tree.Chain) or len(node.rest) != 1:
        return False
    operator, shift = node.rest[0]
    return operator == "-" and isinstance(shift, tree.Literal) and shift.value == 273.15


def _number(node: tree.Node) -> float | None:
    sign = 1.0
    if isinstance(node, tree.Unary) and node.operator == "-":
        sign, node = -1.0, node.operand
    return sign * node.value if isinstance(node, tree.Literal) and isinstance(node.value, int | float) else None
