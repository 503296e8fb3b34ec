"""The value of an expression, where names are known.

Recursion is bounded by the parser (``expressions.DEEPEST``) and by ``library.CALLS_DEEP`` calls inside each other;
sums and products of any length are loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

from grisaille.model.expression import Condition, Expression, Name, postorder
from grisaille.modelica import tree
from grisaille.modelica.assembling import ELEMENT, assembled, steps_below
from grisaille.modelica.builtins import BUILTINS, semi_linear
from grisaille.modelica.expressions import ExpressionParser
from grisaille.modelica.limits import MAX_ARRAY, check_entries, spend
from grisaille.modelica.refusals import Refused
from grisaille.modelica.tokens import Tokens
from grisaille.modelica.values import (
    Enumerated,
    Given,
    Opaque,
    RecordValue,
    Truth,
    Unfit,
    Unset,
    Value,
    add,
    array,
    bending,
    both,
    choose,
    describe,
    difference_of,
    divide,
    either,
    elementwise,
    formula,
    is_number,
    is_whole,
    multiply,
    negate,
    negated,
    power,
    power_of,
    product_of,
    quotient_of,
    relation,
    subtract,
    sum_of,
)

Local = dict[str, Value]
MAX_CHOICES = 400
"""Entries among which a subscript that is only known during a simulation may choose."""

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": sum_of,
    "-": difference_of,
    "*": product_of,
    "/": quotient_of,
    "^": power_of,
    ".+": lambda a, b: elementwise(add, a, b),
    ".-": lambda a, b: elementwise(subtract, a, b),
    ".*": lambda a, b: elementwise(multiply, a, b),
    "./": lambda a, b: elementwise(divide, a, b),
    ".^": lambda a, b: elementwise(power, a, b),
}


class Names(Protocol):
    """What an evaluator asks about names that are not local."""

    def value_of(self, name: str) -> Value:
        """Return the value of a component or constant; ``LookupError`` where there is none."""

    def skipped(self, name: str) -> int:
        """Return how many last arguments of a function need no value."""

    def at_start(self, value: Expression) -> Expression:
        """Return a formula in which what is equal to time at the start is the start of the run."""

    def first(self) -> Value:
        """Return whether the first events are not over yet: ``initial()``."""

    def outcome(self, node: tree.Outcome) -> Value:
        """Return the value of a variable after an algorithm section."""

    def call(self, node: tree.Calling, arguments: list[Value], named: dict[str, Value]) -> Value:
        """Return the result of a function that Modelica does not define, or that needs more than values."""


_DOUBTS: ContextVar[int] = ContextVar("conditions around what is evaluated that only a simulation decides", default=0)


@contextmanager
def in_doubt() -> Iterator[None]:
    """Yield what is evaluated inside may not be what a simulation computes."""
    token = _DOUBTS.set(_DOUBTS.get() + 1)
    try:
        yield
    finally:
        _DOUBTS.reset(token)


def is_in_doubt() -> bool:
    """Return whether only a simulation decides if what is evaluated is computed."""
    return _DOUBTS.get() > 0


class Evaluator:
    """Values of expressions."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._ends: list[int] = []
        self._smooth = False
        """Whether the expression that is evaluated stands in ``smooth``."""

    def value(self, node: tree.Node, local: Local) -> Value:
        """Return the value of ``node``; local variables come first. Of a call with several results it is the first."""
        value = _METHODS[type(node)](self, node, local)
        return value[0] if isinstance(value, tuple) and value else value

    def results(self, node: tree.Node, local: Local) -> Value:
        """Return the value of ``node``, or all results of a call that has several."""
        return _METHODS[type(node)](self, node, local)

    def truth(self, node: tree.Node, local: Local) -> Truth:
        """Return a truth value or a condition."""
        return both(self.value(node, local), True)

    def whole(self, node: tree.Node, local: Local, what: str) -> int:
        """Return a whole number that is known while the text is read."""
        if is_boolean_type(node):
            return 2
        value = self.settled(self.value(node, local))
        if isinstance(value, Enumerated):
            return value.index
        if isinstance(value, RecordValue) and is_enumeration(value):
            return len(value)
        if isinstance(value, bool) or not is_whole(value):
            raise Unfit(f"{what} must be a whole number that is known before the simulation, got {describe(value)}")
        return int(value)

    def settled(self, value: Value) -> Value:
        """Return a number where a formula of parameters has one; those parameters are then fixed."""
        return value

    def range(self, node: tree.Node, local: Local) -> list[Value]:
        """Return what an iterator runs through."""
        if isinstance(node, tree.Range) and node.first is not None and node.last is not None:
            first, last = self.value(node.first, local), self.value(node.last, local)
            step = 1 if node.step is None else self.value(node.step, local)
            if isinstance(first, Enumerated) and isinstance(last, Enumerated):
                literals = self.names.value_of(first.type)
                assert isinstance(literals, RecordValue)
                return list(literals.values())[first.index - 1 : last.index]
            numbers = [v for v in (self.settled(v) for v in (first, last, step)) if is_number(v)]
            if len(numbers) < 3 or numbers[2] == 0:
                raise Unfit("a range must be known before the simulation and have a step that is not zero")
            begin, end, width = numbers
            reach = (end - begin) / width
            if not reach < MAX_ARRAY:
                raise Unfit(f"a range of {reach + 1:.0f} entries is too long (at most {MAX_ARRAY})")
            count = int(np.floor(max(reach, -1.0) + 1e-9)) + 1
            spend(max(count, 1))
            return [begin + k * width for k in range(count)]
        if is_boolean_type(node):
            return [False, True]
        value = self.value(node, local)
        if isinstance(value, RecordValue) and is_enumeration(value):
            return list(value.values())
        if not isinstance(value, np.ndarray):
            raise Unfit(f"an iterator runs through a range or an array, got {describe(value)}")
        return list(value)

    # --- one method for each node ---

    def _literal(self, node: tree.Literal, local: Local) -> Value:
        return node.value

    def _chain(self, node: tree.Chain, local: Local) -> Value:
        value = self.value(node.first, local)
        for operator, operand in node.rest:
            if operator == "and" or operator == "or":
                settled = self.settled_truth(value)
                if settled is (operator == "or"):
                    return settled
                join = either if operator == "or" else both
                value = join(value, self.value(operand, local))
            elif operator in _OPERATIONS:
                value = _OPERATIONS[operator](value, self.value(operand, local))
            else:
                value = relation(operator, value, self.value(operand, local))
                value = bending(value) if self._smooth and isinstance(value, Expression) else value
        return value

    def settled_truth(self, value: Value) -> Value:
        """Return the truth value where it is settled, else the condition."""
        return value

    def _unary(self, node: tree.Unary, local: Local) -> Value:
        value = self.value(node.operand, local)
        if node.operator == "not":
            return elementwise(negated, value)
        return elementwise(negate, value) if node.operator == "-" else value

    def _choice(self, node: tree.Choice, local: Local) -> Value:
        taken: list[tuple[Any, Any]] = []
        otherwise: tree.Node | None = node.otherwise
        for condition, branch in node.branches:
            decided = self.truth(condition, local)
            if decided is False:
                continue
            if decided is True:
                otherwise = branch
                break
            with in_doubt():
                taken.append((decided, self.value(branch, local)))
        assert otherwise is not None
        with in_doubt() if taken else nullcontext():
            result = self.value(otherwise, local)
        for decided, value in reversed(taken):
            result = choose(decided, value, result)
        return result

    def _braces(self, node: tree.Braces, local: Local) -> Value:
        check_entries(len(node.items))
        if any(isinstance(item, tree.Range) for item in node.items):
            return array([array(self.range(item, local)) for item in node.items])
        return array([self.value(item, local) for item in node.items])

    def _brackets(self, node: tree.Brackets, local: Local) -> Value:
        rows = []
        for row in node.rows:
            items = [self.value(item, local) for item in row]
            blocks = [BUILTINS["promote"](i, 2) if isinstance(i, np.ndarray) else array([array([i])]) for i in items]
            rows.append(BUILTINS["cat"](2, *blocks))
        return BUILTINS["cat"](1, *rows)

    def _comprehension(self, node: tree.Comprehension, local: Local) -> Value:
        return self._comprehended(node, 0, dict(local))

    def _comprehended(self, node: tree.Comprehension, depth: int, local: Local, count: int = 1) -> Value:
        # {f(i, j) for i in 1:2, j in 1:3} has the shape of its iterators in reverse: j counts rows
        if depth == len(node.iterators):
            return self.value(node.body, local)
        name, over = node.iterators[len(node.iterators) - 1 - depth]
        items = self.range(over, local)
        count = len(items) * count
        check_entries(count)
        found: list[Any] = []
        for item in items:
            found.append(self._comprehended(node, depth + 1, {**local, name: item}, count))
            if len(found) == 1 and isinstance(found[0], np.ndarray):
                check_entries(len(items) * found[0].size)
        return array(found)

    def _range(self, node: tree.Range, local: Local) -> Value:
        return array(self.range(node, local))

    def _last(self, node: tree.Last, local: Local) -> Value:
        if not self._ends:
            raise Refused(node.at, "'end' stands outside a subscript")
        return self._ends[-1]

    def _several(self, node: tree.Several, local: Local) -> Value:
        raise Refused(node.at, "a list in parentheses can only stand on the left of a call with several results")

    def _result(self, node: tree.Result, local: Local) -> Value:
        found = self.results(node.call, local)
        results = found if isinstance(found, tuple) else (found,)
        if node.index >= len(results):
            raise Refused(node.at, f"{node.index + 1} results are asked for, but the call gives {len(results)}")
        return results[node.index]

    def _subscripted(self, node: tree.Subscripted, local: Local) -> Value:
        value = self.value(node.base, local)
        for part in node.parts:
            value = field(value, part.name) if part.name else value
            value = self.subscript(value, part.subscripts, local)
        return value

    def smooth(self, node: tree.Calling, local: Local) -> Value:
        """Return ``smooth(p, e)``: the conditions that are written in ``e`` choose between formulas that meet."""
        outer, self._smooth = self._smooth, True
        try:
            return self.value(node.arguments[-1], local)
        finally:
            self._smooth = outer

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """For what is written elsewhere: names and functions."""
        outer, self._smooth = self._smooth, False
        try:
            yield
        finally:
            self._smooth = outer

    def _reference(self, node: tree.Reference, local: Local) -> Value:
        with self.plainly():
            return self._referred(node, local)

    def _referred(self, node: tree.Reference, local: Local) -> Value:
        value, parts = self._base(node, local)
        for part in parts:
            value = self._part(value, part, local)
        if isinstance(value, Unset):
            raise Refused(node.at, f"'{node.path}' is used before it has a value")
        return ready(value)

    def _base(self, node: tree.Reference, local: Local) -> tuple[Value, list[tree.Part]]:
        """Return the value of the longest known beginning of a reference, and the parts that remain."""
        if local:
            node = placed_in(node, local)
        first = node.parts[0]
        if first.name in local:
            return local[first.name], [tree.Part("", first.subscripts), *node.parts[1:]]
        path = ""
        for k, part in enumerate(node.parts):
            path = f"{path}.{part.name}" if path else part.name
            try:
                return self.names.value_of(path), [tree.Part("", part.subscripts), *node.parts[k + 1 :]]
            except LookupError:
                pass
            if part.subscripts:
                path += f"[{','.join(str(self.whole(s, local, 'a subscript')) for s in part.subscripts)}]"
                try:
                    return self.names.value_of(path), list(node.parts[k + 1 :])
                except LookupError:
                    pass
        inner = unquoted(node)
        if inner is not node:
            return self._base(inner, local)
        entries = [name for name in local if array_of(name) == first.name]
        if entries:
            return assembled(first.name, entries, local.__getitem__), [tree.Part("", first.subscripts), *node.parts[1:]]
        raise Refused(node.at, f"'{node.path}' is not declared")

    def _part(self, value: Value, part: tree.Part, local: Local) -> Value:
        """Return ``.x[2]`` of a record; of an array of records that of each one, as ``p.x[2]`` means ``{p[1].x[2],
        …}``.
        """
        if not part.name:
            return self.subscript(value, part.subscripts, local)
        if isinstance(value, np.ndarray) and value.size and isinstance(value.flat[0], RecordValue):
            return array([self._part(item, part, local) for item in value])
        return self.subscript(field(value, part.name), part.subscripts, local)

    def subscript(self, value: Value, subscripts: tuple[tree.Node, ...], local: Local) -> Value:
        """Return ``value[i, 2:3]``; subscripts count from one."""
        if not subscripts:
            return value
        if not isinstance(value, np.ndarray) or len(subscripts) > value.ndim:
            raise Unfit(f"{describe(value)} cannot take {len(subscripts)} subscripts")
        picked: list[Any] = []
        for k, subscript in enumerate(subscripts):
            picked.append(self.positions(subscript, value.shape[k], local))
        return _picked(ready(value) if any(isinstance(p, Expression) for p in picked) else value, picked)

    def positions(self, subscript: tree.Node, length: int, local: Local) -> Any:
        """Return one position from zero, a list of them, or a formula of one."""
        if isinstance(subscript, tree.Range) and subscript.first is None:
            return list(range(length))
        self._ends.append(length)
        try:
            if isinstance(subscript, tree.Range):
                found: Any = self.range(subscript, local)
            else:
                value = self.value(subscript, local)
                if isinstance(value, Expression):
                    value = self.settled(value)
                if isinstance(value, Condition):
                    return add(formula(value), 1)  # Boolean dimensions run false, true
                if isinstance(value, Expression):
                    return value
                found = list(value) if isinstance(value, np.ndarray) else value
        finally:
            self._ends.pop()
        return [_position(i, length) for i in found] if isinstance(found, list) else _position(found, length)

    def _calling(self, node: tree.Calling, local: Local) -> Value:
        if node.name in ("sum", "product", "min", "max") and len(node.arguments) == 1:
            return BUILTINS[node.name](self.value(node.arguments[0], local))
        if node.name == "array" and len(node.arguments) == 1 and isinstance(node.arguments[0], tree.Comprehension):
            return self.value(node.arguments[0], local)
        lazy = LAZY_FUNCTIONS.get(node.name)
        if lazy is not None:
            return lazy(self, node, local)
        if isinstance(given := local.get(node.name), Given):
            node = tree.Calling(node.at, given.name, node.arguments, node.named)
            inner = [self.value(argument, local) for argument in node.arguments]
            return self.names.call(node, inner, given.arguments)
        wanted = len(node.arguments) - self.names.skipped(node.name)
        arguments = [self.value(argument, local) for argument in node.arguments[:wanted]]
        arguments += [0.0] * (len(node.arguments) - wanted)
        named = {name: self.value(argument, local) for name, argument in node.named.items()}
        builtin = BUILTINS.get(node.name)
        if builtin is None:
            return self.names.call(node, arguments, named)
        try:
            return builtin(*arguments, **named)
        except TypeError as error:
            raise Unfit(f"{node.name} does not take these {len(arguments)} arguments ({error})") from None


def unquoted(node: tree.Reference) -> tree.Reference:
    """Return ``c1['i'].re`` that is written inside one quoted name, as OpenModelica does, as what it means."""
    first = node.parts[0]
    if "['" not in first.name:
        return node
    inner = ExpressionParser(Tokens(first.name)).reference()
    indexed = next((k for k, part in enumerate(inner.parts) if part.subscripts), None)
    if indexed is None:
        return node
    whole = tree.Part(".".join(p.name for p in inner.parts[: indexed + 1]), inner.parts[indexed].subscripts)
    return tree.Reference(node.at, (whole, *inner.parts[indexed + 1 :], *node.parts[1:]))


def array_of(name: str) -> str:
    """Return ``"x"`` for ``"x[1,2]"``; empty for what is no entry."""
    element = ELEMENT.fullmatch(name) if name.endswith("]") else None
    return element[1] if element else ""


def placed_in(node: tree.Reference, local: Local) -> tree.Reference:
    """Return ``'x[1].y'``, declared as a scalar, as ``x[1].y`` where ``x`` is local."""
    first = node.parts[0]
    if first.name in local:
        return node
    whole = first.name
    while whole and whole not in local:
        whole = array_of(whole) or whole.rpartition(".")[0]
    steps = steps_below(whole, first.name) if whole else []
    if not steps:
        return node
    parts = [tree.Part(whole)]
    for step in [*steps, *([first.subscripts] if first.subscripts else [])]:
        if isinstance(step, str):
            parts.append(tree.Part(step))
        elif parts[-1].subscripts:
            return node  # entries of entries have no such names
        else:
            places = tuple(i if isinstance(i, tree.Node) else tree.Literal(node.at, i) for i in step)
            parts[-1] = tree.Part(parts[-1].name, places)
    return tree.Reference(node.at, (*parts, *node.parts[1:]))


class Pending(Opaque):
    """A variable whose value is a formula that is only known when it is asked for."""

    __slots__ = ("get",)

    def __init__(self, get: Callable[[], Value]) -> None:
        self.get = get


def ready(value: Value) -> Value:
    """Return the value with everything pending looked up."""
    if isinstance(value, Pending):
        return value.get()
    if (
        isinstance(value, np.ndarray)
        and value.size
        and any(isinstance(item, Pending | RecordValue) for item in value.flat)
    ):
        return elementwise(ready, value)
    if isinstance(value, RecordValue) and any(
        isinstance(item, Pending | RecordValue | np.ndarray) for item in value.values()
    ):
        return RecordValue(value.kind, {name: ready(item) for name, item in value.items()})
    return value


def outcome(evaluator: Evaluator, node: tree.Outcome, _local: Local) -> Value:
    """Return what an algorithm section of a model gives a variable; it is run once for all that it assigns."""
    return evaluator.names.outcome(node)


def _semi_linear(evaluator: Evaluator, node: tree.Calling, local: Local) -> Value:
    """Only what a variable holds can be carried; slopes of numbers and parameters leave nothing open without a flow."""
    x, above, below = (evaluator.value(argument, local) for argument in node.arguments)
    formulas = [v for v in (above, below) if isinstance(v, Expression)]
    names = (n.path for n in postorder(formulas) if isinstance(n, Name))
    return semi_linear(x, above, below, any(n not in getattr(evaluator.names, "parameters", ()) for n in names))


LAZY_FUNCTIONS: dict[str, Callable[[Evaluator, tree.Calling, Local], Any]] = {
    "smooth": Evaluator.smooth,
    "semiLinear": _semi_linear,
}
"""Functions that look at how their arguments are written; ``events`` enters its own."""

_METHODS: dict[type, Callable[..., Any]] = {
    tree.Literal: Evaluator._literal,
    tree.Reference: Evaluator._reference,
    tree.Chain: Evaluator._chain,
    tree.Unary: Evaluator._unary,
    tree.Choice: Evaluator._choice,
    tree.Calling: Evaluator._calling,
    tree.Braces: Evaluator._braces,
    tree.Brackets: Evaluator._brackets,
    tree.Comprehension: Evaluator._comprehension,
    tree.Range: Evaluator._range,
    tree.Last: Evaluator._last,
    tree.Subscripted: Evaluator._subscripted,
    tree.Several: Evaluator._several,
    tree.Outcome: outcome,
    tree.Result: Evaluator._result,
}


def is_boolean_type(node: tree.Node) -> bool:
    """Return whether a size or a range is the type ``Boolean``."""
    return isinstance(node, tree.Reference) and node.path == "Boolean"


def is_enumeration(value: Value) -> bool:
    """Return whether a value is a type with literals, as a size or a range is."""
    return (
        isinstance(value, RecordValue) and bool(value) and all(isinstance(item, Enumerated) for item in value.values())
    )


def field(value: Value, name: str) -> Value:
    """Return a field of a record, or of every record in an array."""
    if isinstance(value, np.ndarray) and value.size and isinstance(value.flat[0], RecordValue):
        return elementwise(lambda item: field(item, name), value)
    if not isinstance(value, RecordValue) or name not in value:
        raise Unfit(f"{describe(value)} has no field '{name}'")
    return value[name]


class Outside(Unfit):
    """A subscript beyond the entries of an array."""


def _position(index: Value, length: int) -> int:
    if isinstance(index, Enumerated):
        index = index.index
    if isinstance(index, bool):
        index = int(index) + 1  # Boolean dimensions run false, true
    if not is_whole(index):
        raise Unfit(f"a subscript must be a whole number, got {describe(index)}")
    if not 1 <= index <= length:
        raise Outside(f"the subscript {index} is outside 1 to {length}")
    return int(index) - 1


def _picked(value: Any, positions: list[Any]) -> Any:
    if not positions:
        return value
    first, rest = positions[0], positions[1:]
    if isinstance(first, Expression):
        return _chosen([_picked(item, rest) for item in value], first)
    if isinstance(first, list):
        return array([_picked(value[k], rest) for k in first])
    return _picked(value[first], rest)


def _chosen(items: Sequence[Value], index: Expression) -> Value:
    """Return the entry that a formula counts to, from one; beyond the ends the last or the first."""
    if not items or len(items) > MAX_CHOICES:
        raise Unfit(f"a subscript that is only known during a simulation cannot choose among {len(items)} entries")
    result = items[-1]
    for k in range(len(items) - 1, 0, -1):
        result = choose(relation("<", index, k + 0.5), items[k - 1], result)
    return result
