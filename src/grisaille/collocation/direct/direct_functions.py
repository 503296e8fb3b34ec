"""The functions of direct collocation: of an element, of the first point, and of what is observed at points.

They follow from the model and from which of its quantities are slots, constants and start conditions; numbers of
records do not enter. So they are kept with the model, and problems of equal models share them.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from grisaille.cache import Cache
from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.collocation.direct.element import ElementFunctions, ElementLayout, element_functions, start_functions
from grisaille.collocation.direct.law_costs import LawCost, law_costs
from grisaille.collocation.direct.slots import Slots
from grisaille.collocation.direct.start_conditions import StartConditions
from grisaille.collocation.point_formulas import PointFormula
from grisaille.compilation.compiler import is_switched_off


class CollocationModelFunctions:
    """What slots, constants and start conditions make of a model."""

    def __init__(self, model: DirectModel, slots: Slots, conditions: StartConditions, jumps: bool) -> None:
        self._model = model
        symbols, constants = ca.SX.sym("slot", len(slots.names)), ca.SX.sym("constant", len(slots.constants))
        quantities = slots.quantities(symbols, constants)
        self.laws = law_costs(model, symbols, quantities)
        self._parts = parts = ElementLayout(symbols, constants, quantities, self.laws)
        self.element: ElementFunctions = element_functions(model, parts, jumps)
        self.start: ElementFunctions = start_functions(model, parts, conditions.formulas, conditions.wanted)
        self._symbols = [model.t, ca.vertcat(model.X, model.Z), model.u, ca.vertcat(symbols, constants)]
        self._looks: Cache[PointFormula] = Cache(None)
        self._quantities: Cache[ca.Function] = Cache(1)
        self.level_slots = frozenset(
            ca.jacobian_sparsity(ca.substitute(model.levels, model.q, parts.q), symbols).get_col()
        )
        plant = ca.vertcat(model.rates[: model.nx], model.residual)
        gains = ca.densify(ca.vec(ca.substitute(ca.jacobian(plant, model.v), model.q, parts.q)))
        self.gain_slots = frozenset(ca.jacobian_sparsity(gains, symbols).get_col()) - self.level_slots

    def quantities(self, slots: Floats, constants: Floats) -> Floats:
        """Return q at values of slots and constants."""
        inside = [self._parts.slots, self._parts.constants]
        function = self._quantities.get("q", lambda: ca.Function("q", inside, [ca.densify(self._parts.q)]))
        return np.array(function(slots, constants).full()).ravel()

    def look(self, what: str) -> PointFormula:
        """Return a column of the model as a function of points; of its laws, the ``"arguments"``."""
        return self._looks.get(what, lambda: self.formula(self._named(what)))

    def formula(self, given: ca.SX) -> PointFormula:
        """Return a column of formulas of the model without white noise, with slopes by (X, Z) and by the slots."""
        at_rest = ca.vertcat(self._parts.q, ca.SX.zeros(self._model.nv))
        formula = ca.substitute(given, ca.vertcat(self._model.q, self._model.v), at_rest)
        slopes = [ca.jacobian(formula, by) for by in (self._symbols[1], self._parts.slots)]
        return PointFormula(self._symbols, [formula, *slopes])

    def _named(self, what: str) -> ca.SX:
        m = self._model
        if what == "deviation":
            return ca.sqrt(ca.diag(m.variance))
        if what == "arguments":
            return ca.densify(ca.vertcat(*(law.formulas for law in m.laws)))
        return {"measured": m.measured, "observed": m.observed, "constraints": m.constraints}[what]


class DirectFunctions:
    """The functions of one problem, on whatever mesh, and its start conditions."""

    def __init__(self, model: DirectModel, slots: Slots, conditions: StartConditions, jumps: bool = False) -> None:
        self.model, self.slots, self.conditions = model, slots, conditions
        self.after = model.nz if jumps else 0
        """How many algebraic unknowns of an element have values after a jump at its end."""
        given = tuple(sorted(slots.formulas.given))
        key = "functions", slots.names, slots.constants, given, conditions.names, jumps, is_switched_off()
        self._shared = model.cached_value(key, lambda: CollocationModelFunctions(model, slots, conditions, jumps))

    @property
    def element(self) -> ElementFunctions:
        """Of an element."""
        return self._shared.element

    @property
    def start(self) -> ElementFunctions:
        """Of the first point."""
        return self._shared.start

    @property
    def laws(self) -> tuple[LawCost, ...]:
        """Return what outputs add that are measured by laws."""
        return self._shared.laws

    @property
    def level_slots(self) -> frozenset[int]:
        """Slots that levels of noise or the motion of disturbances depend on."""
        return self._shared.level_slots

    @property
    def gain_slots(self) -> frozenset[int]:
        """Slots of other unknowns that decide how strongly white noise acts: C in C ẋ = f + w."""
        return self._shared.gain_slots

    def quantities(self, slots: Floats, constants: Floats) -> Floats:
        """Return values of the model's q at those of slots and constants."""
        return self._shared.quantities(slots, constants)

    def look(self, what: str | ca.SX) -> PointFormula:
        """Return ``"measured"``, ``"deviation"`` (σ), ``"observed"``, ``"constraints"``, ``"arguments"`` of laws, or
        formulas.

        At (t, (X, Z), u, (slots, constants)), with slopes by (X, Z) and by the slots.
        """
        return self._shared.look(what) if isinstance(what, str) else self._shared.formula(what)
