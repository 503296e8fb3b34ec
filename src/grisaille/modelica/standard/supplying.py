"""Which of the texts here holds a function, and under which name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from grisaille.modelica import tree
from grisaille.modelica.parsing import parse
from grisaille.modelica.standard import incompressible, mixtures

_WATER = ("if97_equations.bmo", "if97_saturation.bmo", "if97_regions.bmo")
_TEXTS = {
    "Modelica.Fluid.": ("fluid.bmo",),
    "WallFriction.": ("fluid.bmo",),
    "Modelica.Electrical.Spice3.": ("spice3.bmo",),
    "Modelica.Math.Matrices.": ("matrices.bmo",),
    "Modelica.Math.": ("special.bmo",),
    "Modelica.Media.IdealGases.": ("ideal_gases.bmo",),
    "Medium.T_": ("ideal_gases.bmo",),
    "IF97.": _WATER,
    "Modelica.Media.Common.": _WATER,
    "ReferenceAir.": ("reference_air.bmo",),
    "MoistAir.": ("moist_air.bmo",),
    "Incompressible.": ("incompressible.bmo",),
}
"""Where functions stand, by how their name begins."""
_OF_LIBRARY = {
    "Modelica.Media.Water.IF97_Utilities.": "IF97.",
    "Modelica.Media.Air.ReferenceAir.Air_Utilities.": "ReferenceAir.",
}
"""Packages of the library whose functions stand under their last name in texts here."""
_INTERPOLATIONS = {
    "massFlowRate_dp.interpolateInRegion2": "CubicInterpolation_Re",
    "pressureLoss_m_flow.interpolateInRegion2": "CubicInterpolation_lambda",
}


def supplied(name: str, classes: Mapping[str, tree.Class]) -> tuple[str, tuple[tree.Class, ...]] | None:
    """Return the name under which a missing function is supplied, and the classes of its text; ``None`` where it is
    not.

    classes : of the text that calls it
    """
    meant = name
    if ".WallFriction." in name:
        meant = _wall_friction(name, classes)
    elif (own := incompressible.text_of(name, classes)) is not None:
        return name, tuple(parse(own))
    elif (own := mixtures.text_of(name, classes)) is not None:
        return name, (*parse(own), *classes_of("ideal_gases.bmo"))
    elif "Medium.T_" in name and name.endswith(".f_nonlinear"):
        meant = name[name.index("Medium.T_") :]
    elif ".Medium." in name and f"{name.rpartition('.Medium.')[0]}.Medium.saturationPressureLiquid" in classes:
        meant = f"MoistAir.{name.rpartition('.Medium.')[2]}"
    else:
        place = next((place for place in _OF_LIBRARY if name.startswith(place)), None)
        meant = name if place is None else _OF_LIBRARY[place] + name.rpartition(".")[2]
    texts = next((texts for start, texts in _TEXTS.items() if meant.startswith(start)), ())
    found = tuple(made for text in texts for made in classes_of(text))
    return (meant, found) if any(made.name == meant for made in found) else None


@cache
def classes_of(text: str) -> tuple[tree.Class, ...]:
    """Return the syntax trees of one text here."""
    return tuple(parse((files(__package__) / text).read_text(encoding="utf-8")))


def _wall_friction(name: str, classes: Mapping[str, tree.Class]) -> str:
    """Return a function of a package that the model has chosen:
    ``pipe.flowModel.WallFriction.Internal.m_flow_of_dp_fric``.
    """
    place, _, function = name.rpartition(".WallFriction.")
    if function in _INTERPOLATIONS:
        return f"Modelica.Fluid.Dissipation.Utilities.Functions.General.{_INTERPOLATIONS[function]}"
    # both kinds have the same arguments, but only the quadratic one demands that the wall is rough
    callers = [made for n, made in classes.items() if n.startswith(f"{place}.WallFriction.") and "staticHead" in n]
    asked = (node for made in callers for section in made.algorithms for node in tree.walk(*section))
    rough = any(isinstance(node, tree.Calling) and node.name == "assert" for node in asked)
    return f"WallFriction.{'LaminarAndQuadraticTurbulent' if rough else 'Detailed'}.{function}"
