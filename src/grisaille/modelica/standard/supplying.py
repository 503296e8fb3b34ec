"""Which of the texts here holds a function, and under which name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from grisaille.modelica import tree
from grisaille.modelica.parsing import parse

_TEXTS = {
    "Modelica.Fluid.": "fluid.bmo",
    "WallFriction.": "fluid.bmo",
    "Modelica.Electrical.Spice3.": "spice3.bmo",
    "Modelica.Math.": "special.bmo",
    "Modelica.Media.IdealGases.": "ideal_gases.bmo",
    "Medium.T_": "ideal_gases.bmo",
}
"""Where functions stand, by how their name begins."""
_INTERPOLATIONS = {
    "massFlowRate_dp.interpolateInRegion2": "CubicInterpolation_Re",
    "pressureLoss_m_flow.interpolateInRegion2": "CubicInterpolation_lambda",
}


def supplied(name: str, classes: Mapping[str, tree.Class]) -> tuple[str, tuple[tree.Class, ...]] | None:
    """The name under which a missing function is supplied, and the classes of its text; ``None`` where it is not.

    classes : of the text that calls it
    """
    meant = name
    if ".WallFriction." in name:
        meant = _wall_friction(name, classes)
    elif "Medium.T_" in name and name.endswith(".f_nonlinear"):
        meant = name[name.index("Medium.T_") :]
    text = next((text for start, text in _TEXTS.items() if meant.startswith(start)), None)
    if text is None:
        return None
    found = classes_of(text)
    return (meant, found) if any(made.name == meant for made in found) else None


@cache
def classes_of(text: str) -> tuple[tree.Class, ...]:
    """The syntax trees of one text here."""
    return tuple(parse((files(__package__) / text).read_text(encoding="utf-8")))


def _wall_friction(name: str, classes: Mapping[str, tree.Class]) -> str:
    """A function of a package that the model has chosen: ``pipe.flowModel.WallFriction.Internal.m_flow_of_dp_fric``."""
    place, _, function = name.rpartition(".WallFriction.")
    if function in _INTERPOLATIONS:
        return f"Modelica.Fluid.Dissipation.Utilities.Functions.General.{_INTERPOLATIONS[function]}"
    # both kinds have the same arguments, but only the quadratic one demands that the wall is rough
    callers = [made for n, made in classes.items() if n.startswith(f"{place}.WallFriction.") and "staticHead" in n]
    asked = (node for made in callers for section in made.algorithms for node in tree.walk(*section))
    rough = any(isinstance(node, tree.Calling) and node.name == "assert" for node in asked)
    return f"WallFriction.{'LaminarAndQuadraticTurbulent' if rough else 'Detailed'}.{function}"
