"""Functions of mixtures of ideal gases, whose gases are known by the molar masses in the text that calls them.

    h(T, X) = Σ X_i h_i(T),   s(p, T, X) = Σ X_i (s_i(T) − R_i ln(Y_i p/p_ref))

Exports of ``Modelica.Media.IdealGases`` mixtures write these out for what a model calls, but do not bring the functions
that are solved for T, nor the sums that those call. Polynomials of gases, h_i and s_i: B. J. McBride, M. J. Zehe,
S. Gordon, "NASA Glenn Coefficients for Calculating Thermodynamic Properties of Individual Species",
NASA/TP-2002-211556.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grisaille.modelica import tree

GAS_CONSTANT = 8.314510
"""Joules per mole and kelvin, as in that collection, which is older than the constant of 2019."""
_SAME_MASS = 1e-9
"""Kilograms per mole by which the masses of one gas may differ."""


@dataclass(frozen=True)
class Gas:
    """A gas of the NASA collection: below and above 1000 K, in J/kg."""

    molar_mass: float
    formation: float
    above_zero: float
    """h at 25 °C less that at 0 K."""
    low: tuple[float, ...]
    low_constants: tuple[float, float]
    high: tuple[float, ...]
    high_constants: tuple[float, float]

    def record(self) -> str:
        """Return the record of its data, written in Modelica."""
        low, low_constants, high, high_constants = (
            "{" + ", ".join(map(repr, numbers)) + "}"
            for numbers in (self.low, self.low_constants, self.high, self.high_constants)
        )
        return (
            f"'Modelica.Media.IdealGases.Common.DataRecord'(\"\", {self.molar_mass!r}, {self.formation!r}, "
            f"{self.above_zero!r}, 1000.0, {low}, {low_constants}, {high}, {high_constants}, "
            f"{GAS_CONSTANT / self.molar_mass!r})"
        )


NITROGEN = Gas(
    0.0280134, 0.0, 309498.4543111511,
    (22103.71497, -381.846182, 6.08273836, -0.00853091441, 1.384646189e-5, -9.62579362e-9, 2.519705809e-12),
    (710.846086, -10.76003744),
    (587712.406, -2239.249073, 6.06694922, -6.1396855e-4, 1.491806679e-7, -1.923105485e-11, 1.061954386e-15),
    (12832.10415, -15.86640027),
)  # fmt: skip
OXYGEN = Gas(
    0.0319988, 0.0, 271263.4223783392,
    (-34255.6342, 484.700097, 1.119010961, 0.00429388924, -6.83630052e-7, -2.0233727e-9, 1.039040018e-12),
    (-3391.45487, 18.4969947),
    (-1037939.022, 2344.830282, 1.819732036, 0.001267847582, -2.188067988e-7, 2.053719572e-11, -8.19346705e-16),
    (-16890.10929, 17.38716506),
)  # fmt: skip
STEAM = Gas(
    0.01801528, -13423382.81725291, 549760.6476280135,
    (-39479.6083, 575.573102, 0.931782653, 0.00722271286, -7.34255737e-6, 4.95504349e-9, -1.336933246e-12),
    (-33039.7431, 17.24205775),
    (1034972.096, -2412.698562, 4.64611078, 0.002291998307, -6.83683048e-7, 9.42646893e-11, -4.82238053e-15),
    (-13842.86509, -7.97814851),
)  # fmt: skip
CARBON_DIOXIDE = Gas(
    0.0440095, -8941478.544405185, 212805.6215135368,
    (49436.5054, -626.411601, 5.30172524, 0.002503813816, -2.127308728e-7, -7.68998878e-10, 2.849677801e-13),
    (-45281.9846, -7.04827944),
    (117696.2419, -1788.791477, 8.29152319, -9.22315678e-5, 4.86367688e-9, -1.891053312e-12, 6.33003659e-16),
    (-39083.5059, -26.52669281),
)  # fmt: skip
GASES = (NITROGEN, OXYGEN, STEAM, CARBON_DIOXIDE)

_FRACTIONS = """
function '{name}'
  input Real X[:];
  input Real MMX[:];
  output Real moleFractions[size(X, 1)];
algorithm
  moleFractions := (X ./ MMX) / sum(X ./ MMX);
end '{name}';
"""
_ENTROPY = """
function '{name}'
  input Real T;
  input Real X[{n}];
  output Real s;
algorithm
  s := {entropies};
  annotation(smoothOrder = 1);
end '{name}';
"""
_OF_ENTHALPY = """
function '{name}'
  input Real u;
  input Real h;
  input Real X[{n}];
  input Boolean exclEnthForm = true;
  input Integer refChoice = 1;
  input Real h_off = 0.0;
  output Real y;
algorithm
  y := {enthalpies} - h;
  annotation(smoothOrder = 1);
end '{name}';
"""
_OF_ENTROPY = """
function '{name}'
  input Real u;
  input Real p;
  input Real s;
  input Real X[{n}];
  output Real y;
algorithm
  y := '{package}specificEntropyOfpTX'(p, u, X) - s;
  annotation(smoothOrder = 1);
end '{name}';
"""
_TEXTS = {
    ".Medium.massToMoleFractions": _FRACTIONS, ".Medium.s_TX": _ENTROPY,
    ".Medium.T_hX.f_nonlinear": _OF_ENTHALPY, ".Medium.T_psX.f_nonlinear": _OF_ENTROPY,
}  # fmt: skip


def text_of(name: str, classes: Mapping[str, tree.Class]) -> str | None:
    """Return the function with the gases of the text in it; ``None`` where the text does not say which."""
    end, text = next(((end, text) for end, text in _TEXTS.items() if name.endswith(end)), ("", ""))
    if not end:
        return None
    package = name.removesuffix(end) + ".Medium."
    gases = _gases(package, classes)
    if not gases or (text is _OF_ENTROPY and f"{package}specificEntropyOfpTX" not in classes):
        return None
    entropy, enthalpy = ("Modelica.Media.IdealGases.Common.Functions.s0_T", "IdealGases.enthalpyFrom")
    entropies = [f"X[{k}] * '{entropy}'({gas.record()}, T)" for k, gas in enumerate(gases, 1)]
    chosen = "exclEnthForm, refChoice, h_off"
    enthalpies = [f"X[{k}] * '{enthalpy}'({gas.record()}, u, {chosen})" for k, gas in enumerate(gases, 1)]
    sums = {"entropies": " + ".join(entropies), "enthalpies": " + ".join(enthalpies)}
    return text.format(name=name, package=package, n=len(gases), **sums)


def _gases(package: str, classes: Mapping[str, tree.Class]) -> list[Gas]:
    """Return those whose molar masses the medium gives ``massToMoleFractions``, all of them or none."""
    found: set[tuple[float, ...]] = set()
    for made in (made for name, made in classes.items() if name.startswith(package)):
        values = [c.value for c in made.components if c.value is not None]
        for node in tree.walk(*values, *(n for section in made.algorithms for n in section)):
            if isinstance(node, tree.Calling) and node.name == f"{package}massToMoleFractions" and node.arguments[1:]:
                masses = node.arguments[1]
                items = masses.items if isinstance(masses, tree.Braces) else []
                found.add(tuple(item.value if isinstance(item, tree.Literal) else 0.0 for item in items))
    if len(found) != 1:
        return []
    known = [[gas for gas in GASES if abs(gas.molar_mass - mass) < _SAME_MASS] for mass in found.pop()]
    return [gas for gases in known for gas in gases] if all(known) else []
