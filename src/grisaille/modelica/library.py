"""The classes of a text besides the model: functions, records, enumerations, types, constants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from grisaille.model.expression import Expression
from grisaille.modelica import tree
from grisaille.modelica.builtins import BUILTINS
from grisaille.modelica.evaluation import Evaluator, Local
from grisaille.modelica.functions import Algorithm, blank
from grisaille.modelica.limits import CALL, spend
from grisaille.modelica.prelude import standard_functions
from grisaille.modelica.refusals import Refused
from grisaille.modelica.smoothness import is_smooth, mark_conditions
from grisaille.modelica.standard import NATIVE as SUPPLIED, lapack, supplied, texts
from grisaille.modelica.tables import (
    OF_EVENTS,
    SETTLED_ARGUMENTS,
    SMOOTH_KINDS,
    SURFACE_FUNCTIONS,
    TABLE_FUNCTIONS,
    Guarded,
)
from grisaille.modelica.values import (
    UNSET_VALUE,
    Enumerated,
    Given,
    RecordValue,
    Unfit,
    Value,
    array,
    elementwise,
    is_number,
    is_plain,
)

MAX_CALL_DEPTH = 25
"""Calls of functions inside each other."""
MAX_RECURSION_DEPTH = 50
"""Calls of one function inside each other."""
MAX_CALLS = 200_000
"""Calls of functions in all."""
FRAMES_OF_CALL = 60
"""Python calls that a call of a function inside another one takes, at most."""
_ENUMERATIONS = {
    "StateSelect": ("never", "avoid", "default", "prefer", "always"),
    "AssertionLevel": ("warning", "error"),
}
SOLVER_FUNCTION = "Modelica.Math.Nonlinear.solveOneNonlinearEquation"
SIMPLE_TYPES = ("Real", "Integer", "Boolean", "String")


class FunctionLibrary:
    """Classes by full name, and what calls of them give."""

    def __init__(self, classes: list[tree.Class]) -> None:
        self.classes: dict[str, tree.Class] = {}
        self.enumerations: dict[str, RecordValue] = {}
        self.constants: dict[str, Any] = {}
        for name, literals in _ENUMERATIONS.items():
            self._enumerate(name, literals)
        for made in (*standard_functions(), *classes):
            self._enter(made, "")
        self._open: list[str] = []
        self._calls = 0
        self._usual_depth = sys.getrecursionlimit()
        self._known: dict[Any, tuple[Any, Any]] = {}
        self.evaluator = Evaluator(self)
        self.solver: Callable[[Callable[[Any], Any], Any, Any, int], Any] | None = None
        """Makes an unknown of f(u) = 0 in the model that is read: f, bounds of u, place."""
        self.remark: Callable[[int, str], None] = lambda at, words: None
        """Tells what is assumed, with its place."""
        self.constant: Callable[[Any], Any] = lambda value: value
        """The number of a formula of variables that declarations give constant values; else the formula."""
        self.require: Callable[[Any, str, int], None] = lambda holds, words, at: None
        """Adds an assertion to the model that is read: a condition, its message, place."""

    def _enter(self, made: tree.Class, prefix: str) -> None:
        name = f"{prefix}.{made.name}" if prefix else made.name
        if made.literals:
            self._enumerate(name, made.literals)
        self.classes[name] = made
        for inner in made.classes.values():
            self._enter(inner, name if made.kind != "package" else "")

    def enter_local(self, made: tree.Class) -> None:
        """Classes inside a model or a package, under their own names, and under their full ones."""
        for inner in made.classes.values():
            if inner.name not in self.classes:
                self._enter(inner, "")
            if made.kind == "package":
                self._enter(inner, made.name)
                self.enter_local(inner)

    def _enumerate(self, name: str, literals: tuple[str, ...]) -> None:
        values = {literal: Enumerated(name, k + 1, literal) for k, literal in enumerate(literals)}
        self.enumerations[name] = RecordValue(name, values)

    # --- names ---

    def value_of(self, name: str) -> Value:
        """Return a constant of a package or an enumeration; ``LookupError`` where there is none."""
        if name in self.constants:
            return self.constants[name]
        return self.enumerations[name]

    def resolved(self, name: str, at: int) -> tuple[str, tuple[tree.Node, ...], dict[str, tree.Node]]:
        """Return what a type's name finally stands for, with sizes and attributes that were declared on the way."""
        sizes: tuple[tree.Node, ...] = ()
        attributes: dict[str, tree.Node] = {}
        for _ in range(30):
            if name in SIMPLE_TYPES or name in self.enumerations:
                return name, sizes, attributes
            made = self.classes.get(name)
            if made is None:
                raise Refused(at, f"the type '{name}' is not defined")
            if not made.base:
                return name, sizes, attributes
            sizes += made.sizes
            attributes = {**made.attributes, **attributes}
            name = made.base
        raise Refused(at, f"the type '{name}' is defined by itself")

    def skipped(self, name: str) -> int:
        """Return how many last arguments of a call need no value: the event instants of tables of time."""
        made = self.classes.get(name)
        external = made.external if made is not None else None
        if external is not None and external.function in OF_EVENTS:
            return 2
        return 0

    def at_start(self, value: Expression) -> Expression:
        """Refuse: functions know nothing of a run."""
        return value

    def first(self) -> Value:
        """Refuse: functions know nothing of events."""
        raise Unfit("initial() stands outside a model")

    def outcome(self, node: tree.Outcome) -> Value:
        """Only models have algorithm sections of their own."""
        raise Refused(node.at, "an algorithm section stands outside a model")

    # --- calls ---

    def call(self, node: tree.Calling, arguments: list[Any], named: dict[str, Any]) -> Any:
        """Return a record, an external object, or the results of a function."""
        made = self.classes.get(node.name)
        if node.name.startswith("function "):
            if arguments:
                raise Refused(node.at, "a function as an argument gets its own arguments by name")
            return Given(node.name.removeprefix("function "), named)
        if node.name == SOLVER_FUNCTION and len(arguments) >= 3:
            if not all(map(is_settled, arguments)):
                return self._solved(node, *arguments[:3])
            if made is None and isinstance(arguments[0], Given):
                return self._bracketed(node, *arguments[:3])
        if texts.is_known(node.name):
            return texts.called(node.name, arguments, named)
        if node.name in self.enumerations and len(arguments) == 1:
            return self._literal(node, arguments[0])
        if made is None:
            return self._supplied(node, arguments, named)
        if made.kind == "record":
            return self._record(made, arguments, named, node.at)
        if "ExternalObject" in made.extends:
            inner = made.classes.get("constructor")
            if inner is None:
                raise Refused(node.at, f"'{node.name}' has no constructor")
            return self._run(inner, node.name, arguments, named, node.at)
        if made.kind != "function":
            raise Refused(node.at, f"'{node.name}' is a {made.kind}, not a function")
        key = (node.name, *map(_key, arguments), *((n, _key(v)) for n, v in named.items()))
        if key not in self._known:
            with self.evaluator.plainly():  # the result is kept for calls that do not stand in smooth()
                self._known[key] = (self._run(made, node.name, arguments, named, node.at), (arguments, named))
        return self._known[key][0]

    def _literal(self, node: tree.Calling, position: Value) -> Value:
        """Return ``E(2)``: the literal of an enumeration at a position."""
        literals = list(self.enumerations[node.name].values())
        place = self.evaluator.settled(position)
        if not isinstance(place, int) or not 1 <= place <= len(literals):
            raise Refused(
                node.at, f"'{node.name}' takes a number from 1 to {len(literals)} that is known before the run"
            )
        return literals[place - 1]

    def _solved(self, node: tree.Calling, function: Any, low: Value, high: Value) -> Value:
        """Return the root of a function with one argument, as an unknown with an equation."""
        if self.solver is None or not isinstance(function, Given):
            raise Refused(node.at, f"'{node.name}' of what is only known during a simulation stands outside a model")
        key = (SOLVER_FUNCTION, _key(function), _key(low), _key(high))
        if key not in self._known:
            inner = tree.Calling(node.at, function.name, [], {})
            root = self.solver(lambda u: self.call(inner, [u], function.arguments), low, high, node.at)
            self._known[key] = (root, (function, low, high))
        return self._known[key][0]

    def _bracketed(self, node: tree.Calling, function: Given, low: float, high: float) -> float:
        """Return the root of a function with one argument that is known while the text is read."""
        inner = tree.Calling(node.at, function.name, [], {})
        try:
            root = scipy.optimize.brentq(lambda u: self.call(inner, [u], function.arguments), low, high, xtol=1e-14)
        except ValueError:
            raise Refused(node.at, f"'{function.name}' has no root, or several, from {low} to {high}") from None
        return float(root)

    def _supplied(self, node: tree.Calling, arguments: list[Value], named: dict[str, Value]) -> Value:
        """Return a call of a function that the text does not bring."""
        if node.name in SUPPLIED:
            return SUPPLIED[node.name](*arguments, **named)
        found = supplied(node.name, self.classes)
        if found is None:
            raise Refused(node.at, f"the function '{node.name}' is not defined in this text")
        meant, classes = found
        if meant.endswith(".Medium.T_ph.f_nonlinear"):
            self.remark(node.at, f"'{node.name}' is not brought: enthalpies are taken to depend on temperature alone")
        if meant.startswith("Medium.T_h."):
            self.remark(
                node.at, f"'{node.name}' is not brought: enthalpies are taken as zero at 0 K, without formation"
            )
        for made in classes:
            self.classes.setdefault(made.name, made)
        try:
            return self.call(tree.Calling(node.at, meant, node.arguments, node.named), arguments, named)
        except (Refused, Unfit) as refused:
            raise Refused(node.at, f"in '{node.name}', which is supplied: {refused}") from None

    def _record(self, made: tree.Class, arguments: list[Value], named: dict[str, Value], at: int) -> RecordValue:
        names = [c.name for c in made.components]
        given = {**dict(zip(names, arguments, strict=False)), **named}
        local: Local = {}
        for component in made.components:
            if component.name in given:
                local[component.name] = given[component.name]
            elif component.value is not None:
                local[component.name] = self.evaluator.value(component.value, local)
            else:
                local[component.name] = self._blank(component, local)
        if len(arguments) > len(names) or set(named) - set(names):
            raise Refused(at, f"the record '{made.name}' has the fields {', '.join(names)}")
        return RecordValue(made.name, local)

    def _run(self, made: tree.Class, name: str, arguments: list[Value], named: dict[str, Value], at: int) -> Value:
        self._check_depth(name, at)
        inputs = [c for c in made.components if "input" in c.prefixes]
        if len(arguments) > len(inputs) or set(named) - {c.name for c in inputs}:
            takes = ", ".join(c.name for c in inputs) or "none"
            raise Refused(at, f"the function '{name}' does not take these arguments; it takes {takes}")
        given = _without_phase(made, {**dict(zip((c.name for c in inputs), arguments, strict=False)), **named})
        stretched = [c.name for c in inputs if _is_longer(given.get(c.name), c)]
        if not self._open:
            self._usual_depth = sys.getrecursionlimit()
        self._open.append(name)
        try:
            spend(CALL)
            deepen_stack(len(self._open))
            if stretched:
                rest = {k: v for k, v in given.items() if k not in stretched}
                return elementwise(
                    lambda *items: self._once(made, name, {**rest, **dict(zip(stretched, items, strict=True))}, at),
                    *(given[k] for k in stretched),
                )
            return self._once(made, name, given, at)
        finally:
            self._open.pop()
            if not self._open:
                sys.setrecursionlimit(self._usual_depth)

    def _check_depth(self, name: str, at: int) -> None:
        """Calls end: functions that call themselves must stop by what is known while the text is read."""
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise Refused(at, f"more than {MAX_CALLS} calls of functions would be run")
        if self._open.count(name) >= MAX_RECURSION_DEPTH:
            raise Refused(
                at,
                f"the function '{name}' calls itself more than {MAX_RECURSION_DEPTH} deep: what ends it must be known "
                "before the simulation; add an Integer that counts the calls, and stop at a limit",
            )
        if len(set(self._open)) >= MAX_CALL_DEPTH:
            raise Refused(at, f"functions call each other more than {MAX_CALL_DEPTH} deep")

    def _once(self, made: tree.Class, name: str, given: Local, at: int) -> Value:
        local: Local = {}
        for component in made.components:
            if component.name in given:
                local[component.name] = given[component.name]
            elif component.value is not None:
                local[component.name] = self._bound(component, local)
            elif "input" in component.prefixes:
                raise Refused(at, f"the function '{name}' needs a value for '{component.name}'")
            else:
                local[component.name] = self._blank(component, local)
        outputs = [c.name for c in made.components if "output" in c.prefixes]
        if made.external is not None:
            self._external(made, outputs, local, name, at)
        elif made.algorithms:
            for section in made.algorithms:
                Algorithm(self.evaluator, require=self.require).run(section, local)
        elif outputs and all(local[n] is UNSET_VALUE for n in outputs):
            raise Refused(at, f"the function '{name}' has no algorithm")
        results = tuple(local[n] for n in outputs)
        if is_smooth(made):
            marked = mark_conditions(made, results, given.values())
            assert isinstance(marked, tuple)
            results = marked
        return results[0] if len(results) == 1 else results

    def _bound(self, component: tree.Declared, local: Local) -> Value:
        assert component.value is not None
        try:
            return self.evaluator.value(component.value, local)
        except Unfit as unfit:
            raise Refused(component.at, str(unfit)) from None

    def _external(self, made: tree.Class, outputs: list[str], local: Local, name: str, at: int) -> None:
        external = made.external
        assert external is not None
        if external.function in SUPPLIED:
            results = SUPPLIED[external.function](*(local[c.name] for c in made.components if "input" in c.prefixes))
            local.update(zip(outputs, (self._checked(r, at) for r in results), strict=True))
            return
        if external.function in lapack.FUNCTIONS:
            self._lapack(external, local, at)
            return
        function = {**BUILTINS, **texts.EXTERNAL, **TABLE_FUNCTIONS}.get(external.function)
        if function is None:
            raise Refused(
                at, f"the external function '{external.function or name}' is not supported: it would run foreign code"
            )
        if external.result is None or not external.arguments:
            values = [local[c.name] for c in made.components if "input" in c.prefixes]
        else:
            values = [self.evaluator.value(a, local) for a in external.arguments]
        deciding = SETTLED_ARGUMENTS.get(external.function, 0)  # when a table begins, say, and by what it is shifted
        values = [self.evaluator.settled(v) if k < deciding else v for k, v in enumerate(values)]
        curved = any(
            isinstance(v, Enumerated) and v.type.endswith("Smoothness") and v.index in SMOOTH_KINDS for v in values
        )
        has_row = external.function in SURFACE_FUNCTIONS
        value = self._checked(function(*(self._with_abscissas(v, curved, has_row) for v in values)), at)
        if not outputs:
            return
        is_truth = any(c.name == outputs[0] and c.type == "Boolean" for c in made.components)
        local[outputs[0]] = value != 0 if is_truth and isinstance(value, int) else value  # as C has truth values

    def _lapack(self, external: tree.External, local: Local, at: int) -> None:
        """A routine of LAPACK, which writes into its arguments."""
        values = [
            local[a.path] if isinstance(a, tree.Reference) and a.path in local else self.evaluator.value(a, local)
            for a in external.arguments
        ]

        def numbers(position: int) -> np.ndarray[Any, Any]:
            entries = [self.constant(self.evaluator.settled(v)) for v in np.ravel(_as_array(values[position]))]
            if not all(map(is_number, entries)):
                raise Refused(at, f"'{external.function}' of LAPACK needs numbers that are known before the simulation")
            return np.array(entries, dtype=float).reshape(_as_array(values[position]).shape)

        try:
            written = lapack.FUNCTIONS[external.function](values, numbers)
        except (ValueError, IndexError, TypeError) as error:
            raise Refused(at, f"'{external.function}' of LAPACK: {error}") from None
        for position, result in written.items():
            target = external.arguments[position]
            if isinstance(target, tree.Reference):
                plain = np.asarray(result).tolist()
                local[target.path] = _arrays(plain)

    def _checked(self, value: Value, at: int) -> Value:
        """Return a value whose condition has become an assertion of the model."""
        if not isinstance(value, Guarded):
            return value
        self.require(value.holds, value.message, at)
        return value.value

    def _with_abscissas(self, value: Value, curved: bool, has_row: bool) -> Value:
        """Return a matrix whose abscissas are settled, as tables need it, and all of it where slopes are made of it."""
        if not isinstance(value, np.ndarray) or value.ndim != 2 or not value.size:
            return value
        table = value.copy()
        for k in range(value.shape[1] if curved else 1):
            table[:, k] = [self.evaluator.settled(x) for x in value[:, k]]
        if has_row:
            table[0] = [self.evaluator.settled(x) for x in table[0]]
        return table

    def _blank(self, component: tree.Declared, local: Local) -> Value:
        """Return a variable of a function before its first assignment."""
        base, sizes, _ = self.resolved(component.type, component.at)
        inner: Any = UNSET_VALUE
        made = self.classes.get(base)
        if made is not None and made.kind == "record":
            fields = {c.name: self._blank(c, local) for c in made.components}
            inner = RecordValue(base, fields)
        shape = []
        for size in (*component.sizes, *sizes):
            if isinstance(size, tree.Range):
                return UNSET_VALUE  # its size follows from what is assigned
            shape.append(self.evaluator.whole(size, local, f"the size of '{component.name}'"))
        return blank(tuple(shape), inner)


def _arrays(value: Value) -> Value:
    """Return lists in lists as arrays of formulas."""
    return array([_arrays(item) for item in value]) if isinstance(value, list) else value


def _without_phase(made: tree.Class, given: Local) -> Local:
    """Return the arguments of a function of media that is told the phase which it would find itself, without it.

    It is 1 or 2, 0 where it is not known. The equation that finds it switches where the phase changes, and so would
    the properties, which do not jump there.
    """
    if "Modelica.Media." not in made.name or not isinstance(given.get("phase"), Expression):
        return given
    known = any(c.name == "phase" and isinstance(c.value, tree.Literal) and c.value.value == 0 for c in made.components)
    return {**given, "phase": 0} if known else given


def deepen_stack(calls: int) -> None:
    """Lets Python go as deep as calls inside each other need."""
    needed = 1000 + FRAMES_OF_CALL * calls
    if calls > MAX_CALL_DEPTH // 2 and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


def _is_longer(value: Value | None, component: tree.Declared) -> bool:
    """Return whether an array is given for a single number: the function is then applied to each entry."""
    return isinstance(value, np.ndarray) and not component.sizes and component.type in SIMPLE_TYPES


def is_settled(value: Value) -> bool:
    """Return whether a value, or all arguments of a function, are known before a run."""
    return all(map(is_plain, value.arguments.values())) if isinstance(value, Given) else is_plain(value)


def _key(value: Value) -> Value:
    """Return a key that is equal for arguments that give the same result."""
    if isinstance(value, Given):
        return ("function", value.name, *((n, _key(v)) for n, v in value.arguments.items()))
    if isinstance(value, np.ndarray):
        return ("array", value.shape, *map(_key, value.flat))
    if isinstance(value, RecordValue):
        return ("record", value.kind, *((n, _key(v)) for n, v in value.items()))
    if isinstance(value, bool | int | float | str | Enumerated):
        return (type(value).__name__, value)
    return id(value)


def _as_array(value: Value) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
