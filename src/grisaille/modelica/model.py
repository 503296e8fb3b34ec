"""The names of one model: constants and parameters with their values, variables as symbols.

Real parameters stay parameters; Integer, Boolean, String and enumeration parameters decide the shape of a model and are
fixed at the values they have in the text. So is a Real parameter on which a size, a range or an if-equation depends.
"""

from __future__ import annotations

from typing import Any

from grisaille.model.expression import Call, Condition, Constant, Expression, Name, postorder
from grisaille.model.flat import FlatInput, FlatParameter, FlatVariable
from grisaille.model.rewriting import Rewriter
from grisaille.modelica import tree
from grisaille.modelica.algorithms.assigned import AssignedNames, kept_in, targets_of
from grisaille.modelica.assembling import assembled, entry_of, mapped, parts_of, steps_below
from grisaille.modelica.components import Expansion, Scalar, is_sized_by_value
from grisaille.modelica.evaluation import Evaluator, Pending, array_of
from grisaille.modelica.functions import Algorithm
from grisaille.modelica.library import FunctionLibrary
from grisaille.modelica.naming import check_name
from grisaille.modelica.refusals import Refusals, Refused
from grisaille.modelica.remarks import Remarks
from grisaille.modelica.settling import in_order, number_of
from grisaille.modelica.values import (
    UNSET_VALUE,
    Unfit,
    Unset,
    Value,
    before,
    describe,
    formula,
    is_number,
    is_plain,
)

_ATTRIBUTES = {"start", "fixed", "nominal", "min", "max", "unit", "stateSelect"}
FIRST_CONDITION = Condition("gt", (Call("pre", (Name("initial()"),)), Constant(0.5)))
"""The condition ``initial()``; ``events`` declares the discrete variable in it."""
_LARGE = 1e59
"""Bounds beyond are no bounds: Modelica.Constants.inf is 1e60."""


class ModelEvaluator(Evaluator):
    """An evaluator that can settle formulas of parameters."""

    names: ModelNames

    def settled(self, value: Value) -> Value:
        return self.names.settled(value)

    def settled_truth(self, value: Any) -> Any:
        return self.names.settled(value) if isinstance(value, Condition) else value


class ModelNames:
    """What the names of a model stand for."""

    def __init__(self, library: FunctionLibrary, made: tree.Class, refusals: Refusals) -> None:
        self.library, self.made, self.refusals = library, made, refusals
        self.evaluator = ModelEvaluator(self)
        self.values: dict[str, Any] = {"time": Name("time")}
        self.parameters: dict[str, FlatParameter] = {}
        self.variables: dict[str, FlatVariable] = {}
        self.inputs: dict[str, FlatInput] = {}
        self.outputs: list[str] = []
        self.fixed: dict[str, Any] = {}
        """Structural parameters and constants, with their values."""
        self.unknown_parameters: list[str] = []
        """Parameters that initial equations determine (``fixed = false``)."""
        self.found: dict[str, tuple[Expression, int]] = {}
        """Parameters that follow from those, with their formulas and places."""
        self.discrete: dict[str, Scalar] = {}
        """Variables that change at events only: Boolean, Integer, enumerations, texts, ``discrete Real``."""
        self.formulas: dict[str, Any] = {}
        """Values of discrete variables, once they are known."""
        self.confidence: dict[str, dict[str, int]] = {}
        """On which levels starts of variables were written, where the text says so (``confidence``)."""
        self.preferred: set[str] = set()
        """Variables with ``stateSelect = StateSelect.prefer`` or ``always``."""
        self._places: dict[str, int] = {}
        self.settled_reals: set[str] = set()
        self.bindings: list[tree.Equal] = []
        self.remarks = Remarks()
        self.uses_first = False
        """Whether ``initial()`` was asked for."""
        self._outcomes: dict[int, dict[str, Any]] = {}
        self._parts: dict[str, list[str]] | None = None
        self._numbers: dict[str, Any] = {}
        self._expansion = Expansion(library, self.evaluator, _ATTRIBUTES)
        self._expansion.settled = self._settled_leaf
        self._expansion.given = _given_by_equations(made)
        library.evaluator = self.evaluator
        library.constant = self.constant
        self._declare()

    # --- what evaluators ask ---

    def value_of(self, name: str) -> Any:
        found = self.values.get(name)
        if found is not None:
            return found
        try:
            return self.library.value_of(name)
        except LookupError:
            return self._assembled(name)

    def _assembled(self, name: str) -> Value | None:
        """Return an array or a record whose scalars are declared one by one, or an entry of one declared as a whole."""
        parts, entry = self._below(name), self._declared_value(name)
        if entry is None and not parts:
            raise KeyError(name)
        return assembled(name, parts, self.value_of) if entry is None else entry

    def at_start(self, value: Expression) -> Expression:
        begun = {
            node.left.path for node in self.made.initial_equations
            if isinstance(node, tree.Equal) and isinstance(node.left, tree.Reference)
            and isinstance(node.right, tree.Reference) and node.right.path == "time"
        }  # fmt: skip
        start = self.made.annotation.get("experiment.StartTime", 0.0)
        at = Constant(float(start) if is_number(start) else 0.0)
        computed = self._computed_at_start(value)
        value = Rewriter(lambda node: computed.get(node.path) if isinstance(node, Name) else None)(value)
        begun = begun | {"time"} if computed else begun
        return Rewriter(lambda node: at if isinstance(node, Name) and node.path in begun else None)(value)

    def _computed_at_start(self, value: Expression) -> dict[str, Expression]:
        """Return the parameters in a formula that initial algorithms compute, in terms of ``time`` and other
        parameters.
        """
        asked = {leaf.path for leaf in postorder((value,)) if isinstance(leaf, Name)} & set(self.unknown_parameters)
        return {
            name: formula(self.outcome(tree.Outcome(section[0].at, section, name)))
            for section in self.made.initial_algorithms for name in asked & set(targets_of(self, section))
        }  # fmt: skip

    def first(self) -> Value:
        self.uses_first = True
        return FIRST_CONDITION

    def outcome(self, node: tree.Outcome) -> Value:
        key = id(node.section)
        if key not in self._outcomes:
            kept, assigned = kept_in(self, node.section), AssignedNames(self, node.section)
            local = assigned.entered(lambda name: self._kept(name) if name in kept else UNSET_VALUE)
            Algorithm(self.evaluator, remembers=True).run(node.section, local)
            self._outcomes[key] = assigned.left(local)
        value = self._outcomes[key][node.target]
        if isinstance(value, Unset):
            raise Refused(node.at, f"the algorithm does not always give '{node.target}' a value")
        return value

    def is_known(self, name: str) -> bool:
        return self._declared_value(name) is not None or bool(self._below(name))

    def scalars(self, name: str) -> list[str]:
        """Return every scalar of an array or a record; a scalar itself."""
        found: list[str] = []
        value, parts = self._declared_value(name), self._below(name)
        if value is None and parts:
            return [scalar for part in parts for scalar in self.scalars(part)]
        mapped(name, value, lambda scalar, _: found.append(scalar))
        return found

    def structure(self, name: str) -> Any:
        """Return the value of a name, its scalars not yet looked up."""
        value, parts = self._declared_value(name), self._below(name)
        return assembled(name, parts, self.structure) if value is None and parts else value

    def _declared_value(self, name: str) -> Value | None:
        """Return the value of what is declared under this name, or of an entry of it; None where it is not."""
        whole = name
        while whole and whole not in self.values:
            whole = array_of(whole) or whole.rpartition(".")[0]
        return entry_of(self.values[whole], steps_below(whole, name)) if whole else None

    def _below(self, name: str) -> list[str]:
        if self._parts is None:
            self._parts = parts_of([*self.values, *(c.name for c in self.made.components)])
        return self._parts.get(name, [])

    def _kept(self, name: str) -> Value | None:
        """Return what a variable is before an algorithm gives it a value: what it was before the event, or its
        start.
        """
        value = self.formulas.get(name)
        if isinstance(value, Expression):
            return before(value)
        if name not in self.variables:
            return UNSET_VALUE
        if self.variables[name].start is None:
            words = f"an algorithm does not always give '{name}' a value: it is its start there"
            self.remarks.add(self.place_of(name), f"{words}, zero since none is declared")
            return Constant(0.0)
        return self.variables[name].start

    def skipped(self, name: str) -> int:
        return self.library.skipped(name)

    def call(self, node: tree.Calling, arguments: list[Value], named: dict[str, Value]) -> Value:
        return self.library.call(node, arguments, named)

    def settled(self, value: Value) -> Value:
        """Return the number of a formula of parameters, which are fixed from then on."""
        if not isinstance(value, Expression):
            return value
        number = number_of(value, self._number)
        if not isinstance(number, Expression):
            self.settled_reals |= {leaf.path for leaf in postorder((value,)) if isinstance(leaf, Name)}
        return number

    def number(self, value: Value | None) -> Value | None:
        """Return the number of a formula of parameters; nothing is fixed by asking."""
        return number_of(value, self._number) if isinstance(value, Expression) else value

    def constant(self, value: Value | None) -> Value | None:
        """Return the number of a formula of parameters, and of variables that their declarations give constant
        values.
        """
        return number_of(value, self._constant) if isinstance(value, Expression) else value

    def _constant(self, name: str) -> Value | None:
        if name not in self.variables:
            return self._number(name)
        for binding in self.bindings:
            whole = binding.left.path if isinstance(binding.left, tree.Reference) else name + " "
            if name == whole or name.startswith((f"{whole}[", f"{whole}.")):
                entry = entry_of(self.evaluator.value(binding.right, {}), steps_below(whole, name))
                return self.settled(entry) if entry is not None and is_plain(self.number(entry)) else None
        return None

    def _number(self, name: str) -> Any:
        if name not in self._numbers:
            parameter = self.parameters.get(name)
            if parameter is None or parameter.value is None:
                return None
            pending = [name]
            while pending:  # formulas of formulas, without recursion
                top = self.parameters[pending[-1]].value
                needed = [
                    leaf.path for leaf in postorder((top,) if top is not None else ())
                    if isinstance(leaf, Name) and leaf.path not in self._numbers and leaf.path in self.parameters
                ]  # fmt: skip
                if needed and len(pending) < 10_000:
                    pending.extend(needed)
                    continue
                current = pending.pop()
                value = None if top is None else number_of(top, self._numbers.get)
                self._numbers[current] = None if isinstance(value, Expression) else value
        return self._numbers[name]

    # --- declarations ---

    def _declare(self) -> None:
        constant = {"constant", "parameter"}
        settled = {c.name: c for c in self.made.components if c.prefixes & constant}
        seen: set[str] = set()
        for component in self.made.components:
            if component.name in seen:
                self.refusals.add(Refused(component.at, f"'{component.name}' is declared twice"))
            seen.add(component.name)
        for name in self._in_order(settled):
            self._declared(settled[name], self._settled_leaf, with_value=True)
        variables = [c for c in self.made.components if not c.prefixes & constant]
        sized = self._in_order({c.name: c for c in variables if is_sized_by_value(c)})
        by_name = {c.name: c for c in variables}
        for component in [*(c for c in variables if not is_sized_by_value(c)), *(by_name[name] for name in sized)]:
            self._declared(component, self._variable_leaf, with_value=False)
            self.bindings += self._expansion.bindings
            self._expansion.bindings = []
            if component.value is not None:
                target = tree.Reference(component.at, (tree.Part(component.name),))
                self.bindings.append(tree.Equal(component.at, target, component.value))

    def _in_order(self, declared: dict[str, tree.Declared]) -> list[str]:
        try:
            return in_order(declared)
        except Refused as refused:
            self.refusals.add(refused)
            self.refusals.stop()

    def _declared(self, component: tree.Declared, leaf: Any, *, with_value: bool) -> None:
        try:
            check_name(component.name)
            self.values[component.name] = self._expansion.expand(component, leaf, with_value=with_value)
        except Unfit as unfit:
            self.refusals.add(Refused(component.at, str(unfit)))
        except Refused as refused:
            self.refusals.add(refused)

    def _settled_leaf(self, scalar: Scalar) -> Value | None:
        if scalar.base == "Real" and "constant" not in scalar.declared.prefixes:
            return self._parameter(scalar)
        value = scalar.value if scalar.value is not None else scalar.attributes.get("start")
        if self.settled(scalar.attributes.get("fixed", True)) is False:
            return Pending(lambda: self._begun(scalar))
        if value is None:
            self.fixed[scalar.name] = None
            return UNSET_VALUE
        return self._fix(scalar, value)

    def _begun(self, scalar: Scalar) -> Any:
        """Return a parameter with ``fixed = false`` that decides the shape of a model: what the initial sections give
        it.
        """
        name = scalar.name
        if name in self.fixed:
            return self.fixed[name]
        found: Any = None
        for node in self.made.initial_equations:
            if isinstance(node, tree.Equal) and isinstance(node.left, tree.Reference) and node.left.path == name:
                found = self.evaluator.value(node.right, {})
        for section in self.made.initial_algorithms:
            if name in targets_of(self, section):
                found = self.outcome(tree.Outcome(section[0].at, section, name))
        if found is None:
            raise Refused(scalar.declared.at, f"'{name}' is found by initial equations, but none gives its value alone")
        return self._fix(scalar, found)

    def _fix(self, scalar: Scalar, value: Value) -> Value:
        value = self.settled(value)
        if not is_plain(value):
            raise Unfit(f"the value of '{scalar.name}' must be known before the simulation, got {describe(value)}")
        self.fixed[scalar.name] = value
        return _typed(value, scalar.base)

    def _parameter(self, scalar: Scalar) -> Value:
        name, attributes = scalar.name, scalar.attributes
        if self.settled(attributes.get("fixed", True)) is False:
            self.unknown_parameters.append(name)
            self.variables[name] = self._flat_variable(scalar, fixed=False, start=attributes.get("start", scalar.value))
            return Name(name)
        value = scalar.value if scalar.value is not None else attributes.get("start")
        expression = None if value is None else formula(value)
        if expression is not None and self._is_found(expression):
            self.unknown_parameters.append(name)
            self.found[name] = (expression, scalar.declared.at)
            self.variables[name] = self._flat_variable(scalar, fixed=False, start=None)
            return Name(name)
        if expression is not None and any(
            isinstance(leaf, Name) and leaf.path not in self.parameters for leaf in postorder((expression,))
        ):
            raise Unfit(f"the value of the parameter '{name}' is `{expression}`, which is not constant")
        self.parameters[name] = FlatParameter(
            name, expression, self._text(attributes.get("unit")), scalar.declared.words, self._bounds(scalar, value)
        )
        return Name(name)

    def _is_found(self, expression: Expression) -> bool:
        """Return whether a formula contains a parameter that initial equations determine, and parameters only."""
        names = [leaf.path for leaf in postorder((expression,)) if isinstance(leaf, Name)]
        unknown = set(self.unknown_parameters)
        return bool(unknown & set(names)) and all(n in unknown or n in self.parameters for n in names)

    def _variable_leaf(self, scalar: Scalar) -> Value:
        name = scalar.name
        if scalar.base != "Real" or "discrete" in scalar.declared.prefixes:
            self.discrete[name] = scalar
            self.values[name] = Pending(
                lambda: self._formula(name, scalar)
            )  # entries of an array are asked for by name
            return self.values[name]
        if "input" in scalar.declared.prefixes:
            start = self.number(scalar.attributes.get("start"))
            default = float(start) if is_number(start) else None
            unit = self._text(scalar.attributes.get("unit"))
            self.inputs[name] = FlatInput(name, default, unit, scalar.declared.words)
            return Name(name)
        if "output" in scalar.declared.prefixes:
            self.outputs.append(name)
        said = scalar.declared.annotation
        levels = {key: said.get(f"__Grisaille.confidence.{key}") for key in ("ofStart", "ofValue")}
        self.confidence[name] = {key: level for key, level in levels.items() if isinstance(level, int)}
        self._places[name] = scalar.declared.at
        if getattr(scalar.attributes.get("stateSelect"), "name", "") in ("prefer", "always"):
            self.preferred.add(name)
        fixed = self.settled(scalar.attributes.get("fixed", False))
        self.variables[name] = self._flat_variable(scalar, fixed is True, scalar.attributes.get("start"))
        return Name(name)

    def place_of(self, name: str) -> int:
        """Return where a variable is declared."""
        return self._places.get(name, 0)

    def _formula(self, name: str, scalar: Scalar) -> Value:
        if name not in self.formulas:
            raise Refused(scalar.declared.at, f"'{name}' ({scalar.base}) is used but no equation gives its value")
        return self.formulas[name]

    def _flat_variable(self, scalar: Scalar, fixed: bool, start: Value | None) -> FlatVariable:
        expression = formula(start) if start is not None else Constant(0.0) if fixed else None
        nominal = self.number(scalar.attributes.get("nominal"))
        return FlatVariable(
            scalar.name,
            expression,
            self._text(scalar.attributes.get("unit")),
            scalar.declared.words,
            fixed,
            abs(float(nominal)) if is_number(nominal) and 0 < abs(nominal) < _LARGE else None,
            self._bounds(scalar, start),
        )

    def _bounds(self, scalar: Scalar, value: Any) -> tuple[float, float] | None:
        """(min, max) where they say something and hold the value."""
        low, high = (self.number(scalar.attributes.get(key)) for key in ("min", "max"))
        low = float(low) if is_number(low) and low > -_LARGE else -float("inf")
        high = float(high) if is_number(high) and high < _LARGE else float("inf")
        number = self.number(value)
        if is_number(number) and not low <= number <= high:
            words = f"'{scalar.name}' = {number:g} lies outside its bounds, {low:g} to {high:g}, which are left out"
            self.remarks.add(scalar.declared.at, words)
            return None
        return (low, high) if low < high and (low, high) != (-float("inf"), float("inf")) else None

    @staticmethod
    def _text(value: Value | None) -> str:
        return value if isinstance(value, str) else ""


def _given_by_equations(made: tree.Class) -> set[str]:
    """Return names that stand alone on the left of an equation or a statement, or on the right of a formula."""
    found: set[str] = set()
    for node in tree.walk(*made.equations, *(s for section in made.algorithms for s in section)):
        sides = [node.target] if isinstance(node, tree.Assign) else []
        if isinstance(node, tree.Equal):
            sides = [node.left if isinstance(node.left, tree.Reference | tree.Several) else node.right]
        sides += [i for s in sides if isinstance(s, tree.Several) for i in s.items if i is not None]
        found |= {s.path for s in sides if isinstance(s, tree.Reference)}
    return found


def _typed(value: Value, base: str) -> Value:
    if base == "Real" and is_number(value):
        return float(value)
    if base == "Integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
